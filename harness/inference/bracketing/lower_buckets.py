"""wmb_lower pass by pass, with each better bound as soon as it is there."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator

from spinbench.api.bounds import stated
from spinbench.api.trace import Trace
from spinbench.inference.bracketing.interval import News
from spinbench.inference.bracketing.ready import ready
from spinbench.models import Model

NAME = "wmb_lower"
BETTER = 1e-3
"""Nats by which a bound has to rise to be news."""


def news(
    model: Model, backend: str, seconds: float, max_gib: float, clock: Callable[[], float] = time.perf_counter
) -> Iterator[News]:
    """Bounds until so many seconds have passed, or mini-buckets grow no more.

    Raises:
        UnsupportedError: hard zeros.
    """
    until, told = clock() + seconds, -math.inf
    at = ready(model, NAME, backend, {"max_gib": max_gib})
    state, ended, over = at.started(0, 1), False, False
    while not (ended or over):
        state, seen = at.engine.advance(state, 1)
        bound, ended, over = float(seen["bound"][0]), bool(seen["ended"][0]), clock() >= until
        if bound > told + (0.0 if ended or over else BETTER):
            told, trace = bound, Trace(at.method.reductions)
            trace.add(seen, 1)
            found = at.estimate(trace)
            yield News(stated(found.log_z, found.log_z_kind, found.bounds, NAME), by=NAME)
