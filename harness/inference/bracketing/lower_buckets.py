"""wmb_lower pass by pass, with each better bound as soon as it is there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from spinbench.api.bounds import stated
from spinbench.api.trace import Trace
from spinbench.inference import registry
from spinbench.inference.bracketing.interval import News
from spinbench.inference.origins import allowing_for
from spinbench.models import Model
from spinbench.models.simplification import simplified

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
    until, told = clock() + seconds, -np.inf
    simple = simplified(model)
    method = registry.make_method(NAME, {"max_gib": max_gib})
    tables = method.plan(simple.model)
    engine = registry.bound(method, backend, simple.model, tables, precision="float64").engine
    state, ended, over = engine.init(0, np.zeros((simple.model.num_variables, 1), dtype=np.int8)), False, False
    while not (ended or over):
        state, seen = engine.advance(state, 1)
        bound, ended, over = float(seen["bound"][0]), bool(seen["ended"][0]), clock() >= until
        if bound > told + (0.0 if ended or over else BETTER):
            told, trace = bound, Trace(method.reductions)
            trace.add(seen, 1)
            found = allowing_for(method.estimate(simple.model, tables, trace), simple.rounding)
            yield News(stated(found.log_z, found.log_z_kind, found.bounds, NAME), by=NAME)
