"""Annealing backwards, from draws of the model to β = 0: an upper bound, if the draws are what they are taken for.

For x of p and transitions that keep p*^β, with β falling from 1 to 0 in K steps, X = Π_k p*(x_k)^(β_k+1 - β_k) has the
mean Z_0 / Z: what is bet on its being larger is a lower bound on 1 / Z, and so an upper one on Z. Hard zeros are soft
where β < 1, by which the mean is smaller still. The draws are the last states of tempering, one of each ladder. That
they are draws of p nobody knows: a tempering without round trips is refused, and the bound is *assumed*.

Grosse, Ghahramani and Adams, "Sandwiching the marginal likelihood using bidirectional Monte Carlo", 2015.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from spinbench.api import State
from spinbench.api.bounds import Bound, BoundRequest, BoundSource, Finding
from spinbench.api.burn_in import WINDOWS
from spinbench.api.estimate import verdict
from spinbench.api.trace import FloatArray, Trace
from spinbench.errors import UnsupportedError
from spinbench.methods.buckets.betting import log_mean_below
from spinbench.methods.gibbs.host_arrays import HostArrays
from spinbench.methods.tempering import estimates
from spinbench.methods.tempering.pt import ParallelTempering

if TYPE_CHECKING:
    from spinbench.inference.binding import BoundMethod

Clock = Callable[[], float]

# Ladders of the tempering, one final state each.
LADDERS = 64
# Share of the time for parallel tempering, and share of that for its burn-in: the bound assumes that the final states
# are draws of the model.
TEMPERING, BURN_IN = 0.6, 0.25
# Smallest and largest number of temperatures.
TEMPERATURES = 32, 2**16


class ReverseAnnealing(BoundSource):
    """One bound, after so many seconds; none for 1-of-K groups, or of tempering whose last states are no draws."""

    name = "reverse annealing"
    share, order, assumed = 0.15, 95, True

    def find(self, request: BoundRequest) -> Iterator[Finding]:
        clock, delta = request.clock, request.delta
        begun, planned = clock(), request.plan(ParallelTempering.name, "numpy")
        state, trace = _run_tempering(planned, request.seed, begun + TEMPERING * request.seconds, clock)
        moving, estimate = estimates.summarise_travel(trace), planned.estimate_from(trace)
        if not moving.is_sufficient or "not mixed" in verdict(estimate):
            raise UnsupportedError(
                f"tempering has not mixed ({moving.trips:g} round trips of {moving.replicas} replicas), so that its "
                "last states are taken for no draws; give more seconds"
            )
        rng, until = np.random.default_rng([request.seed, 0x524556]), begun + request.seconds
        logs = _anneal_in_reverse(planned, state, rng, until, clock)
        value = float(planned.tables.base) - log_mean_below(logs, delta) + planned.slack
        yield Finding((Bound(value, "upper", "assumed", delta),))


def _run_tempering(planned: BoundMethod, seed: int, until: float, clock: Clock) -> tuple[State, Trace]:
    """The state of all ladders, and what they have shown since burn-in."""
    start, since = planned.spread_starts(LADDERS, seed), clock()
    state = planned.engine.init(seed, start)
    for end in WINDOWS:
        state = planned.engine.warm(state, 1)
        while clock() < since + BURN_IN * end * (until - since):
            state = planned.engine.warm(state, 1)
        state = planned.engine.adapt(state, end == WINDOWS[-1])
    trace, steps = Trace(planned.method.reductions, LADDERS, start.size), 1
    while not trace.samples or clock() < until:
        if trace.full:
            trace.merge()
            steps *= 2
        state, statistics = planned.engine.advance(state, steps)
        trace.add(statistics, steps)
    return state, trace


def _anneal_in_reverse(
    planned: BoundMethod, state: State, rng: np.random.Generator, until: float, clock: Clock
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
