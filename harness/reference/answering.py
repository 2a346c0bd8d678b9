"""Exact log Z, marginals and samples, by a table of solvers, and read from the disk where they are known."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar, cast

import numpy as np

from spinbench.errors import IntractableError, ModelError
from spinbench.models import FactorGraph, Model, PairwiseModel, parts
from spinbench.models.forney.model import ForneyModel
from spinbench.models.simplification import Simplified
from spinbench.reference import cache as store
from spinbench.reference.answer import ExactAnswer
from spinbench.reference.choice import candidates, check_method, first
from spinbench.reference.network import FloatArray, IntArray, split
from spinbench.reference.problem import Problem
from spinbench.reference.solver import Solver
from spinbench.reference.solvers import BUILT_IN, NUMPY_SOLVERS, Solvers

DEFAULT_MAX_BYTES = 2**30
PARTS = 64
"""Each of many parts of a model gets so small a part of the memory, as time grows with it."""

T = TypeVar("T")


def solve(
    model: Model,
    *,
    method: str = "auto",
    marginals: bool = True,
    max_bytes: int = DEFAULT_MAX_BYTES,
    cache: bool = True,
    solvers: Solvers = NUMPY_SOLVERS,
) -> ExactAnswer:
    """Exact log Z and, unless turned off, all single-variable marginals.

    Where a factor graph is too wide, "auto" and "bucket_tree" take out all that sums out of it (`models.simplify`), and
    then find the marginals of that part by part, each in a 64th of the memory. Those that are out of reach even so are
    NaN.

    Args:
        model: any model; 1-of-K groups, hard zeros and variables of one state are fine.
        method: one of `methods()`; "auto" takes the cheapest that fits the model and the memory.
        marginals: whether marginals are wanted.
        max_bytes: memory that the solver may take; checked before it takes any.
        cache: whether to look the answer up, and to store it, on disk.
        solvers: what to choose from; `spinbench.inference.answers.solve` has compiled ones, too.

    Raises:
        ModelError: no state has positive weight (Z = 0).
        IntractableError: too wide for the memory, or too many states.
        UnsupportedError: the named method does not fit this kind of model, or is not among `solvers`.
        UnknownNameError: there is no such method.
    """
    check_method(method, solvers)
    if cache and (found := store.load(model, method, max_bytes, marginals=marginals)) is not None:
        return found
    begin, loaded = time.perf_counter(), solvers.loading_seconds()
    asked = _Asked(method, max_bytes, solvers)
    solver, log_z, flat = _answered(model, asked, marginals=marginals)
    elapsed, compiling = time.perf_counter() - begin, solvers.loading_seconds() - loaded
    answer = ExactAnswer(
        log_z,
        flat,
        model.cardinalities,
        solver.name,
        solver.width,
        seconds=elapsed - compiling,
        compile_seconds=compiling,
        backend=solver.backend,
    )
    if cache:
        store.save(model, method, answer, max_bytes)
    return answer


@dataclass(frozen=True)
class _Asked:
    """Which solver, of which, in how much memory."""

    method: str
    max_bytes: int
    solvers: Solvers

    def first(
        self,
        problem: Problem,
        action: Callable[[Solver], T],
        *,
        marginals: bool,
        sampling: bool = False,
        wants_plugins: Callable[[], bool] | None = None,
    ) -> tuple[Solver, T]:
        chosen = candidates(problem, self.method, self.solvers, sampling=sampling, wants_plugins=wants_plugins)
        return first(problem, chosen, self.max_bytes, action, marginals=marginals)


def _answered(model: Model, asked: _Asked, *, marginals: bool) -> tuple[Solver, float, FloatArray | None]:
    """The solver, log Z and the probabilities of all variables, one after another."""
    if not marginals:
        core = _core(model, asked.method)
        return _whole(model if core is None else core.model, asked, marginals=False)
    find_core = functools.cache(lambda: _core(model, asked.method))
    try:  # plugins may give log Z alone: the core goes before them
        return _whole(model, asked, marginals=True, wants_plugins=lambda: find_core() is None)
    except IntractableError:
        core = find_core()
        if core is None:
            raise
    solver, log_z, flat = _whole(core.model, asked, marginals=True, wants_plugins=lambda: True)

    within = replace(asked, max_bytes=asked.max_bytes // PARTS)

    def solved(part: FactorGraph) -> list[FloatArray]:
        if solver.name not in BUILT_IN:  # the core is too wide for elimination, and this is no narrower
            raise IntractableError(f"{part.name}: too wide")
        _, _, flat = _whole(part, within, marginals=True, wants_plugins=lambda: False)
        return split(cast("FloatArray", flat), part.cardinalities)

    found = split(cast("FloatArray", flat), core.model.cardinalities)
    return solver, log_z, np.concatenate(parts.marginals(core, found, solved))


def _core(model: Model, method: str) -> Simplified | None:
    """What is left of a model of which something sums out; None for other models, and for solvers asked by name."""
    if isinstance(model, PairwiseModel) or method not in ("auto", "bucket_tree", "ganak"):
        return None
    core = parts.core_of(model)
    return core if core.step is not None and core.step.conditionals else None


def _whole(
    model: Model, asked: _Asked, *, marginals: bool, wants_plugins: Callable[[], bool] | None = None
) -> tuple[Solver, float, FloatArray | None]:
    problem = Problem(model)
    solver, (log_z, flat) = asked.first(
        problem, lambda solver: solver.solve(marginals=marginals), marginals=marginals, wants_plugins=wants_plugins
    )
    return solver, log_z, None if flat is None else problem.decode_marginals(flat)


def sample(
    model: Model,
    count: int,
    seed: int | np.random.Generator = 0,
    *,
    method: str = "auto",
    max_bytes: int = DEFAULT_MAX_BYTES,
    solvers: Solvers = NUMPY_SOLVERS,
) -> IntArray:
    """Exact independent draws, (count, N) int64; the same seed and solver give the same draws.

    Raises:
        ModelError: Z = 0, or a negative count.
        IntractableError, UnsupportedError, UnknownNameError: as for `solve`; some closed forms give no samples.
    """
    check_method(method, solvers)
    if count < 0:
        raise ModelError(f"{model.name}: {count} samples were asked for; the count must not be negative")
    rng = np.random.default_rng(seed)
    asked = _Asked(method, max_bytes, solvers)
    try:
        return _drawn(model, count, rng, asked)
    except IntractableError:
        core = _core(model, method)
        if core is None or core.step is None:
            raise
        return core.step.lift(_drawn(core.model, count, rng, asked), rng)


def _drawn(model: Model, count: int, rng: np.random.Generator, asked: _Asked) -> IntArray:
    problem = Problem(model)
    _, states = asked.first(problem, lambda solver: solver.sample(count, rng), marginals=True, sampling=True)
    return problem.coding.decode_states(states)


def forney_log_z(model: ForneyModel, *, max_bytes: int = DEFAULT_MAX_BYTES) -> float:
    """log Z of a Forney model.

    Raises:
        ModelError: Z = 0.
        IntractableError: too wide for the memory.
    """
    if not model.num_edges:
        return model.log_constant
    return solve(model.to_factor_graph(), marginals=False, cache=False, max_bytes=max_bytes).log_z
