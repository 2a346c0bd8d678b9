"""Draws from mini-buckets, one chain after another; see `spinbench.methods.buckets.draws`."""

from __future__ import annotations

import math

import numba as nb
import numpy as np

from spinbench.backends.numba.simd.random import ULP, hash64
from spinbench.methods.buckets.draws import BINS, DEAD, WIDTH

_RAISE = 40.0
"""Nats by which a weight may pass the one that sums are relative to, before they are scaled anew."""


@nb.njit(cache=True, error_model="numpy", nogil=True)
def advance(at, weights, probabilities, logs, firsts, keys, index, steps, sums, rows, bins, states, last):
    """Draws of all chains.

    Args:
        at: the mini-buckets; weights, probabilities, logs: of their conditionals.
        firsts: (n + 1,) each variable's first row in `rows`.
        keys: (2, C) of the chains' streams; index: of the first step.
        steps: of each chain.
        sums: (C, 3) out: what sums are relative to, Σ w, Σ w².
        rows: (C, Σ (K_v - 1)) out, Σ w of draws with x_v = 1, 2, …
        bins: (2, BINS, C) out, how many weights are in each bin, and their sum as a share of e^U.
        states, last: (n, C), (C,) out, the last draws and their log weights, `DEAD` of none.
    """
    n, split = len(at.cards), len(at.variable) > len(at.cards)
    x, places = np.zeros(n, np.int64), np.zeros(len(at.variable), np.int64)
    mixed = np.zeros(at.cards.max() if n else 1)
    log = 0.0
    for chain in range(keys.shape[1]):
        scale, total, squares = -np.inf, 0.0, 0.0
        for step in range(steps):
            counter = np.uint64(index + step) * np.uint64(n)
            log = _one(at, weights, probabilities, logs, keys[0, chain], keys[1, chain], counter, x, places, mixed)
            log = min(log, 0.0) if split else 0.0  # where nothing is split all weights are Z
            which = BINS - 1 if -log >= WIDTH * (BINS - 1) else int(-log / WIDTH)
            bins[0, which, chain] += 1.0
            if log == -np.inf:
                continue
            bins[1, which, chain] += math.exp(log)
            if scale == -np.inf:
                scale = log
            elif log > scale + _RAISE:
                factor = math.exp(scale - log)
                total, squares, scale = total * factor, squares * factor * factor, log
                for r in range(rows.shape[1]):
                    rows[chain, r] *= factor
            weight = math.exp(log - scale)
            total += weight
            squares += weight * weight
            for v in range(n):
                if x[v] > 0:
                    rows[chain, firsts[v] + x[v] - 1] += weight
        states[:, chain], last[chain] = x, max(log, DEAD)
        sums[chain, 0], sums[chain, 1], sums[chain, 2] = scale, total, squares


@nb.njit(cache=True, error_model="numpy")
def _one(at, weights, probabilities, logs, start, gamma, counter, x, places, mixed):
    """One draw into x; its log weight relative to the bound, -inf where it is dead."""
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
                mixed[s] += weights[c] * probabilities[place + s]
        norm = 0.0
        for s in range(card):
            norm += mixed[s]
        if not norm > 0.0:
            return -np.inf
        uniform = np.float64(hash64(start, gamma, counter + np.uint64(v)) >> np.uint64(11)) * ULP * norm
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
