"""Annealed populations, whose estimates of Z are bet on: a probable lower bound, whatever mixes.

Each run of `smc` gives an independent Ẑ >= 0 with mean Z, so that the martingale of `methods.buckets.betting` that bets
on a larger mean needs no bound on them. From above they tell nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from spinbench.api.bounds import Bound, BoundRequest, Finding, StepwiseBounds
from spinbench.methods.buckets.betting import log_mean_below
from spinbench.methods.population.smc import Annealed

# Populations that are annealed in parallel.
CHAINS = 8


class AnnealedBounds(StepwiseBounds):
    """A bound after the first runs, and after twice as many, again and again; none for 1-of-K groups."""

    name = Annealed.name
    share, order, looks = 0.08, 80, 1

    def find(self, request: BoundRequest) -> Iterator[Finding]:
        until, planned = request.clock() + request.seconds, request.plan(self.name)
        state = planned.initial_state(request.seed, CHAINS)
        logs, looked, over = np.zeros(0), 0, False
        while not over:
            state, statistics = planned.engine.advance(state, 1)
            logs, over = np.append(logs, statistics["z"] + float(planned.tables.base)), request.clock() >= until
            if over or len(logs) >= 2 * looked:
                bound = log_mean_below(logs, request.delta)
                if bound > -np.inf:
                    looked = len(logs)
                    yield Finding((Bound(bound - planned.slack, "lower", "probable", request.delta),))
