"""Exact log Z, marginals and samples: the choice of a solver, its refusal, and the cache."""

from __future__ import annotations

import contextlib
import difflib
import functools
import importlib
import math
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from spinbench.errors import IntractableError, ModelError, UnknownNameError, UnsupportedError
from spinbench.models import Model
from spinbench.reference import cache as store
from spinbench.reference.answer import ExactAnswer
from spinbench.reference.network import IntArray
from spinbench.reference.problem import NotApplicableError, Problem
from spinbench.reference.solver import PrecisionError, Solver, ZeroWeightError

_SOLVERS = {
    "enumeration": "enumeration:Enumeration",
    "grid": "spinbench.backends.numba.exact.grid:Grid",
    "ring": "closed_forms:Ring",
    "torus": "closed_forms:Torus",
    "curie_weiss": "closed_forms:CurieWeiss",
    "rbm": "bipartite:Bipartite",
    "kac_ward": "kac_ward:KacWard",
    "tree": "bucket_tree:Tree",
    "bucket_tree": "bucket_tree:BucketTree",
}
# "auto" goes on to the next stage only while nothing cheap was found: a drawing or an order takes a search
_STAGES = (("enumeration", "grid", "ring", "torus", "curie_weiss", "rbm"), ("kac_ward",), ("bucket_tree",))
_COMPILED = ("grid",)
_FASTER = {  # the same in compiled code
    "rbm": "spinbench.backends.numba.exact.bipartite:CompiledBipartite",
    "tree": "spinbench.backends.numba.exact.tree:CompiledForest",
    "bucket_tree": "spinbench.backends.numba.exact.tree:CompiledTree",
}
_MANY = 15_000  # variables from which searches and drawings in Python take longer than loading compiled code
_LONG = 1.0  # seconds in NumPy from which loading compiled code pays in any case
_NOTHING = 5e-4  # seconds below which looking for a faster solver takes longer than it,
_NOTHING_COMPILED = 1e-4  # or, once compiled code is loaded, than the compiled ones take
_HOPELESS = 1e5  # seconds beyond which no better order makes it possible
METHODS = ("auto", *_SOLVERS)
DEFAULT_MAX_BYTES = 2**30

T = TypeVar("T")


def solve(
    model: Model,
    *,
    method: str = "auto",
    marginals: bool = True,
    max_bytes: int = DEFAULT_MAX_BYTES,
    cache: bool = True,
    compiled: bool | None = None,
) -> ExactAnswer:
    """Exact log Z and, unless turned off, all single-variable marginals.

    Args:
        model: any model; 1-of-K groups, hard zeros and variables of one state are fine.
        method: one of `METHODS`; "auto" takes the cheapest that fits the model and the memory.
        marginals: whether marginals are wanted.
        max_bytes: memory that the solver may take; checked before it takes any.
        cache: whether to look the answer up, and to store it, on disk.
        compiled: whether Numba may be used: False never, True wherever it is faster once it is loaded, None where it
            is so much faster that loading (and the first time compiling) it pays.

    Raises:
        ModelError: no state has positive weight (Z = 0).
        IntractableError: too wide for the memory, or too many states.
        UnsupportedError: the named method does not fit this kind of model.
        UnknownNameError: there is no such method.
    """
    _check_method(method)
    if cache and (found := store.load(model, method, marginals=marginals)) is not None:
        return found
    begin = time.perf_counter()
    problem = Problem(model)
    solvers = _candidates(problem, method, compiled=compiled, sampling=False)
    solver, (log_z, flat) = _first(
        problem, solvers, max_bytes, lambda solver: solver.solve(marginals=marginals), marginals=marginals
    )
    decoded = None if flat is None else problem.decode_marginals(flat)
    seconds = time.perf_counter() - begin
    answer = ExactAnswer(log_z, decoded, model.cardinalities, solver.name, solver.width, seconds)
    if cache:
        store.save(model, method, answer)
    return answer


def sample(
    model: Model,
    count: int,
    seed: int | np.random.Generator = 0,
    *,
    method: str = "auto",
    max_bytes: int = DEFAULT_MAX_BYTES,
    compiled: bool | None = None,
) -> IntArray:
    """Exact independent draws, (count, N) int64; the same seed and `compiled` give the same draws.

    Raises:
        ModelError: Z = 0, or a negative count.
        IntractableError, UnsupportedError, UnknownNameError: as for `solve`; the closed forms give no samples.
    """
    _check_method(method)
    if count < 0:
        raise ModelError(f"{model.name}: {count} samples were asked for; the count must not be negative")
    problem = Problem(model)
    solvers = _candidates(problem, method, compiled=compiled, sampling=True)
    rng = np.random.default_rng(seed)
    _, states = _first(problem, solvers, max_bytes, lambda solver: solver.sample(count, rng), marginals=True)
    return problem.coding.decode_states(states)


def _check_method(method: str) -> None:
    if method not in METHODS:
        close = difflib.get_close_matches(method, METHODS, n=3) or METHODS
        raise UnknownNameError(f"there is no exact method {method!r}; did you mean {' or '.join(close)}?")


@functools.cache
def _kind(name: str, *, compiled: bool | None = False) -> type[Solver]:
    place = _FASTER.get(name, _SOLVERS[name]) if compiled else _SOLVERS[name]
    module, _, attribute = place.partition(":")
    where = module if "." in module else f"spinbench.reference.{module}"
    found: type[Solver] = getattr(importlib.import_module(where), attribute)
    return found


def _build(name: str, problem: Problem, *, compiled: bool | None) -> Solver:
    """A solver by its name; where there are two, the one that `compiled` asks for."""
    if compiled is None and name in _FASTER:
        if len(problem.cardinalities) <= _MANY:
            solver = _kind(name).build(problem)
            if not _LONG < solver.seconds < _HOPELESS:
                return solver
        compiled = True
    return _kind(name, compiled=compiled).build(problem)


def _candidates(problem: Problem, method: str, *, compiled: bool | None, sampling: bool) -> Iterator[Solver]:
    """The solvers that fit, cheap ones first, the others by their cost; made only when they are asked for."""
    if method != "auto":
        if sampling and not _kind(method).can_sample:
            raise UnsupportedError(f"the exact method {method!r} gives no samples; use method='auto'")
        if method in _COMPILED and compiled is False:
            raise UnsupportedError(f"the exact method {method!r} needs Numba, and compiled=False rules it out")
        try:
            yield _build(method, problem, compiled=compiled)
        except NotApplicableError as refusal:
            raise UnsupportedError(f"{problem.name}: the exact method {method!r} needs {refusal}") from None
        return
    size = len(problem.cardinalities)
    many = compiled is not False and size > _MANY
    nothing = _NOTHING_COMPILED if compiled else _NOTHING
    # seconds that a search would take about
    enough = max(_NOTHING, (2e-5 if compiled or many else 5e-4) * size)
    costly: list[Solver] = []
    for stage in (_STAGES[0], _STAGES[2], _STAGES[1]) if many else _STAGES:
        found: list[Solver] = []
        for name in stage:
            if (compiled is not False or name not in _COMPILED) and (_kind(name).can_sample or not sampling):
                with contextlib.suppress(NotApplicableError):
                    found.append(_build(name, problem, compiled=compiled))
                    if found[-1].seconds < nothing:
                        break
        yield from sorted((s for s in found if s.seconds <= enough), key=lambda s: s.seconds)
        costly += [s for s in found if s.seconds > enough]
    yield from sorted(costly, key=lambda s: s.seconds)


def _with_fallbacks(solvers: Iterator[Solver]) -> Iterator[Solver]:
    for solver in solvers:
        yield solver
        yield from solver.fallbacks()


def _first(
    problem: Problem,
    solvers: Iterator[Solver],
    max_bytes: int,
    action: Callable[[Solver], T],
    *,
    marginals: bool,
) -> tuple[Solver, T]:
    """The first solver that gives a result, and the result."""
    refusals: list[tuple[float, str]] = []
    for solver in _with_fallbacks(solvers):
        needed = solver.memory(marginals=marginals)
        if needed > max_bytes:
            more = "" if solver.complete else " or more"
            width = "" if solver.width is None else f"meets width {solver.width}{more} and "
            taken = f"would take {_human(needed)}{more} of memory"
            refusals.append((needed, f"{solver.name} {width}{taken}, {_human(max_bytes)} is allowed (max_bytes)"))
            continue
        try:
            return solver, action(solver)
        except ZeroWeightError:
            raise ModelError(
                f"{problem.name}: no state has positive weight, so Z = 0; check its zeros and its evidence"
            ) from None
        except PrecisionError as why:
            refusals.append((math.inf, str(why)))
    raise IntractableError(f"{problem.name}: no exact answer: {min(refusals)[1]}")


def _human(count: int) -> str:
    if count >= 2**80:  # more than a million EiB
        return f"2^{count.bit_length() - 1 - 60} EiB"
    value = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if value < 1024:
            return f"{value:.3g} {unit}"
        value /= 1024
    return f"{value:.3g} EiB"
