"""wmb again and again, each time with more of the time that is left, and bounds on the way.

The probable bounds hold whenever one looks at them (`methods.buckets.betting`), so that every look within a round has
the round's share of delta.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from spinbench.api import State
from spinbench.api.bounds import CERTAIN, stated
from spinbench.api.trace import Trace
from spinbench.inference.bracketing.interval import News
from spinbench.inference.bracketing.ready import ready
from spinbench.models import Model

NAME = "wmb"
ROUNDS = (0.1, 0.3, 1.0)
"""Shares of the time that is left. Rounds with less than `LEAST` seconds a variable are left out, but for the last."""
LEAST = 4e-4
PASSES = 0.5
"""Of a round, for tightening the bound; draws have the rest."""
SLOWEST = 4.0
"""Times longer than asked that passes are taken to last, where they did so before."""
CHAINS = 64
BATCH = 0.01
"""Seconds of a batch of draws, about."""


class Rounds:
    """Rounds of one model.

    Args:
        model: whose log Z.
        backend: that makes passes and draws.
        seed: of the draws.
        clock: tells seconds.
        settings: of wmb; its delta is that of a round.
    """

    def __init__(
        self, model: Model, backend: str, seed: int, clock: Callable[[], float] = time.perf_counter, **settings: Any
    ) -> None:
        self._clock = clock
        self._ready = ready(model, NAME, backend, settings)
        self._engine, self._seed = self._ready.engine, seed
        self._slowness = 1.0

    def news(self, seconds: float) -> Iterator[News]:
        """Of rounds that end after so many seconds, or where nothing is split and the bound is exact."""
        until = self._clock() + seconds
        state, first = self._engine.advance(self._ready.started(self._seed, CHAINS), 1)
        begun = self._first(first)
        yield begun
        if begun.exact:
            return
        per_step = self._seconds_per_step(state)
        for number, share in enumerate(ROUNDS):
            left = share * (until - self._clock())
            if share < 1 and left < LEAST * self._ready.simple.model.num_variables:
                continue
            for news in self._round(number, left, per_step):
                yield news
                if news.exact:
                    return

    def _round(self, number: int, seconds: float, per_step: float) -> Iterator[News]:
        since = self._clock()
        state = self._ready.started(self._seed + number, CHAINS)
        asked = PASSES * seconds / self._slowness
        state = self._engine.warm(state, max(1, round(asked / per_step)))
        state = self._engine.adapt(state, True)
        self._slowness = min(max((self._clock() - since) / asked, 1.0), SLOWEST)
        trace, steps, looked = Trace(self._ready.method.reductions), max(1, round(BATCH / per_step)), 0
        while True:
            if trace.full:
                trace.merge()
                steps *= 2
            state, statistics = self._engine.advance(state, steps)
            trace.add(statistics, steps)
            over = self._clock() - since >= seconds
            if over or trace.samples >= 2 * looked:
                looked = trace.samples
                yield self._told(trace, number)
            if over:
                return

    def _seconds_per_step(self, state: State) -> float:
        steps, spent = 1, 0.0
        while spent < BATCH / 5:
            steps *= 4
            since = self._clock()
            state, _ = self._engine.advance(state, steps)
            spent = self._clock() - since
        return spent / steps

    def _first(self, statistics: Mapping[str, np.ndarray]) -> News:
        """Of mini-buckets as they are before any pass: a certified bound."""
        trace = Trace(self._ready.method.reductions)
        trace.add(statistics, 1)
        bounds = self._told(trace, -1).bounds
        return News(tuple(bound for bound in bounds if bound.grade in CERTAIN), by=NAME)

    def _told(self, trace: Trace, number: int) -> News:
        found = self._ready.estimate(trace)
        bounds = stated(found.log_z, found.log_z_kind, found.bounds, NAME)
        if found.log_z_kind != "estimate":
            return News(bounds, by=NAME, look=number)
        return News(bounds, found.log_z, found.log_z_se, found.status == "ok", NAME, look=number)
