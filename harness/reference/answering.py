"""Exact log Z, marginals and samples, by a table of solvers, and read from the disk where they are known."""

from __future__ import annotations

import functools
import math
import operator
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, cast

import numpy as np

from spinbench.errors import IntractableError, ModelError
from spinbench.models import FactorGraph, Model, PairwiseModel, wide_models
from spinbench.models.forney.model import ForneyModel
from spinbench.models.simplification import Simplification
from spinbench.reference import cache as store
from spinbench.reference.answer import Cost, ExactAnswer
from spinbench.reference.choice import DEFAULT_SECONDS, Limits, candidates, check_method, first
from spinbench.reference.memory import default_max_bytes
from spinbench.reference.network import FloatArray, IntArray, split
from spinbench.reference.orders.order import SEARCH_SECONDS, SEARCH_SHARE, Order, order_cost
from spinbench.reference.problem import Problem
from spinbench.reference.solver import Solver
from spinbench.reference.solvers import BUILT_IN, NUMPY_SOLVERS, Solvers

# Each of many parts of a model gets so small a part of the memory, as time grows with it.
PARTS = 64

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
    take out all that sums out of it (`models.simplify`), and then find the marginals of that part by part, each in a
    64th of the memory; those that are out of reach are NaN.

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
    max_bytes = default_max_bytes() if max_bytes is None else max_bytes
    listed = None if order is None else _check_order(model, order)
    if cache and order is None and (found := store.load(model, method, max_bytes, marginals=marginals)) is not None:
        return found
    begin, loaded = time.perf_counter(), solvers.loading_seconds()
    request = _Request(method, Limits(max_bytes, seconds, slicing=True), solvers, listed)
    solver, log_z, flat, variables = _answer(model, request, marginals=marginals)
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
        cost=_cost(solver, variables, model.num_variables, marginals=marginals),
    )
    if cache and order is None:
        store.save(model, method, answer, max_bytes)
    return answer


def _check_order(model: Model, order: Sequence[int]) -> tuple[int, ...]:
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


def _cost(solver: Solver, variables: Sequence[int], num_variables: int, *, marginals: bool) -> Cost:
    """What the solver said beforehand; `variables` are the model's of the problem's, of `num_variables` in all."""
    bytes_, seconds = solver.memory(marginals=marginals), solver.predict_seconds(marginals=marginals)
    slices = getattr(solver, "count", 1)
    order: Order | None = getattr(getattr(solver, "whole", solver), "order", None)
    if order is None:
        return Cost(bytes_, seconds)
    listed = [variables[v] for v in order.order.tolist()]
    fell_away = sorted(set(range(num_variables)).difference(listed))
    return Cost(bytes_, seconds, order.log2_total, slices, (*fell_away, *listed))


@dataclass(frozen=True)
class _Request:
    """Which solver, of which, within which limits, along which order of the model's variables."""

    method: str
    limits: Limits
    solvers: Solvers
    order: tuple[int, ...] | None = None
    search_seconds: float = SEARCH_SECONDS

    def first(
        self,
        problem: Problem,
        action: Callable[[Solver], T],
        *,
        marginals: bool,
        sampling: bool = False,
        plugins_last: bool | None = None,
    ) -> tuple[Solver, T]:
        chosen = candidates(problem, self.method, self.solvers, sampling=sampling, plugins_last=plugins_last)
        return first(problem, chosen, self.limits, action, marginals=marginals)

    def problem(self, model: Model, variables: Sequence[int] | None = None) -> Problem:
        """Of a model whose variables are these of the one that was given; None: the same."""
        seconds = min(self.search_seconds, SEARCH_SHARE * self.limits.seconds)
        problem = Problem(model, search_seconds=seconds, max_bytes=self.limits.max_bytes)
        if self.order is None:
            return problem
        place = {v: k for k, v in enumerate(range(model.num_variables) if variables is None else variables)}
        sources = problem.origin.carriers.tolist()
        listed = dict.fromkeys(sources[place[v]] for v in self.order if v in place)
        problem.order = order_cost([u for u in listed if u >= 0], problem.cardinalities, problem.pairs)
        return problem


# The solver, log Z, the probabilities of all variables one after another, and the model's variable of each of the
# problem's.
Found = tuple[Solver, float, "FloatArray | None", list[int]]


def _answer(model: Model, request: _Request, *, marginals: bool) -> Found:
    core = _core(model, request.method)
    plugins_last = True if marginals else None  # since they may give log Z alone
    if core is None:
        return _whole(model, request, marginals=marginals, plugins_last=plugins_last)
    places = wide_models.core_variables(core)
    if not marginals:
        return _whole(core.model, request, places, marginals=False)
    try:
        return _whole(model, request, marginals=True, plugins_last=False)
    except IntractableError:
        solver, log_z, flat, variables = _whole(core.model, request, places, marginals=True, plugins_last=True)
    limits = Limits(request.limits.max_bytes // PARTS, request.limits.seconds)

    def solve_part(part: FactorGraph) -> list[FloatArray]:
        if solver.name not in BUILT_IN:  # the core is too wide for elimination, and this is no narrower
            raise IntractableError(f"{part.name}: too wide")
        alone = replace(request, limits=limits, order=None, search_seconds=0.0)  # of many parts, each is small
        flat = _whole(part, alone, marginals=True, plugins_last=False)[2]
        return split(cast("FloatArray", flat), part.cardinalities)

    of_core = split(cast("FloatArray", flat), core.model.cardinalities)
    return solver, log_z, np.concatenate(wide_models.marginals(core, of_core, solve_part)), variables


def _core(model: Model, method: str) -> Simplification | None:
    """What is left of a model of which something sums out; None for other models, and for solvers asked by name."""
    if isinstance(model, PairwiseModel) or method not in ("auto", "bucket_tree", "ganak"):
        return None
    core = wide_models.extract_core(model)
    return core if core.step is not None and core.step.conditionals else None


def _whole(
    model: Model,
    request: _Request,
    variables: Sequence[int] | None = None,
    *,
    marginals: bool,
    plugins_last: bool | None = None,
) -> Found:
    problem = request.problem(model, variables)
    solve_finite = functools.partial(_solve_finite, marginals=marginals)
    solver, (log_z, flat) = request.first(problem, solve_finite, marginals=marginals, plugins_last=plugins_last)
    given = list(range(model.num_variables) if variables is None else variables)
    own = [given[v] for v in problem.representatives]
    return solver, log_z, None if flat is None else problem.decode_marginals(flat), own


def _solve_finite(solver: Solver, *, marginals: bool) -> tuple[float, FloatArray | None]:
    """log Z, and marginals or None.

    Raises:
        OverflowError: log Z is infinite or NaN.
    """
    log_z, flat = solver.solve(marginals=marginals)
    if not math.isfinite(log_z):
        raise OverflowError
    return log_z, flat


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
    request = _Request(method, Limits(default_max_bytes() if max_bytes is None else max_bytes), solvers)
    try:
        return _draw(model, count, rng, request)
    except IntractableError:
        core = _core(model, method)
        if core is None or core.step is None:
            raise
        return core.step.lift(_draw(core.model, count, rng, request), rng)


def _draw(model: Model, count: int, rng: np.random.Generator, request: _Request) -> IntArray:
    problem = Problem(model)
    _, states = request.first(problem, lambda solver: solver.sample(count, rng), marginals=True, sampling=True)
    return problem.origin.lift(states)


def forney_log_z(model: ForneyModel, *, max_bytes: int | None = None) -> float:
    """log Z of a Forney model.

    Raises:
        ModelError: Z = 0.
        IntractableError: too wide for the memory.
    """
    if not model.num_edges:
        return model.log_constant
    return solve(model.to_factor_graph(), marginals=False, cache=False, max_bytes=max_bytes).log_z
