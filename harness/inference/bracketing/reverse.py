"""Annealing backwards, from draws of the model to β = 0: an upper bound, if the draws are what they are taken for.

For x of p and transitions that keep p*^β, with β falling from 1 to 0 in K steps, X = Π_k p*(x_k)^(β_k+1 - β_k) has the
mean Z_0 / Z: what is bet on its being larger is a lower bound on 1 / Z, and so an upper one on Z. Hard zeros are soft
where β < 1, by which the mean is smaller still. The draws are the last states of tempering, one of each ladder. That
they are draws of p nobody knows: a tempering without round trips is refused, and the bound is *assumed*.

Grosse, Ghahramani and Adams, "Sandwiching the marginal likelihood using bidirectional Monte Carlo", 2015.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from spinbench.api import State
from spinbench.api.bounds import Bound
from spinbench.api.trace import Trace
from spinbench.errors import UnsupportedError
from spinbench.inference.bracketing.annealing import below
from spinbench.inference.bracketing.interval import News
from spinbench.inference.bracketing.ready import Ready, ready
from spinbench.inference.drive import WINDOWS
from spinbench.inference.starts import dispersed
from spinbench.mathematics.rounding import work_of
from spinbench.methods.gibbs.host_arrays import HostArrays
from spinbench.methods.tempering.estimates import travel
from spinbench.methods.tempering.pt import replicas
from spinbench.models import Model

FloatArray = npt.NDArray[np.float64]
Clock = Callable[[], float]

NAME = "reverse annealing"
METHOD, BACKEND = "pt", "numpy"
LADDERS = 64
TEMPERING, BURN_IN = 0.6, 0.25
"""Of the time, for tempering; and of that, for its burn-in."""
TEMPERATURES = 32, 2**16
"""At least and at most."""


def news(model: Model, seed: int, seconds: float, delta: float, clock: Clock = time.perf_counter) -> Iterator[News]:
    """One bound, after so many seconds.

    Raises:
        UnsupportedError: 1-of-K groups, or tempering whose last states are not to be taken for draws.
    """
    begun = clock()
    at = ready(model, METHOD, BACKEND, {}, tier="generic")
    state, trace = _tempered(at, seed, begun + TEMPERING * seconds, clock)
    moving, said = travel(trace), at.estimate(trace)
    if not moving.enough or "not mixed" in said.status:
        raise UnsupportedError(
            f"tempering has not mixed ({moving.trips:g} round trips of {moving.replicas} replicas), so that its last "
            "states are taken for no draws; give more seconds"
        )
    logs = _reversed(at, state, np.random.default_rng([seed, 0x524556]), begun + seconds, clock)
    slack = work_of(at.simple.model).allowance() + at.simple.rounding
    value = float(at.tables.base) - below(logs, delta) + slack
    yield News((Bound(value, "upper", "assumed", delta, NAME),), by=NAME)


def _tempered(at: Ready, seed: int, until: float, clock: Clock) -> tuple[State, Trace]:
    """The state of all ladders, and what they have shown since burn-in."""
    method, model = at.method, at.simple.model
    start, since = dispersed(model, LADDERS, seed, True), clock()
    state = at.engine.init(seed, start)
    for end in WINDOWS:
        state = at.engine.warm(state, 1)
        while clock() < since + BURN_IN * end * (until - since):
            state = at.engine.warm(state, 1)
        state = at.engine.adapt(state, end == WINDOWS[-1])
    trace, steps = Trace(method.reductions, method.batches(LADDERS), method.counted_by, LADDERS, start.size), 1
    while not trace.samples or clock() < until:
        if trace.full:
            trace.merge()
            steps *= 2
        state, seen = at.engine.advance(state, steps)
        trace.add(seen, steps)
    return state, trace


def _reversed(at: Ready, state: State, rng: np.random.Generator, until: float, clock: Clock) -> FloatArray:
    """(L,) log X, along the rungs where tempering has put them; how finely, the clock alone says."""
    inner, tables = state[2], at.tables.replicas
    cold = inner.places.slot[-1]
    x: Any = np.array(inner.x[:, cold, np.arange(LADDERS)])
    host = replicas(tables, HostArrays())
    since = clock()
    x, _ = host.sweep(rng, tables, x, np.ones(LADDERS))
    host.log_weights(tables, x)
    count = int(np.clip((until - clock()) / max(clock() - since, 1e-6), *TEMPERATURES))
    rungs = np.asarray(inner.rungs.betas)
    path = np.interp(np.linspace(len(rungs) - 1, 0, count + 1), np.arange(len(rungs)), rungs)
    logs = np.zeros(LADDERS)
    for above, beta in pairwise(path.tolist()):
        logs += (beta - above) * np.asarray(host.log_weights(tables, x)[0])
        x, _ = host.sweep(rng, tables, x, np.full(LADDERS, beta))
    return logs
