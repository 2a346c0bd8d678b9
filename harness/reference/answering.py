"""Exact log Z, marginals and samples, by a table of solvers, and read from the disk where they are known."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, cast

import numpy as np

from spinbench.errors import IntractableError, ModelError
from spinbench.models import FactorGraph, Model, PairwiseModel, wide_models
from spinbench.models.simplification import Simplification
from spinbench.reference import cache as store
from spinbench.reference.answer import Cost, ExactAnswer
from spinbench.reference.choice import DEFAULT_SECONDS, Limits, candidates, check_method, check_order, first_answer
from spinbench.reference.memory import allowed_bytes
from spinbench.reference.network import FloatArray, IntArray, split
from spinbench.reference.orders.order import SEARCH_SECONDS, SEARCH_SHARE, Order, order_cost
from spinbench.reference.orders.prediction import predict_search_seconds
from spinbench.reference.problem import Problem
from spinbench.reference.solver import Solver
from spinbench.reference.solvers import BUILT_IN, NUMPY_SOLVERS, Solvers

# Share of the seconds after which no further part of a model is solved for its marginals: log Z is known by then.
PARTS_SHARE = 0.5
# Seconds per factor of simplifying a factor graph, most of the time on relational models of UAI-2014.
FACTOR_SECONDS = 1.5e-5

# Largest sum of a model's |log weights|: beyond it infinities would cancel without a word.
MAX_SUM = 1e300
# Seconds per variable of planning a part: 1.1e-4 to 4e-4 on networks of UAI-2006, 2e-5 on chains of 30,000 variables.
PLANNING_SECONDS = 5e-5

T = TypeVar("T")


def solve(
    model: Model,
    *,
    method: str = "auto",
    marginals: bool = True,
    max_bytes: int | None = None,
    seconds: float = DEFAULT_SECONDS,
    order: Sequence[int] | None = None,
    cache: bool = True,
    solvers: Solvers = NUMPY_SOLVERS,
) -> ExactAnswer:
    """Exact log Z and, unless turned off, all single-variable marginals.

    What memory does not hold goes a slice at a time. Where a factor graph is too wide even so, "auto" and "bucket_tree"
    take out all that sums out of it (`models.simplify`), and then find the marginals of that part by part, in half of
    the seconds; those that are out of reach are NaN.

    Args:
        model: any model; 1-of-K groups, hard zeros and variables of one state are fine.
        method: one of `methods()`; "auto" takes the cheapest that fits the model, the memory and the time.
        marginals: whether marginals are wanted.
        max_bytes: memory that the solver may take, checked before it takes any; None: `default_max_bytes`.
        seconds: predicted time beyond which the answer is refused.
        order: variables of the model in which elimination goes; None: the best order found. Those that the answer does
            not need are skipped.
        cache: whether to look the answer up, and to store it, on disk.
        solvers: what to choose from; `spinbench.inference.answers.solve` has compiled ones, too.

    Raises:
        ModelError: no state has positive weight (Z = 0), or `order` is no order of the model's variables.
        IntractableError: too wide for memory and time, or too many states.
        UnsupportedError: the named method does not fit this kind of model, or is not among `solvers`.
        UnknownNameError: there is no such method.
    """
    check_method(method, solvers)
    _check_sums(model)
    listed = None if order is None else check_order(model, order)
    limits = Limits(allowed_bytes(max_bytes), seconds, slicing=True)
    if cache and order is None and (stored := store.load(model, method, limits, marginals=marginals)) is not None:
        return stored
    begin, loaded = time.perf_counter(), solvers.loading_seconds()
    request = _Request(method, limits, solvers, listed)
    solution = _solve_or_split(model, request, marginals=marginals)
    elapsed, compiling = time.perf_counter() - begin, solvers.loading_seconds() - loaded
    solver = solution.solver
    answer = ExactAnswer(
        solution.log_z + 0.0,  # avoids -0.0
        solution.flat,
        model.cardinalities,
        solver.name,
        solver.width,
        seconds=elapsed - compiling,
        compile_seconds=compiling,
        backend=solver.backend,
        cost=_cost(solution, model, marginals=marginals),
    )
    if cache and order is None:
        store.save(model, method, answer, limits)
    return answer


def _check_sums(model: Model) -> None:
    """Refuse a model whose sums of log weights could leave the range of float64, where infinities would cancel."""
    with np.errstate(over="ignore"):
        largest = model.reach.sum() + abs(model.log_constant)
    if not largest < MAX_SUM:
        raise IntractableError(
            f"{model.name}: no exact answer: the sizes of its log weights add up to {largest:.3g}, and sums below "
            f"{MAX_SUM:g} are needed"
        )


def _cost(solution: _Solution, model: Model, *, marginals: bool) -> Cost:
    """What was predicted."""
    solver = solution.solver
    bytes_, slices = solver.memory(marginals=marginals), getattr(solver, "count", 1)
    seconds = solution.predicted_seconds if solver.predictable else math.nan
    if isinstance(model, FactorGraph):
        seconds += FACTOR_SECONDS * len(model.factors)
    order = _order_of(solver)
    if order is None:
        return Cost(bytes_, seconds)
    listed = [solution.variables[v] for v in order.order.tolist()]
    fell_away = sorted(set(range(model.num_variables)).difference(listed))
    return Cost(bytes_, seconds, order.log2_total, slices, (*fell_away, *listed))


def _order_of(solver: Solver) -> Order | None:
    """Of a whole elimination, or of that which a sliced one is made of."""
    order: Order | None = getattr(getattr(solver, "whole", solver), "order", None)
    return order


@dataclass(frozen=True)
class _Request:
    """Which solver, of which, within which limits, along which order of the model's variables."""

    method: str
    limits: Limits
    solvers: Solvers
    order: tuple[int, ...] | None = None
    search_seconds: float = SEARCH_SECONDS

    def first_answer(
        self,
        problem: Problem,
        action: Callable[[Solver], T],
        *,
        marginals: bool,
        sampling: bool = False,
        plugins_last: bool | None = None,
    ) -> tuple[Solver, T]:
        chosen = candidates(problem, self.method, self.solvers, sampling=sampling, plugins_last=plugins_last)
        return first_answer(problem, chosen, self.limits, action, marginals=marginals)

    def problem(self, model: Model, variables: Sequence[int]) -> Problem:
        """Of a model whose variables are these of the one that was given."""
        seconds = min(self.search_seconds, SEARCH_SHARE * self.limits.seconds)
        problem = Problem(model, search_seconds=seconds, max_bytes=self.limits.max_bytes)
        if self.order is None:
            return problem
        place = {v: k for k, v in enumerate(variables)}
        sources = problem.origin.carriers.tolist()
        listed = dict.fromkeys(sources[place[v]] for v in self.order if v in place)
        problem.order = order_cost([u for u in listed if u >= 0], problem.cardinalities, problem.pairs)
        return problem


@dataclass(frozen=True)
class _Solution:
    """An answer.

    Attributes:
        solver: that gave it.
        log_z: natural logarithm of Z.
        flat: the probabilities of all variables one after another; None if they were not asked for.
        variables: the model's, of each of the solver's problem.
        predicted_seconds: that the search for its order and the sums were predicted to take.
    """

    solver: Solver
    log_z: float
    flat: FloatArray | None
    variables: Sequence[int]
    predicted_seconds: float


def _solve_or_split(model: Model, request: _Request, *, marginals: bool) -> _Solution:
    core = _extract_core(model, request.method)
    # For marginals plugins come last, since their solvers may give log Z alone.
    plugins_last = marginals or None
    all_variables = range(model.num_variables)
    if core is None:
        problem = request.problem(model, all_variables)
        return _solve_problem(problem, request, marginals=marginals, plugins_last=plugins_last)
    assert core.step is not None
    vain_seconds = 0.0
    if marginals and any(each.parents for each in core.step.conditionals):
        problem = request.problem(model, all_variables)
        try:
            return _solve_problem(problem, request, marginals=True, plugins_last=False)
        except IntractableError:
            plugins_last, vain_seconds = True, _predict_planning(problem, problem.order, request)
    variables = wide_models.core_variables(core)
    problem = request.problem(core.model, variables)
    solution = _solve_problem(problem, request, marginals=marginals, plugins_last=plugins_last)
    seconds = vain_seconds + solution.predicted_seconds
    listed = [variables[v] for v in solution.variables]
    solution = replace(solution, variables=listed, predicted_seconds=seconds)
    return _add_parts(core, solution, request) if marginals else solution


def _add_parts(core: Simplification, of_core: _Solution, request: _Request) -> _Solution:
    """With the marginals of what summed out, as far as they are in reach."""
    core_marginals = split(cast("FloatArray", of_core.flat), core.model.cardinalities)
    limits, begin, predicted = request.limits, time.perf_counter(), of_core.predicted_seconds

    def solve_part(part: FactorGraph) -> list[FloatArray]:
        nonlocal predicted
        left = PARTS_SHARE * limits.seconds - (time.perf_counter() - begin)
        # A plugin solved the core, which is too wide for elimination, or the time is over.
        if of_core.solver.name not in BUILT_IN or left < 0:
            raise IntractableError(f"{part.name}: out of reach")
        # without an order search: with many parts, each is small
        alone = replace(request, limits=Limits(limits.max_bytes, left), order=None, search_seconds=0.0)
        problem = alone.problem(part, range(part.num_variables))
        predicted += PLANNING_SECONDS * len(problem.cardinalities)
        solution = _solve_problem(problem, alone, marginals=True, plugins_last=False)
        predicted += solution.predicted_seconds
        return split(cast("FloatArray", solution.flat), part.cardinalities)

    flat = np.concatenate(wide_models.marginals(core, core_marginals, solve_part))
    return replace(of_core, flat=flat, predicted_seconds=predicted)


def _extract_core(model: Model, method: str) -> Simplification | None:
    """What is left of a model of which something sums out; None for other models, and for solvers asked by name."""
    if isinstance(model, PairwiseModel) or method not in ("auto", "bucket_tree", "ganak"):
        return None
    core = wide_models.extract_core(model)
    return core if core.step is not None and core.step.conditionals else None


def _solve_problem(problem: Problem, request: _Request, *, marginals: bool, plugins_last: bool | None) -> _Solution:
    def solve_finite(solver: Solver) -> _Solution:
        predicted, order = solver.predict_seconds(marginals=marginals), _order_of(solver)
        if order is not None:
            predicted += _predict_planning(problem, order, request)
        log_z, flat = solver.solve(marginals=marginals)
        if not math.isfinite(log_z):
            raise OverflowError
        if flat is not None:
            flat = problem.decode_marginals(flat)
        return _Solution(solver, log_z, flat, problem.representatives, predicted)

    return request.first_answer(problem, solve_finite, marginals=marginals, plugins_last=plugins_last)[1]


def _predict_planning(problem: Problem, order: Order, request: _Request) -> float:
    """Seconds until an elimination begins, or is refused: of its plan, and of the search for its order."""
    planning = PLANNING_SECONDS * len(problem.cardinalities)
    if request.order is not None:
        return planning
    return planning + predict_search_seconds(order, problem.search_seconds, problem.max_bytes)


def sample(
    model: Model,
    count: int,
    seed: int | np.random.Generator = 0,
    *,
    method: str = "auto",
    max_bytes: int | None = None,
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
    request = _Request(method, Limits(allowed_bytes(max_bytes)), solvers)
    try:
        return _draw(model, count, rng, request)
    except IntractableError:
        core = _extract_core(model, method)
        if core is None or core.step is None:
            raise
        return core.step.lift(_draw(core.model, count, rng, request), rng)


def _draw(model: Model, count: int, rng: np.random.Generator, request: _Request) -> IntArray:
    problem = Problem(model)
    _, states = request.first_answer(problem, lambda solver: solver.sample(count, rng), marginals=True, sampling=True)
    return problem.origin.lift(states)
