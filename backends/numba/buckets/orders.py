"""Orders of elimination for mini-buckets, searched for in compiled code; see `spinbench.methods.buckets.orders`."""

from __future__ import annotations

import math

import numpy as np

from spinbench.backends.numba.exact.order_kernels import FIXED
from spinbench.backends.numba.exact.order_search import strip, trials
from spinbench.methods.buckets.orders import KEPT, Found, kept
from spinbench.reference.problem import Problem

_STRIDE = 10**6
"""Between the seeds of one search and those of the next."""


def search(problem: Problem, seconds: float, seed: int) -> list[Found]:
    """As many orders as these seconds have room for, counted in operations; most are given up on the way."""
    around, stripped, core = strip(problem.flat)
    first, _, _, entries = stripped
    if not core.size:
        return [Found(math.log2(max(entries, 1.0)), first, True)]
    found: list[Found] = []
    limit = np.full(1, np.inf)
    for trial in trials(core, around, problem.flat.states, limit, 1 + _STRIDE * seed):
        if trial.complete:
            whole = np.concatenate([first, trial.order])
            found = kept([*found, Found(math.log2(trial.entries + entries), whole, trial.rule != FIXED)])
        greedy = [order.total for order in found if order.greedy]
        if len(greedy) == KEPT:
            limit[0] = 2.0 ** min(greedy[-1], 1000.0)
            if 1e-9 * trial.spent > seconds:
                break
    return found
