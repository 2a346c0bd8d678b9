"""Which solver answers: the cheapest that fits model and memory, or a refusal that says what would be needed."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterator
from typing import TypeVar

from spinbench.errors import BrokenPluginError, IntractableError, ModelError, UnknownNameError, UnsupportedError
from spinbench.foundation.remarks import left_out
from spinbench.reference.problem import MissingPackageError, NotApplicableError, Problem
from spinbench.reference.solver import GaveUpError, PrecisionError, Solver, ZeroWeightError
from spinbench.reference.solvers import BUILT_IN, Solvers, methods, plugin_names

_CHEAP = 5e-4  # seconds in which no search pays

T = TypeVar("T")


def check_method(method: str, solvers: Solvers) -> None:
    """Whether there is such a solver.

    Raises:
        UnknownNameError: there is none.
        UnsupportedError: there is, in compiled code.
        BrokenPluginError: there is, in a plugin that does not load.
    """
    if method not in BUILT_IN and method not in methods():
        close = difflib.get_close_matches(method, methods(), n=3) or methods()
        raise UnknownNameError(f"there is no exact method {method!r}; did you mean {' or '.join(close)}?")
    if method != "auto" and solvers.kind(method) is None:
        raise UnsupportedError(f"the exact method {method!r} needs compiled code (Numba), and this is NumPy alone")


def candidates(
    problem: Problem,
    method: str,
    solvers: Solvers,
    *,
    sampling: bool,
    wants_plugins: Callable[[], bool] | None = None,
) -> Iterator[Solver]:
    """The solvers that fit, cheap ones first, the others by their cost; made only when they are asked for.

    Plugins' solvers are taken by their cost among the others, or after all of them if `wants_plugins` then agrees.
    """
    if method == "auto":
        return _by_cost(problem, solvers, wants_plugins, sampling=sampling)
    return _named(problem, method, solvers, sampling=sampling)


def _named(problem: Problem, method: str, solvers: Solvers, *, sampling: bool) -> Iterator[Solver]:
    kind = solvers.kind(method)
    assert kind is not None  # `check_method` has been here
    if sampling and not kind.can_sample:
        raise UnsupportedError(f"the exact method {method!r} gives no samples; use method='auto'")
    try:
        yield kind.build(problem)
    except NotApplicableError as refusal:
        raise UnsupportedError(f"{problem.name}: the exact method {method!r} needs {refusal}") from None


def _by_cost(
    problem: Problem, solvers: Solvers, wants_plugins: Callable[[], bool] | None, *, sampling: bool
) -> Iterator[Solver]:
    size = len(problem.cardinalities)
    enough = max(_CHEAP, solvers.search_seconds(size))
    costly: list[Solver] = []
    for stage in solvers.stages(size):
        found = _applicable(problem, stage, solvers, sampling=sampling)
        yield from sorted((s for s in found if s.seconds <= enough), key=lambda s: s.seconds)
        costly += [s for s in found if s.seconds > enough]
    if wants_plugins is None:
        costly += _applicable(problem, plugin_names(), solvers, sampling=sampling)
    yield from sorted(costly, key=lambda s: s.seconds)
    if wants_plugins is not None and wants_plugins():
        found = _applicable(problem, plugin_names(), solvers, sampling=sampling)
        yield from sorted(found, key=lambda s: s.seconds)


def _applicable(problem: Problem, stage: tuple[str, ...], solvers: Solvers, *, sampling: bool) -> list[Solver]:
    """The solvers of a stage that fit, up to one that takes next to nothing."""
    found: list[Solver] = []
    for name in stage:
        try:
            kind = solvers.kind(name)
            if kind is None or (sampling and not kind.can_sample) or kind.passed_by(problem):
                continue
            found.append(kind.build(problem))
            if found[-1].seconds < solvers.nothing:
                break
        except BrokenPluginError as error:
            left_out(str(error))
        except MissingPackageError as why:
            problem.remarks.append(f"the exact method {name!r} needs {why}")
        except NotApplicableError:
            continue
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
        except GaveUpError as why:
            problem.remarks.append(str(why))
        except (PrecisionError, NotImplementedError) as why:
            refusals.append((math.inf, str(why)))
    least = [min(refusals)[1]] if refusals else []
    raise IntractableError(f"{problem.name}: no exact answer: {'; '.join([*least, *problem.remarks])}")


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
