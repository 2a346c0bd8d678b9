"""Chains that end in heavy states: annealed down a ladder of temperatures, or run where nearly all variables stay."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from spinbench.api import Estimate, State
from spinbench.api.trace import FloatArray, Trace
from spinbench.errors import BudgetError, UnsupportedError
from spinbench.foundation import deadline
from spinbench.foundation.remarks import format_seconds
from spinbench.inference import binding, driver
from spinbench.inference.budget import Budget
from spinbench.inference.notebook.progress import show_progress
from spinbench.inference.request import Request
from spinbench.inference.stored_states.recorder import check_states
from spinbench.models import FactorGraph, Model, PairwiseModel

IntArray = npt.NDArray[np.int64]

# Default and smallest number of temperatures.
RUNGS, FEWEST = 64, 8
# Approximate seconds of sweeps between progress reports.
CALL = 0.25

# Relative difference of log weights up to which two chains count as equally good.
ALIKE = 1e-9
# At the last temperature, a difference of log weights at the low percentile `SMALL` makes a state this many times less
# likely than its variable's best state.
FROZEN = 100.0
# Percentile of the differences: the few smallest would make the ladder so cold that all other variables freeze at once.
SMALL = 10.0


@dataclass
class Annealed:
    """What chains ended in.

    Attributes:
        states: (N, C) of each run, in the end.
        sweeps: of all runs together.
        compile_seconds, run_seconds: of them.
    """

    states: list[IntArray] = dataclasses.field(default_factory=list)
    sweeps: int = 0
    compile_seconds: float = 0.0
    run_seconds: float = 0.0


def anneal(request: Request, bound: binding.BoundMethod, start: np.ndarray, hot: float, cold: float) -> Annealed:
    """One run of as many sweeps as the budget has, or runs of twice as many again and again while there are seconds.

    Simulated annealing by the sweeps of a sampler, down a geometric ladder of temperatures.

    Args:
        request: of a heaviest state.
        bound: the method; its engine's `temper` sweeps at a temperature.
        start: (N, C) states.
        hot, cold: inverse temperatures of the ladder's ends.

    Raises:
        UnsupportedError: the engine knows no temperatures, or does not tell states.
        InvalidResultError: what it tells are none.
        BudgetError: the seconds are over before a run can end.
    """
    annealed, engine, budget = Annealed(), bound.engine, request.budget
    with show_progress(request.who, budget, lambda: annealed.sweeps, start.shape[1]):
        since = deadline.now()
        state = engine.init(request.options.seed, start)
        state, slopes = engine.temper(state, np.array([hot]), 1)
        if not slopes.shape[-1] or engine.states(state) is None:
            reason = "knows no temperatures to anneal by with these settings"
            raise UnsupportedError(f"target='map' was given; {request.who} {reason}")
        compiled = deadline.now()
        state, _ = engine.temper(state, np.array([hot]), 1)
        per_sweep = deadline.now() - compiled
        annealed.sweeps, annealed.compile_seconds, annealed.run_seconds = 2, compiled - since, per_sweep
        at_once = max(1, math.ceil(CALL / max(per_sweep, 1e-9)))
        for rungs, sweeps in _rungs_and_sweeps(budget, per_sweep, annealed):
            begun = deadline.now()
            for betas, each in _calls(np.geomspace(hot, cold, rungs), sweeps, at_once):
                state, _ = engine.temper(state, betas, each)
                annealed.sweeps += each * len(betas)
            annealed.states.append(_last_states(request, bound, state))
            annealed.run_seconds += deadline.now() - begun
    return annealed


def run_on_cooled_model(request: Request, bound: binding.BoundMethod, start: np.ndarray) -> Annealed:
    """Run a method that is bound to a cooled model until its budget is spent: where its chains are then.

    Args:
        request: of a heaviest state.
        bound: the method.
        start: (N, C) states.

    Raises:
        UnsupportedError: the engine does not tell states.
        InvalidResultError: what it tells are none.
        BudgetError: the seconds are over before a sample.
    """
    method, budget, chains = bound.method, request.budget, start.shape[1]
    trace = Trace(method.reductions, chains)
    warm_up = partial(method.warm_up, bound.tables)
    with show_progress(request.who, budget, lambda: trace.samples, chains):
        run = driver.drive(
            bound.engine,
            trace,
            lambda trace: Estimate(),
            budget,
            start=start,
            seed=request.options.seed,
            warm_up=warm_up,
            checkpoints=1,
        )
    states = _last_states(request, bound, run.state)
    return Annealed([states], run.burn_in + trace.samples, run.compile_seconds, run.burn_in_seconds + run.run_seconds)


def _last_states(request: Request, bound: binding.BoundMethod, state: State) -> IntArray:
    states = bound.engine.states(state)
    if states is None:
        raise UnsupportedError(f"target='map' was given; {request.who} hands over no states")
    return check_states(states, bound.model, request.who)


def _rungs_and_sweeps(budget: Budget, per_sweep: float, annealed: Annealed) -> Iterator[tuple[int, int]]:
    """(rungs, sweeps of each chain) of each run."""
    if budget.seconds is None:
        sweeps = budget.samples or 1
        yield min(RUNGS, sweeps), sweeps
        return
    rungs = min(RUNGS, int(budget.seconds / (2 * max(per_sweep, 1e-9))))
    if rungs < FEWEST:
        raise BudgetError(
            f"a budget of {budget} is too short: a sweep takes {format_seconds(per_sweep)}, and a run down the "
            f"temperatures at least {FEWEST}; give more seconds or fewer chains"
        )
    sweeps, took = rungs, 0.0
    while annealed.run_seconds + took <= budget.seconds:
        before = annealed.run_seconds
        yield rungs, sweeps
        took = annealed.run_seconds - before
        if annealed.run_seconds + 2 * took <= budget.seconds:
            sweeps, took = 2 * sweeps, 2 * took


def _calls(betas: FloatArray, sweeps: int, at_once: int) -> Iterator[tuple[FloatArray, int]]:
    """Rungs of a run and sweeps at each of them, about `at_once` sweeps together and no less than a rung."""
    each, more = divmod(sweeps, len(betas))
    for part, count in ((betas[:more], each + 1), (betas[more:], each)):
        width = max(1, at_once // max(count, 1))
        for first in range(0, len(part), width):
            yield part[first : first + width], count


def count_hits(logs: FloatArray) -> int:
    """How many chains weigh as much as the heaviest, by their log weights (S,); 0 where none has positive weight."""
    top = float(logs.max())
    if top > -np.inf:
        return int((logs >= top - ALIKE * max(abs(top), 1.0)).sum())
    return 0


def scale_log_weights(model: Model, beta: float) -> Model:
    """p*^β; zeros stay zeros."""
    if isinstance(model, PairwiseModel):
        return dataclasses.replace(
            model,
            biases=beta * model.biases,
            couplings=beta * model.couplings,
            log_constant=beta * model.log_constant,
            origin=None,
        )
    factors = [(factor.scope, beta * factor.log_table) for factor in model.factors]
    return FactorGraph.from_log_tables(
        model.cardinalities, factors, log_constant=beta * model.log_constant, name=model.name
    )


def hot_and_cold(model: Model) -> tuple[float, float]:
    """β at which no variable is held by its neighbours, and β at which nearly all stay: as dwave-samplers chooses them.

    Hot is where the variable that is held most would be flipped with probability 1/3; cold is 1 at least where there
    are hard zeros, which are soft below.
    """
    ranges, owners = _ranges(model)
    spans = np.bincount(owners[1], ranges[owners[0]], minlength=1)
    if not spans.max() > 0:
        return 1.0, 1.0
    hot = math.log(2.0) / float(spans.max())
    cold = max(math.log(FROZEN) / float(np.percentile(ranges[ranges > 0], SMALL)), 2 * hot)
    if not isinstance(model, PairwiseModel) and model.has_zeros:
        cold = max(cold, 1.0)
    return hot, cold


def _ranges(model: Model) -> tuple[FloatArray, IntArray]:
    """(F,) by how much each term can change the log weight, and (2, P) pairs of terms and variables."""
    if isinstance(model, PairwiseModel):
        n, e = model.num_variables, model.num_edges
        terms = np.concatenate([np.arange(n), np.repeat(np.arange(n, n + e), 2)])
        variables = np.concatenate([np.arange(n), model.edges.ravel()])
        return np.abs(np.concatenate([model.biases, model.couplings])), np.stack([terms, variables])
    ranges = [0.0, *(_range(factor.log_table) for factor in model.factors)]
    pairs = [(k + 1, v) for k, factor in enumerate(model.factors) for v in factor.scope]
    return np.array(ranges), np.array(pairs, dtype=np.int64).reshape(-1, 2).T


def _range(table: FloatArray) -> float:
    finite = table[np.isfinite(table)]
    if not finite.size:
        return 0.0
    return float(finite.max() - finite.min())
