"""Single updates over flat factor tables, one chain after the other: random scans, and updates for samples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spinbench.backends.numba.gibbs.shared import INLINE, JIT
from spinbench.backends.numba.kernel_cache import Options, njit
from spinbench.backends.numba.simd import below, exp, uniform

# Reference counts of the tables' arrays would take longer than an update. Sums are not reassociated: they are short,
# and vector code would take longer to start than to add.
SCALAR: Options = {**INLINE, "fastmath": {"contract", "nsz"}, "_nrt": False}
# Odds above this stand for a hard zero, at which `exp` saturates.
MOST = 1e300
# Logarithms below this stand for a hard zero, at which `exp` saturates.
LEAST = -700.0


class Single(NamedTuple):
    """What is done.

    Attributes:
        random: () bool, each update is at a variable drawn anew, else at the next one.
        alone: () bool, a step is one update, else as many as there are variables.
        averaged: () bool, sum conditional probabilities as of the last updates, otherwise states.
        first, end: () int64, numbers of the steps in the run.
    """

    random: bool
    alone: bool
    averaged: bool
    first: int
    end: int


@njit(**SCALAR)
def _entry(t, e, x):
    """Place of the entry of incidence e at which its variable is 0."""
    at, o, end = np.uint64(t.bases[e]), t.other_starts[e], t.other_starts[e + 1]
    # The first neighbour is handled outside the loop: pairs, the most common factors, then need no loop.
    if o < end:
        at += np.uint64(t.steps[o]) * np.uint64(x[t.others[o]])
        for rest in range(o + 1, end):
            at += np.uint64(t.steps[rest]) * np.uint64(x[t.others[rest]])
    return at


@njit(**SCALAR)
def _look_up(t, v, x, weights):
    """Weights of the states of v given the rest, the largest 1; their sum."""
    size = t.sizes[v]
    for k in range(size):
        weights[k] = 0.0
    for e in range(t.starts[v], t.starts[v + 1]):
        at = _entry(t, e, x)
        for k in range(size):
            weights[k] += t.values[at]
            at += np.uint64(t.strides[e])
    top = weights[0]
    for k in range(1, size):
        top = max(top, weights[k])
    total = 0.0
    for k in range(size):
        below_top = weights[k] - top
        weights[k] = exp(below_top) if below_top > LEAST else 0.0
        total += weights[k]
    return total


@njit(**SCALAR)
def _keep_p(t, v, weights, total, p):
    row, size = t.rows[v], t.sizes[v]
    if size == 2:
        p[row] = weights[1] / total
    else:
        for k in range(size):
            p[row + k] = weights[k] / total


@njit(**SCALAR)
def _odds_of_zero(t, v, x):
    """p(x_v = 0 | rest) / p(x_v = 1 | rest) of a binary variable."""
    down, up = 0.0, 0.0
    for e in range(t.starts[v], t.starts[v + 1]):
        at = _entry(t, e, x)
        down += t.values[at]
        up += t.values[at + np.uint64(t.strides[e])]
    return exp(down - up)


@njit(**SCALAR)
def _update(t, v, x, u, weights, p):
    """A draw of v given the rest; no state of weight 0, whatever is rounded."""
    if t.sizes[v] == 2:
        away = _odds_of_zero(t, v, x)
        x[v] = u * (1.0 + away) < 1.0 and away < MOST
        p[t.rows[v]] = 1.0 / (1.0 + away)
        return
    total = _look_up(t, v, x, weights)
    upto, state = 0.0, 0
    for k in range(t.sizes[v] - 1):
        upto += weights[k]
        if upto <= u * total and upto < total:
            state = k + 1
    x[v] = state
    _keep_p(t, v, weights, total, p)


@njit(**SCALAR)
def _credit(t, v, steps, averaged, x, p, sums):
    row, size = t.rows[v], t.sizes[v]
    if averaged:
        for k in range(1 if size == 2 else size):
            sums[row + k] += steps * p[row + k]
    elif size == 2:
        sums[row] += steps * x[v]
    else:
        sums[row + x[v]] += steps


@njit(**JIT)
def conditionals(t, order, x, p):
    """p (K, R, B) float64 of the states x as they are, at beta = 1."""
    weights, row = np.empty(t.max_states), np.empty(p.shape[1])
    for k in range(x.shape[0]):
        for c in range(x.shape[2]):
            states = x[k, :, c].copy()
            for v in order:
                _keep_p(t, v, weights, _look_up(t, v, states, weights), row)
            p[k, :, c] = row


@njit(**SCALAR)
def _run_chain(t, order, request, key, x, p, sums, weights, since):
    start, gamma = key
    units = order.size
    each = 1 if request.alone else units
    since[:] = request.first
    for s in range(request.first, request.end if units else request.first):
        for i in range(s * each, (s + 1) * each):
            counter = np.uint64(2) * np.uint64(i)
            q = below(start, gamma, counter, units) if request.random else i % units
            v = order[q]
            _credit(t, v, s - since[q], request.averaged, x, p, sums)
            since[q] = s
            _update(t, v, x, uniform(start, gamma, counter + np.uint64(1)), weights, p)
    for q in range(units):
        _credit(t, order[q], request.end - since[q], request.averaged, x, p, sums)


@njit(**JIT)
def run_single(t, order, request, count, chains, p, sums):
    """Steps at beta = 1 of the first `count` chains.

    Args:
        t: LaneTables.
        order: the variables.
        request: what is done.
        count: int64, chains.
        chains: LaneChains; x is written to.
        p: (K, R, B) float64, conditional probabilities as of the last updates; written to.
        sums: (K, R, B) float64, added to.
    """
    keys, x, _ = chains
    weights, since = np.empty(t.max_states), np.empty(order.size, dtype=np.int64)
    for k in range(x.shape[0]):
        for c in range(min(x.shape[2], count - k * x.shape[2])):
            states, latest, total = x[k, :, c].copy(), p[k, :, c].copy(), sums[k, :, c].copy()
            _run_chain(t, order, request, (keys[k, 0, c], keys[k, 1, c]), states, latest, total, weights, since)
            x[k, :, c], p[k, :, c], sums[k, :, c] = states, latest, total
