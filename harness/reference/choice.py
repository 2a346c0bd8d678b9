"""Which solver answers: the cheapest that fits model and memory, or a refusal that says what would be needed."""

from __future__ import annotations

import contextlib
import difflib
import math
from collections.abc import Callable, Iterator
from typing import TypeVar

from spinbench.errors import IntractableError, ModelError, UnknownNameError, UnsupportedError
from spinbench.reference.problem import NotApplicableError, Problem
from spinbench.reference.solver import PrecisionError, Solver, ZeroWeightError
from spinbench.reference.solvers import METHODS, Solvers

_CHEAP = 5e-4  # seconds in which no search pays

T = TypeVar("T")


def check_method(method: str, solvers: Solvers) -> None:
    """Whether there is such a solver.

    Raises:
        UnknownNameError: there is none.
        UnsupportedError: there is, in compiled code.
    """
    if method not in METHODS:
        close = difflib.get_close_matches(method, METHODS, n=3) or METHODS
        raise UnknownNameError(f"there is no exact method {method!r}; did you mean {' or '.join(close)}?")
    if method != "auto" and method not in solvers.kinds:
        raise UnsupportedError(f"the exact method {method!r} needs compiled code (Numba), and this is NumPy alone")


def candidates(problem: Problem, method: str, solvers: Solvers, *, sampling: bool) -> Iterator[Solver]:
    """The solvers that fit, cheap ones first, the others by their cost; made only when they are asked for."""
    if method == "auto":
        return _by_cost(problem, solvers, sampling=sampling)
    return _named(problem, method, solvers, sampling=sampling)


def _named(problem: Problem, method: str, solvers: Solvers, *, sampling: bool) -> Iterator[Solver]:
    kind = solvers.kinds[method]
    if sampling and not kind.can_sample:
        raise UnsupportedError(f"the exact method {method!r} gives no samples; use method='auto'")
    try:
        yield kind.build(problem)
    except NotApplicableError as refusal:
        raise UnsupportedError(f"{problem.name}: the exact method {method!r} needs {refusal}") from None


def _by_cost(problem: Problem, solvers: Solvers, *, sampling: bool) -> Iterator[Solver]:
    size = len(problem.cardinalities)
    enough = max(_CHEAP, solvers.search_seconds(size))
    costly: list[Solver] = []
    for stage in solvers.stages(size):
        found = _applicable(problem, stage, solvers, sampling=sampling)
        yield from sorted((s for s in found if s.seconds <= enough), key=lambda s: s.seconds)
        costly += [s for s in found if s.seconds > enough]
    yield from sorted(costly, key=lambda s: s.seconds)


def _applicable(problem: Problem, stage: tuple[str, ...], solvers: Solvers, *, sampling: bool) -> list[Solver]:
    """The solvers of a stage that fit, up to one that takes next to nothing."""
    found: list[Solver] = []
    for name in stage:
        kind = solvers.kinds.get(name)
        if kind is None or (sampling and not kind.can_sample):
            continue
        with contextlib.suppress(NotApplicableError):
            if kind.passed_by(problem):
                continue
            found.append(kind.build(problem))
            if found[-1].seconds < solvers.nothing:
                break
    return found


def _with_fallbacks(solvers: Iterator[Solver]) -> Iterator[Solver]:
    for solver in solvers:
        yield solver
        yield from solver.fallbacks()


def first(
    problem: Problem,
    solvers: Iterator[Solver],
    max_bytes: int,
    action: Callable[[Solver], T],
    *,
    marginals: bool,
) -> tuple[Solver, T]:
    """The first solver that gives a result, and the result.

    Raises:
        ModelError: Z = 0.
        IntractableError: none does in so much memory.
    """
    refusals: list[tuple[float, str]] = []
    for solver in _with_fallbacks(solvers):
        solver.most_bytes = max_bytes
        needed = solver.memory(marginals=marginals)
        if needed > max_bytes:
            refusals.append((needed, _too_large(solver, needed, max_bytes)))
            continue
        try:
            return solver, action(solver)
        except ZeroWeightError:
            raise ModelError(
                f"{problem.name}: no state has positive weight, so Z = 0; check its zeros and its evidence"
            ) from None
        except (PrecisionError, NotImplementedError) as why:
            refusals.append((math.inf, str(why)))
    raise IntractableError(f"{problem.name}: no exact answer: {min(refusals)[1]}")


def _too_large(solver: Solver, needed: int, max_bytes: int) -> str:
    allowed = f"{_human(needed)} of memory, and {_human(max_bytes)} is allowed (max_gib)"
    if not solver.complete:
        found = f"{solver.name} found no order below width {solver.width} before it stopped"
        return f"{found}, which would take at least {allowed}"
    width = "" if solver.width is None else f"meets width {solver.width} and "
    return f"{solver.name} {width}would take {allowed}"


def _human(count: int) -> str:
    if count >= 2**80:  # more than a million EiB
        return f"2^{count.bit_length() - 1 - 60} EiB"
    value = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if value < 1024:
            return f"{value:.3g} {unit}"
        value /= 1024
    return f"{value:.3g} EiB"
