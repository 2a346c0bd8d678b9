"""Draws from mini-buckets, one chain after another; see `spinbench.methods.buckets.draws`."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.simd.random import ULP, hash64
from spinbench.methods.buckets.draws import BINS, DEAD, WIDTH
from spinbench.methods.buckets.layout import Array, Buckets

_RAISE = 40.0
"""Nats by which a weight may pass the one that sums are relative to, before they are scaled anew."""


class Source(NamedTuple):
    """The mini-buckets, their weights, conditionals and the logs of these, and each variable's first row in `Kept`."""

    at: Buckets
    weights: Array
    probabilities: Array
    logs: Array
    firsts: Array


@njit(cache=True, error_model="numpy", nogil=True)
def advance(source, keys, index, steps, kept):
    """So many draws of each chain, from streams with keys (2, C), beginning with step `index`.

    Args:
        source, keys, index, steps: what is drawn from, and which draws.
        kept: `Kept`, whose counts and sums are 0; rows by the variables' first ones.
    """
    at, rows = source.at, np.zeros(kept.rows.shape[0])
    n, split = len(at.cards), len(at.variable) > len(at.cards)
    x, places = np.zeros(n, np.int64), np.zeros(len(at.variable), np.int64)
    mixed = np.zeros(at.cards.max() if n else 1)
    found = 0.0
    for chain in range(keys.shape[1]):
        scale, total, squares = -np.inf, 0.0, 0.0
        for r in range(rows.size):
            rows[r] = 0.0
        for step in range(steps):
            counter = np.uint64(index + step) * np.uint64(n)
            found = _one(source, keys[:, chain], counter, x, places, mixed)
            log = min(found, 0.0) if split else 0.0  # where nothing is split all weights are Z
            which = BINS - 1 if -log >= WIDTH * (BINS - 1) else int(-log / WIDTH)
            kept.counts[which, chain] += 1.0
            if log == -np.inf:
                continue
            kept.sums[which, chain] += math.exp(log)
            if scale == -np.inf:
                scale = log
            elif log > scale + _RAISE:
                factor = math.exp(scale - log)
                total, squares, scale = total * factor, squares * factor * factor, log
                for r in range(rows.size):
                    rows[r] *= factor
            weight = math.exp(log - scale)
            total += weight
            squares += weight * weight
            for v in range(n):
                if x[v] > 0:
                    rows[source.firsts[v] + x[v] - 1] += weight
        for v in range(n):
            kept.states[v, chain] = x[v]
        kept.last[chain] = max(min(found, 0.0), DEAD)
        kept.log_weight[chain], kept.log_square[chain] = math.log(total) + scale, math.log(squares) + 2 * scale
        for r in range(rows.size):
            kept.rows[r, chain] = math.log(rows[r]) + scale


@njit(cache=True, error_model="numpy")
def _one(source, key, counter, x, places, mixed):
    """One draw into x; its log weight relative to the bound, -inf where it is dead."""
    at, weights, logs = source.at, source.weights, source.logs
    total = 0.0
    for v in range(len(at.cards) - 1, -1, -1):
        card, first, last = at.cards[v], at.buckets[v], at.buckets[v + 1]
        for s in range(card):
            mixed[s] = 0.0
        for c in range(first, last):
            place = at.entries[c]
            for k in range(at.scope_starts[c], at.scope_starts[c + 1] - 1):
                place += x[at.scope[k]] * at.strides[k]
            places[c] = place
            for s in range(card):
                mixed[s] += weights[c] * source.probabilities[place + s]
        norm = 0.0
        for s in range(card):
            norm += mixed[s]
        if not norm > 0.0:
            return -np.inf
        uniform = np.float64(hash64(key[0], key[1], counter + np.uint64(v)) >> np.uint64(11)) * ULP * norm
        s = 0
        while s < card - 1 and uniform >= mixed[s]:
            uniform -= mixed[s]
            s += 1
        if mixed[s] == 0.0:  # what rounding left of the last share
            return -np.inf
        x[v] = s
        total -= math.log(mixed[s] / norm)
        for c in range(first, last):
            log = logs[places[c] + s]
            if log == -np.inf:
                return -np.inf
            total += weights[c] * log
    return total
