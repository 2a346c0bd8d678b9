"""Annealed populations, whose estimates of Z are bet on: a probable lower bound, whatever mixes.

Each run of `smc` gives an independent Ẑ >= 0 with mean Z, so that the martingale of `methods.buckets.betting` that bets
on a larger mean needs no bound on them. From above they tell nothing.

Annealing backwards, from draws of the model to β = 0: an upper bound, if the draws are what they are taken for.

For x of p and transitions that keep p*^β, with β falling from 1 to 0 in K steps, X = Π_k p*(x_k)^(β_k+1 - β_k) has the
mean Z_0 / Z: what is bet on its being larger is a lower bound on 1 / Z, and so an upper one on Z. Hard zeros are soft
where β < 1, by which the mean is smaller still. The draws are the last states of tempering, one of each ladder. That
they are draws of p nobody knows: a tempering without round trips is refused, and the bound is *assumed*.

Grosse, Ghahramani and Adams, "Sandwiching the marginal likelihood using bidirectional Monte Carlo", 2015.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

from spinbench.api import Bound, State
from spinbench.api.estimate import verdict
from spinbench.api.trace import FloatArray, Trace
from spinbench.errors import UnsupportedError
from spinbench.foundation import deadline
from spinbench.inference import binding, driver, initial_states
from spinbench.inference.bracketing.interval import Finding
from spinbench.methods.buckets import betting
from spinbench.methods.gibbs.host_arrays import HostArrays
from spinbench.methods.tempering import estimates
from spinbench.models import Model

Clock = Callable[[], float]

NAME = "smc"
# Populations that are annealed in parallel.
CHAINS = 8
# Bins of the weights' histogram, from which the betting bound is computed.
_BINS = 200
REVERSE = "reverse annealing"
# Ladders of the tempering, one final state each.
LADDERS = 64
# Share of the time for parallel tempering, and share of that for its burn-in: the bound assumes that the final states
# are draws of the model.
TEMPERING, BURN_IN = 0.6, 0.25
# Smallest and largest number of temperatures.
TEMPERATURES = 32, 2**16


def anneal(
    model: Model, backend: str, seed: int, seconds: float, delta: float, clock: Clock = deadline.now
) -> Iterator[Finding]:
    """A bound after the first runs, and after twice as many, again and again, for so many seconds.

    Raises:
        UnsupportedError: 1-of-K groups.
    """
    until, planned = clock() + seconds, binding.plan_simplified(model, NAME, backend, {})
    state = planned.initial_state(seed, CHAINS)
    logs, looked, over = np.zeros(0), 0, False
    while not over:
        state, statistics = planned.engine.advance(state, 1)
        logs, over = np.append(logs, statistics["z"] + float(planned.tables.base)), clock() >= until
        if (over or len(logs) >= 2 * looked) and (bound := below(logs, delta)) > -np.inf:
            looked = len(logs)
            yield Finding((Bound(bound - planned.slack, "lower", "probable", delta, NAME),), by=NAME)


def below(logs: FloatArray, delta: float) -> float:
    """Below log E X with a probability of at least 1 - delta, from the logs (n,) of independent X >= 0."""
    top = float(logs.max())
    if not top > -np.inf:
        return -np.inf
    x = np.sort(np.exp(logs - top))[::-1]
    edges = np.append(x[np.unique(np.linspace(0, len(x) - 1, _BINS).astype(int))], 0.0)
    bins = np.minimum(np.searchsorted(-edges, -x, side="right") - 1, len(edges) - 2)
    counts = np.bincount(bins, minlength=len(edges) - 1).astype(np.float64)
    sums = np.bincount(bins, x, minlength=len(edges) - 1).astype(np.float64)
    total, square = float(np.log(x.sum())), float(np.log((x**2).sum()))
    return top + betting.lower(betting.Weights(float(len(x)), total, square, edges, counts, sums), delta)


def anneal_backwards(
    model: Model, seed: int, seconds: float, delta: float, clock: Clock = deadline.now
) -> Iterator[Finding]:
    """One bound, after so many seconds.

    Raises:
        UnsupportedError: 1-of-K groups, or tempering whose last states are not to be taken for draws.
    """
    begun = clock()
    planned = binding.plan_simplified(model, "pt", "numpy", {}, tier="generic")
    state, trace = _run_tempering(planned, seed, begun + TEMPERING * seconds, clock)
    moving, estimate = estimates.summarise_travel(trace), planned.estimate_from(trace)
    if not moving.is_sufficient or "not mixed" in verdict(estimate):
        raise UnsupportedError(
            f"tempering has not mixed ({moving.trips:g} round trips of {moving.replicas} replicas), so that its last "
            "states are taken for no draws; give more seconds"
        )
    logs = _anneal_in_reverse(planned, state, np.random.default_rng([seed, 0x524556]), begun + seconds, clock)
    value = float(planned.tables.base) - below(logs, delta) + planned.slack
    yield Finding((Bound(value, "upper", "assumed", delta, REVERSE),), by=REVERSE)


def _run_tempering(planned: binding.BoundMethod, seed: int, until: float, clock: Clock) -> tuple[State, Trace]:
    """The state of all ladders, and what they have shown since burn-in."""
    method, model = planned.method, planned.model
    start, since = initial_states.spread_starts(model, LADDERS, seed, True), clock()
    state = planned.engine.init(seed, start)
    for end in driver.WINDOWS:
        state = planned.engine.warm(state, 1)
        while clock() < since + BURN_IN * end * (until - since):
            state = planned.engine.warm(state, 1)
        state = planned.engine.adapt(state, end == driver.WINDOWS[-1])
    trace, steps = Trace(method.reductions, LADDERS, start.size), 1
    while not trace.samples or clock() < until:
        if trace.full:
            trace.merge()
            steps *= 2
        state, statistics = planned.engine.advance(state, steps)
        trace.add(statistics, steps)
    return state, trace


def _anneal_in_reverse(
    planned: binding.BoundMethod, state: State, rng: np.random.Generator, until: float, clock: Clock
) -> FloatArray:
    """(L,) log X, along the rungs where tempering has put them; how finely, the clock alone says."""
    inner, tables = state[2], planned.tables.replicas
    cold = inner.places.slot[-1]
    x = np.array(inner.x[:, cold, np.arange(LADDERS)])
    host = tables.over(HostArrays())
    since = clock()
    x, _ = host.sweep(rng, tables, x, np.ones(LADDERS))
    host.log_weights(tables, x)
    # As many steps as the time allows: the bound holds for any number and is tighter for more.
    count = int(np.clip((until - clock()) / max(clock() - since, 1e-6), *TEMPERATURES))
    rungs = np.asarray(inner.rungs.betas)
    path = np.interp(np.linspace(len(rungs) - 1, 0, count + 1), np.arange(len(rungs)), rungs)
    logs = np.zeros(LADDERS)
    for above, beta in pairwise(path.tolist()):
        logs += (beta - above) * np.asarray(host.log_weights(tables, x)[0])
        x, _ = host.sweep(rng, tables, x, np.full(LADDERS, beta))
    return logs
