"""Orders of elimination for mini-buckets, searched for in compiled code; see `spinbench.methods.buckets.orders`."""

from __future__ import annotations

import math

import numpy as np

from spinbench.backends.numba.exact.order_kernels import FIXED
from spinbench.backends.numba.exact.order_search import strip, trials
from spinbench.methods.buckets.orders import Found, kept
from spinbench.reference.problem import Problem

_LEAST = 6
"""Trials: each rule once."""
_STRIDE = 10**6
"""Between the seeds of one search and those of the next."""


def search(problem: Problem, seconds: float, seed: int) -> list[Found]:
    """As many orders as these seconds have room for, counted in operations."""
    around, stripped, core = strip(problem.flat)
    first, _, _, entries = stripped
    if not core.size:
        return [Found(math.log2(max(entries, 1.0)), first, True)]
    found: list[Found] = []
    made = trials(core, around, problem.flat.states, np.full(1, np.inf), 1 + _STRIDE * seed)
    for count, trial in enumerate(made, start=1):
        whole = np.concatenate([first, trial.order])
        found.append(Found(math.log2(trial.entries + entries), whole, trial.rule != FIXED))
        if len(found) > _STRIDE // 10**4:
            found = kept(found)
        if count >= _LEAST and 1e-9 * trial.spent > seconds:
            break
    return kept(found)
