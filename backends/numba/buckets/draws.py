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
    """The mini-buckets, their weights, conditionals and the logs of these, and each variable's first row in `Sums`."""

    at: Buckets
    weights: Array
    probabilities: Array
    logs: Array
    firsts: Array


class Sums(NamedTuple):
    """What is written.

    Attributes:
        weights: (C, 3) what sums are relative to, Σ w, Σ w².
        rows: (C, Σ (K_v - 1)) Σ w of draws with x_v = 1, 2, …
        bins: (2, BINS, C) how many weights are in each bin, and their sum as a share of e^U.
        states, last: (n, C), (C,) the last draws and their log weights, `DEAD` of none.
    """

    weights: Array
    rows: Array
    bins: Array
    states: Array
    last: Array


class Space(NamedTuple):
    """Of one draw: states (n,), where rows of mini-buckets begin (C,), and shares of a variable's states."""

    x: Array
    places: Array
    mixed: Array


@njit(cache=True, error_model="numpy", nogil=True)
def advance(source, keys, index, steps, sums):
    """So many draws of each chain, from streams with keys (2, C), beginning with step `index`."""
    at, rows, bins = source.at, sums.rows, sums.bins
    n, split = len(at.cards), len(at.variable) > len(at.cards)
    x, mixed = np.zeros(n, np.int64), np.zeros(at.cards.max() if n else 1)
    space = Space(x, np.zeros(len(at.variable), np.int64), mixed)
    found = 0.0
    for chain in range(keys.shape[1]):
        scale, total, squares = -np.inf, 0.0, 0.0
        for step in range(steps):
            counter = np.uint64(index + step) * np.uint64(n)
            found = _one(source, keys[0, chain], keys[1, chain], counter, space)
            log = min(found, 0.0) if split else 0.0  # where nothing is split all weights are Z
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
                    rows[chain, source.firsts[v] + x[v] - 1] += weight
        for v in range(n):
            sums.states[v, chain] = x[v]
        sums.last[chain] = max(min(found, 0.0), DEAD)
        sums.weights[chain, 0], sums.weights[chain, 1], sums.weights[chain, 2] = scale, total, squares


@njit(cache=True, error_model="numpy")
def _one(source, start, gamma, counter, space):
    """One draw into x; its log weight relative to the bound, -inf where it is dead."""
    at, weights, logs = source.at, source.weights, source.logs
    x, places, mixed = space
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
