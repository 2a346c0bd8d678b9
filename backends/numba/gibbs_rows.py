"""Chromatic and raster sweeps of binary variables, one row after the other.

What does not depend on the row before is done in vectors, ahead of the rows (random numbers, as thresholds of the
field) or after them (sigmoids). In raster order each row still waits for the one before, about 14 cycles. In the dense
form a row of N numbers is added once a flip, at the speed of the cache that holds W if the row is asked for early
enough: so while one row is added, that of the next flip, guessed from the fields so far, is on its way. Arguments as
in `gibbs_sweeps`.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from spinbench.backends.numba.functions import ONE, ZERO, constant, log, sigmoid, softplus
from spinbench.backends.numba.gibbs_sites import log_forced_middle
from spinbench.backends.numba.gibbs_sweeps import FLUSH, add_recent
from spinbench.backends.numba.gibbs_units import INLINE, JIT, field, log_add, pointers, whole_vectors
from spinbench.backends.numba.memory import (
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
from spinbench.backends.numba.random import fill_rows
from spinbench.backends.numba.vectors import (
    line_address,
    load_field_vector,
    load_table_vector,
    prefetch,
    store_field_vector,
)

PIECE = 4096
"""float32 terms that are summed before float64 takes over."""
SMALLEST = constant(2.0**-25, 2.0**-54)
"""Stands for a uniform number of 0."""


@nb.njit(**INLINE)
def _thresholds(u, v, n):
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
def _sum_rows(x, s, recent, n, averaged):
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
            _thresholds(numbers, thresholds, n)
            for i in range(n):
                here = field(g, i, state)
                store_field(fields, i, here)
                store_state(state, i, ONE(here) if here > load_field(thresholds, i) else ZERO(here))
            _sum_rows(fields, state, totals, n, averaged)
            if chib:
                log_t[c] = log_add(log_t[c], level + log_forced(g, fields, head))
            if (t - first) % FLUSH == FLUSH - 1:
                add_recent(totals, address(sums, c * n), 1.0, n)
        add_recent(totals, address(sums, c * n), 1.0, n)
    keep(v)
    keep(x)
    keep(recent)


# Dense rows; W and the fields are padded with zeros to whole vectors, `stride` elements a row


@nb.njit(**INLINE)
def _add_row(W, i, ahead, stride, width, change, h):
    """h += change W[i]; row `ahead` is asked for meanwhile."""
    base, later = i * stride, ahead * stride
    for k in range(0, stride, width):
        prefetch(W, later + k)
        store_field_vector(h, k, load_field_vector(h, k) + change * load_table_vector(W, base + k))


@nb.njit(**INLINE)
def _all_fields(f, W, n, stride, width, s, h):
    """h = a + W s."""
    for k in range(n):
        store_field(h, k, load_table(f.biases, k))
    for i in range(n):
        here = load_state(s, i)
        if here > ZERO(here):
            _add_row(W, i, min(i + 1, n - 1), stride, width, here, h)


@nb.njit(**INLINE)
def _next_forced(f, i, n, s):
    """The next row that differs from s*, or the last."""
    i += 1
    while i < n - 1 and (load_table(f.sign, i) < 0.0) == (load_state(s, i) > 0.0):
        i += 1
    return min(i, n - 1)


@nb.njit(**INLINE)
def _next_flip(i, n, thresholds, fields, s):
    """The next row that flips if its field stays as it is, or the last."""
    i += 1
    while i < n - 1 and (load_field(fields, i) > load_field(thresholds, i)) == (load_state(s, i) > 0.0):
        i += 1
    return min(i, n - 1)


@nb.njit(**INLINE)
def _log_forced_dense(f, W, n, stride, width, s, fields):
    """log T(s* <- s): the forced sweep, which moves only the rows that differ from s*. Uses up the fields of s."""
    total = 0.0
    for i in range(n):
        sign = load_table(f.sign, i)
        total -= np.float64(softplus(sign * load_field(fields, i)))
        change = (ONE(sign) if sign < ZERO(sign) else ZERO(sign)) - load_state(s, i)
        if change != ZERO(sign):
            _add_row(W, i, _next_forced(f, i, n, s), stride, width, change, fields)
    return total


@nb.njit(**JIT)
def run_dense(f, W, keys, first, steps, averaged, chib, s, h, sums, log_t):
    """keys (C, 2); s, sums (C, N); h (C, M) the fields of s, kept from call to call; W (N, M), M whole vectors.

    Fields are computed anew at every step whose number is divisible by FLUSH, so that rounding does not add up.
    """
    n, stride, width = s.shape[1], h.shape[1], 64 // s.itemsize
    u, v = np.empty(whole_vectors(n), dtype=s.dtype), np.empty_like(s[0])
    x, recent = np.zeros(stride + width, dtype=s.dtype), np.zeros_like(s[0])
    g, rows, numbers, thresholds = pointers(f), address(W, 0), address(u, 0), address(v, 0)
    used, totals = line_address(x), address(recent, 0)
    for c in range(s.shape[0]):
        state, fields = address(s, c * n), address(h, c * stride)
        for t in range(first, first + steps):
            if t % FLUSH == 0:
                _all_fields(g, rows, n, stride, width, state, fields)
            if chib:
                for k in range(0, stride, width):
                    store_field_vector(used, k, load_field_vector(fields, k))
                log_t[c] = log_add(log_t[c], _log_forced_dense(g, rows, n, stride, width, state, used))
            fill_rows(keys[c], np.uint64(t) * np.uint64(n + 1), u)
            _thresholds(numbers, thresholds, n)
            for i in range(n):
                here = load_field(fields, i)
                drawn = ONE(here) if here > load_field(thresholds, i) else ZERO(here)
                change = drawn - load_state(state, i)
                store_field(used, i, here)
                if change != ZERO(here):
                    store_state(state, i, drawn)
                    ahead = _next_flip(i, n, thresholds, fields, state)
                    _add_row(rows, i, ahead, stride, width, change, fields)
            _sum_rows(used, state, totals, n, averaged)
            if (t - first) % FLUSH == FLUSH - 1:
                add_recent(totals, address(sums, c * n), 1.0, n)
        add_recent(totals, address(sums, c * n), 1.0, n)
    keep(v)
    keep(x)
    keep(recent)
