"""Chromatic and raster sweeps of binary variables, one row after the other.

What does not depend on the row before is done in vectors, ahead of the rows (random numbers, as thresholds of the
field) or after them (sigmoids). In raster order each row still waits for the one before, about 14 cycles. Arguments as
in `sweeps`.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from spinbench.backends.numba.gibbs.sites import log_forced_middle
from spinbench.backends.numba.gibbs.sweeps import FLUSH, add_recent
from spinbench.backends.numba.gibbs.units import INLINE, JIT, field, log_add, pointers, whole_vectors
from spinbench.backends.numba.simd.functions import ONE, ZERO, constant, log, sigmoid, softplus
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
from spinbench.backends.numba.simd.random import fill_rows

PIECE = 4096
"""float32 terms that are summed before float64 takes over."""
SMALLEST = constant(2.0**-25, 2.0**-54)
"""Stands for a uniform number of 0."""


@nb.njit(**INLINE)
def thresholds_of(u, v, n):
    """v = log(u / (1 - u)): u < 1 / (1 + e^-x) is x > v, which needs no exponential between one row and the next."""
    for k in range(n):
        w = load_uniform(u, k)
        low = SMALLEST(w)
        w = low if w < low else w
        store_field(v, k, log(w) - log(ONE(w) - w))


@nb.njit(**INLINE)
def log_forced(f, x, count):
    """Σ log p(s*_i | field x_i) over the first rows."""
    total = 0.0
    for low in range(0, count, PIECE):
        part = ZERO(load_field(x, 0))
        for k in range(low, min(low + PIECE, count)):
            part += softplus(load_table(f.sign, k) * load_field(x, k))
        total -= np.float64(part)
    return total


@nb.njit(**INLINE)
def sum_rows(x, s, recent, n, averaged):
    """The sums of p or s, once all rows are updated."""
    if averaged:
        for k in range(n):
            store_sum(recent, k, load_sum(recent, k) + sigmoid(load_field(x, k)))
    else:
        for k in range(n):
            store_sum(recent, k, load_sum(recent, k) + load_state(s, k))


@nb.njit(**JIT)
def run_raster(f, keys, first, steps, averaged, chib, head, tail, fixed, s, sums, log_t):
    """keys (C, 2); s, sums (C, N)."""
    n = s.shape[1]
    u, v = np.empty(whole_vectors(n), dtype=s.dtype), np.empty_like(s[0])
    x, recent = np.empty_like(s[0]), np.zeros_like(s[0])
    g, numbers, thresholds = pointers(f), address(u, 0), address(v, 0)
    fields, totals = address(x, 0), address(recent, 0)
    for c in range(s.shape[0]):
        state = address(s, c * n)
        for t in range(first, first + steps):
            level = fixed + log_forced_middle(g, state, head, tail) if chib else 0.0
            fill_rows(keys[c], np.uint64(t) * np.uint64(n + 1), u)
            thresholds_of(numbers, thresholds, n)
            for i in range(n):
                here = field(g, i, state)
                store_field(fields, i, here)
                store_state(state, i, ONE(here) if here > load_field(thresholds, i) else ZERO(here))
            sum_rows(fields, state, totals, n, averaged)
            if chib:
                log_t[c] = log_add(log_t[c], level + log_forced(g, fields, head))
            if (t - first) % FLUSH == FLUSH - 1:
                add_recent(totals, address(sums, c * n), 1.0, n)
        add_recent(totals, address(sums, c * n), 1.0, n)
    keep(u)
    keep(v)
    keep(x)
    keep(recent)
