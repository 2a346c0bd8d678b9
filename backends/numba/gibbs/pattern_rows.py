"""Chromatic and raster sweeps of one chain after the other by looking probabilities up (`patterns`).

Everything of an update is an integer: the neighbours' states make an index, the entry there is compared with 64 random
bits. The limit, with four neighbours: 8 loads for the index, 5 instructions that combine them, 6 for comparison, state
and sum, 2 for random bits and 2 of the loop, which at 6 a cycle is 4 cycles an update. What reaches it: rows of a
colour do not wait for each other, so that many are on their way at once, and there is no branch but the loop's.

Arguments as in `sweeps`.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from spinbench.backends.numba.gibbs.patterns import Patterns
from spinbench.backends.numba.gibbs.units import INLINE, JIT, log_add
from spinbench.backends.numba.simd.memory import (
    address,
    keep,
    load_field,
    load_state,
    load_sum,
    load_table,
    load_uniform,
    store_field,
    store_state,
    store_sum,
)
from spinbench.backends.numba.simd.random import mix64
from spinbench.backends.numba.simd.vector_memory import (
    store_uniform_vector,
)
from spinbench.backends.numba.simd.vectors import (
    count_up,
)

WORDS = 8
"""64-bit words of a vector."""


@nb.njit(**INLINE)
def _pattern(near, i, shape, s):
    """The states of row i's neighbours as bits."""
    first, found = i * len(shape), np.int64(0)
    for k in range(len(shape)):
        found |= np.int64(load_state(s, np.int64(load_table(near, first + k)))) << k
    return found


@nb.njit(**INLINE)
def _fill(start, gamma, counter, n, u):
    """u[i] = 64 random bits, those of row i in `random.row_numbers` for float64."""
    z = count_up(gamma) * gamma + (start + counter * gamma)
    for i in range(0, n, WORDS):
        store_uniform_vector(u, i, mix64(z))
        z = z + np.uint64(WORDS) * gamma


@nb.njit(**INLINE)
def _update(g, n, forced, averaged, u, s, sums, counts):
    """One sweep; returns what the rows below `forced` lose."""
    lost, shift = 0.0, len(g.shape)
    for i in range(n):
        entry = (i << shift) + _pattern(g.near, i, g.shape, s)
        up = load_uniform(u, i) < load_table(g.thresholds, entry)
        store_state(s, i, np.uint8(up))
        if averaged:
            store_sum(sums, i, load_sum(sums, i) + load_table(g.p, entry))
        else:
            store_field(counts, i, load_field(counts, i) + np.int64(up))
        if i < forced:
            lost += load_table(g.losses, entry)
    return lost


@nb.njit(**JIT)
def run_pattern_rows(g, keys, first, steps, averaged, chib, head, tail, fixed, s, sums, log_t):
    """g `Patterns`; keys (C, 2); s (C, N + 1) uint8, the last 0; sums (C, N)."""
    n, shift = sums.shape[1], len(g.shape)
    bits, ones = np.empty(n + WORDS, dtype=np.uint64), np.zeros(n, dtype=np.int64)
    u, counts = address(bits, 0), address(ones, 0)
    t_ = Patterns(address(g.near, 0), address(g.thresholds, 0), address(g.p, 0), address(g.losses, 0), g.shape)
    for c in range(s.shape[0]):
        state, total = address(s, c * (n + 1)), address(sums, c * n)
        for t in range(first, first + steps):
            lost = 0.0
            for i in range(head, tail if chib else head):
                lost += load_table(t_.losses, (i << shift) + _pattern(t_.near, i, g.shape, state))
            _fill(keys[c, 0], keys[c, 1], np.uint64(t) * np.uint64(n + 1), n, u)
            if chib:  # branches within the loop would cost as much as a tenth of it
                if averaged:
                    lost += _update(t_, n, head, True, u, state, total, counts)
                else:
                    lost += _update(t_, n, head, False, u, state, total, counts)
                log_t[c] = log_add(log_t[c], fixed - lost)
            elif averaged:
                _update(t_, n, 0, True, u, state, total, counts)
            else:
                _update(t_, n, 0, False, u, state, total, counts)
        if not averaged:
            for i in range(n):
                store_sum(total, i, load_sum(total, i) + np.float64(load_field(counts, i)))
                store_field(counts, i, 0)
    keep(bits)
    keep(ones)
