"""Mini-buckets with bounds on the way: wmb again and again with more of the time that is left, and wmb_lower.

The probable bounds hold whenever one looks at them (`methods.buckets.betting`), so that every look within a round has
the round's share of delta.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from spinbench.api import State, Trace
from spinbench.api.bounds import CERTAIN, BoundRequest, Finding, StepwiseBounds, stated
from spinbench.api.estimate import verdict
from spinbench.methods.buckets.wmb import WeightedMiniBuckets
from spinbench.methods.buckets.wmb_lower import LowerMiniBuckets

if TYPE_CHECKING:
    from spinbench.inference.binding import BoundMethod

# Shares of the remaining time of the rounds: a loose bound first, then tighter ones. A round with less than
# `MIN_SECONDS` per variable is skipped unless it is the last.
ROUNDS = (0.1, 0.3, 1.0)
MIN_SECONDS = 4e-4
# Share of a round for tightening the bound; the rest is for draws.
PASSES = 0.5
# Largest correction factor for passes that took longer than planned.
SLOWEST = 4.0
CHAINS = 64
# Approximate seconds of a batch of draws.
BATCH_SECONDS = 0.01
# A lower bound is reported once it has risen by this many nats.
MIN_RISE = 1e-3

Clock = Callable[[], float]


class UpperBounds(StepwiseBounds):
    """Of rounds of wmb that end with the time, or where nothing is split and the bound is exact."""

    name = WeightedMiniBuckets.name
    share, kept_share, order, looks = 0.0, 0.5, 100, len(ROUNDS)

    def find(self, request: BoundRequest) -> Iterator[Finding]:
        until = request.clock() + request.seconds
        planned = request.plan(self.name, delta=request.delta, max_gib=request.max_gib)
        return tighten(planned, request.seed, until, request.clock)


def tighten(planned: BoundMethod, seed: int, until: float, clock: Clock) -> Iterator[Finding]:
    """Of rounds of wmb, as it was planned; its delta is that of a round."""
    engine = planned.engine
    state, statistics = engine.advance(planned.initial_state(seed, CHAINS), 1)
    trace = Trace(planned.method.reductions)
    trace.add(statistics, 1)
    whole = _finding(planned, trace, -1)
    # before any pass only the certified bound of mini-buckets is reported
    first = Finding(tuple(bound for bound in whole.bounds if bound.grade in CERTAIN))
    yield first
    if first.exact:
        return
    per_step, slowness = _seconds_per_step(planned, state, clock), 1.0
    for number, share in enumerate(ROUNDS):
        left = share * (until - clock())
        if share < 1 and left < MIN_SECONDS * planned.model.num_variables:
            continue
        since, for_passes = clock(), PASSES * left / slowness
        state = engine.warm(planned.initial_state(seed + number, CHAINS), max(1, round(for_passes / per_step)))
        state = engine.adapt(state, True)
        slowness = min(max((clock() - since) / for_passes, 1.0), SLOWEST)
        steps = max(1, round(BATCH_SECONDS / per_step))
        for finding in _draw(planned, state, steps, number, (since, left, clock)):
            yield finding
            if finding.exact:
                return


def _draw(
    planned: BoundMethod, state: State, steps: int, number: int, timer: tuple[float, float, Clock]
) -> Iterator[Finding]:
    """Findings of a round, each of twice as many draws as the one before, and of all at its end.

    Args:
        planned, state: of wmb.
        steps: of a batch.
        number: of the round.
        timer: when the round began, how many seconds it has, and the clock that tells them.
    """
    since, seconds, clock = timer
    trace, looked, over = Trace(planned.method.reductions), 0, False
    while not over:
        if trace.full:
            trace.merge()
            steps *= 2
        state, statistics = planned.engine.advance(state, steps)
        trace.add(statistics, steps)
        over = clock() - since >= seconds
        if over or trace.samples >= 2 * looked:
            looked = trace.samples
            yield _finding(planned, trace, number)


def _seconds_per_step(planned: BoundMethod, state: State, clock: Clock) -> float:
    steps, spent = 1, 0.0
    while spent < BATCH_SECONDS / 5:
        steps *= 4
        since = clock()
        state, _ = planned.engine.advance(state, steps)
        spent = clock() - since
    return spent / steps


class LowerBounds(StepwiseBounds):
    """Each better bound of wmb_lower, until the time is over or mini-buckets grow no more."""

    name = LowerMiniBuckets.name
    share, kept_share, order = 0.3, 0.1, 90

    def find(self, request: BoundRequest) -> Iterator[Finding]:
        """Refused for hard zeros."""
        until, best = request.clock() + request.seconds, -math.inf
        planned = request.plan(self.name, max_gib=request.max_gib)
        state, ended, over = planned.initial_state(0, 1), False, False
        while not (ended or over):
            state, statistics = planned.engine.advance(state, 1)
            bound, ended, over = float(statistics["bound"][0]), bool(statistics["ended"][0]), request.clock() >= until
            if bound > best + MIN_RISE or (bound > best and (ended or over)):
                best, trace = bound, Trace(planned.method.reductions)
                trace.add(statistics, 1)
                yield _finding(planned, trace, 0)


def _finding(planned: BoundMethod, trace: Trace, look: int) -> Finding:
    estimate = planned.estimate_from(trace)
    bounds = stated(estimate.log_z, estimate.log_z_kind, estimate.bounds, planned.method.name)
    finding = Finding(bounds, look=look)
    if estimate.log_z_kind != "estimate":
        return finding
    return replace(
        finding,
        log_z=estimate.log_z,
        log_z_se=estimate.log_z_se,
        log_z_error_bound=estimate.log_z_error_bound,
        believed=verdict(estimate) == "ok",
    )
