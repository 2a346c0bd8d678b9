"""Which solver answers: the cheapest that fits model and memory, or a refusal that says what would be needed."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from spinbench.errors import BrokenPluginError, IntractableError, ModelError, UnsupportedError
from spinbench.foundation import deadline
from spinbench.foundation.remarks import format_seconds, left_out, unknown_name
from spinbench.models import Model
from spinbench.reference.orders import goatd
from spinbench.reference.orders.order import SEARCH_SHARE
from spinbench.reference.problem import MissingPackageError, NotApplicableError, Problem
from spinbench.reference.progress import Progress, report_progress
from spinbench.reference.solver import GaveUpError, PrecisionError, Solver, ZeroWeightError
from spinbench.reference.solvers import BUILT_IN, REMOVED, Solvers, methods, plugin_names

# Seconds of a prediction beyond which an exact answer is refused by default.
DEFAULT_SECONDS = 600.0
# Share of a budget for a solver that cannot predict its time: reading and planning take a part of it, and a solver that
# gives up has to report alternatives before the budget ends the process.
UNPREDICTED_SHARE = 0.9
# Shortest limit in seconds for them: commands may end so much later than their budget.
SHORTEST = 0.5
# A solver predicted to take less (seconds) is used without searching for a cheaper one.
_CHEAP = 5e-4

T = TypeVar("T")


def check_method(method: str, solvers: Solvers) -> None:
    """Whether there is such a solver.

    Raises:
        UnknownNameError: there is none.
        UnsupportedError: there is, in compiled code.
        BrokenPluginError: there is, in a plugin that does not load.
    """
    if method not in BUILT_IN and method not in methods():
        raise unknown_name("exact method", method, methods(), REMOVED)
    if method != "auto" and solvers.kind(method) is None:
        raise UnsupportedError(f"the exact method {method!r} needs compiled code (Numba), and this is NumPy alone")


def check_order(model: Model, order: Sequence[int]) -> tuple[int, ...]:
    """The order as integers.

    Raises:
        ModelError: it is no order of the model's variables.
    """
    try:
        listed = tuple(map(operator.index, order))
    except TypeError:
        listed = ()
    if sorted(listed) != list(range(model.num_variables)):
        raise ModelError(f"{model.name}: order= must name each of its {model.num_variables} variables once")
    return listed


def candidates(
    problem: Problem,
    method: str,
    solvers: Solvers,
    *,
    sampling: bool,
    plugins_last: bool | None = None,
) -> Iterator[Solver]:
    """The solvers that fit, cheap ones first, the others by their cost; made only when they are asked for.

    Plugins' solvers are taken by their cost, after all others (`plugins_last`), or not at all (False).
    """
    if method == "auto":
        return _by_cost(problem, solvers, plugins_last, sampling=sampling)
    return _build_method(problem, method, solvers, sampling=sampling)


def _build_method(problem: Problem, method: str, solvers: Solvers, *, sampling: bool) -> Iterator[Solver]:
    kind = solvers.kind(method)
    # `check_method` has refused unknown names.
    assert kind is not None
    if sampling and not kind.can_sample:
        raise UnsupportedError(f"the exact method {method!r} gives no samples; use method='auto'")
    try:
        solver = kind.build(problem)
        # A solver that the caller names is only limited by the caller's budget.
        solver.is_named, solver.most_seconds = True, math.inf
        yield solver
    except NotApplicableError as refusal:
        raise UnsupportedError(f"{problem.name}: the exact method {method!r} needs {refusal}") from None


def _by_cost(problem: Problem, solvers: Solvers, plugins_last: bool | None, *, sampling: bool) -> Iterator[Solver]:
    size = len(problem.cardinalities)
    enough = max(_CHEAP, solvers.search_seconds(size))
    costly: list[Solver] = []
    for stage in solvers.stages(size):
        # An order is worth no more than an answer that there is without one.
        problem.search_seconds = min(problem.search_seconds, *(SEARCH_SHARE * s.seconds for s in costly), math.inf)
        solvers_of_stage = _applicable(problem, stage, solvers, sampling=sampling)
        yield from sorted((s for s in solvers_of_stage if s.seconds <= enough), key=lambda s: s.seconds)
        costly += [s for s in solvers_of_stage if s.seconds > enough]
    if plugins_last is None:
        costly += _applicable(problem, plugin_names(), solvers, sampling=sampling)
    yield from sorted(costly, key=lambda s: s.seconds * s.risk)
    if plugins_last:
        solvers_of_stage = _applicable(problem, plugin_names(), solvers, sampling=sampling)
        yield from sorted(solvers_of_stage, key=lambda s: s.seconds)


def _applicable(problem: Problem, stage: tuple[str, ...], solvers: Solvers, *, sampling: bool) -> list[Solver]:
    """The solvers of a stage that fit, up to one that takes next to nothing."""
    applicable: list[Solver] = []
    for name in stage:
        try:
            kind = solvers.kind(name)
            if kind is None or (sampling and not kind.can_sample) or kind.passed_by(problem):
                continue
            applicable.append(kind.build(problem))
            if applicable[-1].seconds < solvers.nothing:
                break
        except BrokenPluginError as error:
            left_out(str(error))
        except MissingPackageError as why:
            problem.remarks.append(f"the exact method {name!r} needs {why}")
        except NotApplicableError:
            continue
    return applicable


@dataclass(frozen=True)
class Limits:
    """What an exact answer may take.

    Attributes:
        max_bytes: memory.
        seconds: by prediction, `DEFAULT_SECONDS` unless the caller has a budget.
        slicing: whether what is above the memory is taken a slice at a time.
    """

    max_bytes: int
    seconds: float = math.inf
    slicing: bool = False


def first_answer(
    problem: Problem, solvers: Iterator[Solver], limits: Limits, action: Callable[[Solver], T], *, marginals: bool
) -> tuple[Solver, T]:
    """The first solver that gives a result, and the result.

    Raises:
        ModelError: Z = 0.
        IntractableError: none does within these limits.
    """
    refusals: list[tuple[float, str]] = []
    end = deadline.now() + max(UNPREDICTED_SHARE * limits.seconds, SHORTEST)
    for whole in solvers:
        for solver in _solver_and_fallbacks(whole, limits, marginals=marginals):
            solver.most_seconds = min(solver.most_seconds, max(end - deadline.now(), 0.0))
            seconds = solver.predict_seconds(marginals=marginals)
            if solver.memory(marginals=marginals) > limits.max_bytes or seconds > limits.seconds:
                refusals.append(_refusal(solver, limits, marginals=marginals))
                if hasattr(solver, "order") and solver.complete and not goatd.is_installed():
                    problem.remarks.append("the package goatd finds better elimination orders: pip install goatd")
                continue
            if solver.most_seconds == 0.0:
                problem.remarks.append(f"no time was left for {solver.name}")
                continue
            left = seconds if solver.predictable else math.nan
            report_progress(Progress(0, getattr(solver, "count", 1), left, solver.memory(marginals=marginals)))
            try:
                return solver, action(solver)
            except ZeroWeightError:
                raise ModelError(
                    f"{problem.name}: no state has positive weight, so Z = 0; check its zeros and its evidence"
                ) from None
            except OverflowError:
                refusals.append((math.inf, f"{solver.name} meets sums beyond the range of float64"))
            except GaveUpError as why:
                problem.remarks.append(str(why))
            except (PrecisionError, NotImplementedError) as why:
                refusals.append((math.inf, str(why)))
    least = [sentence for _, sentence in sorted(refusals)[:1]]
    raise IntractableError(f"{problem.name}: no exact answer: {'; '.join(dict.fromkeys([*least, *problem.remarks]))}")


def _solver_and_fallbacks(whole: Solver, limits: Limits, *, marginals: bool) -> Iterator[Solver]:
    """The solver, and where it does not answer its fallbacks and slices, by their time."""
    whole.most_bytes = limits.max_bytes
    yield whole
    rest = [*whole.fallbacks()]
    if limits.slicing and whole.memory(marginals=marginals) > limits.max_bytes:
        slices = [whole.slice(limits.max_bytes, marginals=marginals)]
        rest += [solver for solver in slices if solver is not None]
    for solver in rest:
        solver.most_bytes = limits.max_bytes
    yield from sorted(rest, key=lambda solver: solver.predict_seconds(marginals=marginals))


def _refusal(solver: Solver, limits: Limits, *, marginals: bool) -> tuple[float, str]:
    """What the way needs, to sort by, and the sentence that says both of its figures."""
    needed, seconds = solver.memory(marginals=marginals), solver.predict_seconds(marginals=marginals)
    allowed = f"{_format_bytes(limits.max_bytes)} is allowed (max_gib)"
    if limits.seconds < math.inf:
        allowed += f" and {limits.seconds:g} s (budget)"
    took = f"{_format_bytes(needed)} of memory and {format_seconds(seconds)}, and {allowed}"
    if (count := getattr(getattr(solver, "order", None), "unsearched", 0)) > 0:
        return math.inf, f"{solver.name} searches for no order of {count} variables that are in no chain and on no tree"
    if not solver.complete:
        return needed, f"all orders of {solver.name} meet width {solver.width} or more, which takes at least {took}"
    width = "" if solver.width is None else f"meets width {solver.width} and "
    slices = getattr(solver, "count", 1)
    in_slices = "" if slices == 1 else f" in {slices} slices"
    return needed, f"{solver.name}{solver.detail} {width}would take{in_slices} {took}"


def _format_bytes(count: int) -> str:
    if count >= 2**80:  # more than a million EiB
        return f"2^{count.bit_length() - 1 - 60} EiB"
    value = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if value < 1024:
            return f"{value:.3g} {unit}"
        value /= 1024
    return f"{value:.3g} EiB"
