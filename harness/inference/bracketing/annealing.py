"""Annealed populations, whose estimates of Z are bet on: a probable lower bound, whatever mixes.

Each run of `smc` gives an independent Ẑ >= 0 with mean Z, so that the martingale of `methods.buckets.betting` that bets
on a larger mean needs no bound on them. From above they tell nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from spinbench.api.bounds import Bound
from spinbench.inference.bracketing.interval import News
from spinbench.inference.bracketing.ready import ready
from spinbench.mathematics.rounding import work_of
from spinbench.methods.buckets import betting
from spinbench.models import Model

FloatArray = npt.NDArray[np.float64]

NAME = "smc"
CHAINS = 8
"""Populations that are annealed side by side."""
_BINS = 200


def news(
    model: Model, backend: str, seed: int, seconds: float, delta: float, clock: Callable[[], float] = time.perf_counter
) -> Iterator[News]:
    """A bound after the first runs, and after twice as many, again and again, for so many seconds.

    Raises:
        UnsupportedError: 1-of-K groups.
    """
    until, at = clock() + seconds, ready(model, NAME, backend, {})
    slack = work_of(at.simple.model).allowance() + at.simple.rounding
    state = at.started(seed, CHAINS)
    logs, looked, over = np.zeros(0), 0, False
    while not over:
        state, seen = at.engine.advance(state, 1)
        logs, over = np.append(logs, seen["z"] + float(at.tables.base)), clock() >= until
        if (over or len(logs) >= 2 * looked) and (bound := below(logs, delta)) > -np.inf:
            looked = len(logs)
            yield News((Bound(bound - slack, "lower", "probable", delta, NAME),), by=NAME)


def below(logs: FloatArray, delta: float) -> float:
    """Below log E X with a probability of at least 1 - delta, from the logs (n,) of independent X >= 0."""
    top = float(logs.max())
    if not top > -np.inf:
        return -np.inf
    x = np.sort(np.exp(logs - top))[::-1]
    edges = np.append(x[np.unique(np.linspace(0, len(x) - 1, _BINS).astype(int))], 0.0)
    which = np.minimum(np.searchsorted(-edges, -x, side="right") - 1, len(edges) - 2)
    counts = np.bincount(which, minlength=len(edges) - 1).astype(np.float64)
    sums = np.bincount(which, x, minlength=len(edges) - 1).astype(np.float64)
    total, square = float(np.log(x.sum())), float(np.log((x**2).sum()))
    return top + betting.lower(betting.Weights(float(len(x)), total, square, edges, counts, sums), delta)
