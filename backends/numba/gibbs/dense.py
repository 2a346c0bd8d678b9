"""Sweeps of models with long rows: the fields of all rows are kept, and a row of W is added to them when its row flips.

The limit is the bytes of a row a flip, which come from the cache that holds W: 2 N bytes in `run_fixed`, 4 N or 8 N in
`run_dense`. What reaches it: while one row is added, that of the next flip, guessed from the fields so far, is on its
way.

`run_fixed` keeps fields and couplings as integers, 16 bits a coupling. What rounding can make of a field is bounded
(`Fixed.margin`); a row whose field is closer than that to its threshold, one in some hundred, gets its field from the
couplings themselves, so that it draws what exact fields would make it draw. Arguments as in `sweeps`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from spinbench.backends.numba.gibbs.rows import sum_rows, thresholds_of
from spinbench.backends.numba.gibbs.sweeps import FLUSH, add_recent
from spinbench.backends.numba.gibbs.tables import Flat
from spinbench.backends.numba.gibbs.units import INLINE, JIT, field, log_add, pointers, whole_vectors
from spinbench.backends.numba.simd.functions import ONE, ZERO, softplus
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
    store_uniform,
)
from spinbench.backends.numba.simd.random import fill_rows
from spinbench.backends.numba.simd.vector_memory import (
    aligned_zeros,
    line_address,
    load_field_vector,
    load_table_vector,
    load_widened,
    prefetch,
    store_field_vector,
)
from spinbench.mathematics.graphs.rows import Rows, dense_rows

Array = npt.NDArray[Any]

LINE = 32
"""Couplings of 16 bits in a cache line; rows are as many of them."""
MOST_DOUBT = 0.04
"""Of margins in units of fields, on average: a field's threshold lies within such a margin less than one time in 50."""
AT_ONCE = 256
"""Rows that are rounded together."""


class Fixed(NamedTuple):
    """W and the biases as multiples of 2^-k.

    Attributes:
        rows: (N, M) int16, M whole cache lines.
        biases: (N,) int32.
        margin: (N,) int32, more than what rounding of couplings, bias and threshold can make of a field.
        scale: () float64, 2^k.
    """

    rows: Array
    biases: Array
    margin: Array
    scale: float


def make_fixed(flat: Flat, rows: Rows) -> Fixed | None:
    """From a model whose couplings have `flat`'s precision; None where rounding leaves too much in doubt."""
    n, real = len(flat.biases), flat.biases.dtype
    largest = float(np.abs(rows.weights).max(initial=0))
    row = np.repeat(np.arange(n), np.diff(rows.start))
    reach = float((np.abs(flat.biases) + np.bincount(row, np.abs(rows.weights), minlength=n)).max())
    if not largest:
        return None
    scale = 2.0 ** np.floor(min(np.log2(32767 / largest), np.log2(2.0**30 / reach)))
    fixed = aligned_zeros((n, -(-n // LINE) * LINE), np.dtype(np.int16))
    margin = np.empty(n)
    for low in range(0, n, AT_ONCE):
        exact = dense_rows(rows, low, min(low + AT_ONCE, n)).astype(real).astype(np.float64) * scale
        rounded = np.rint(exact)
        fixed[low : low + AT_ONCE, :n] = rounded
        off = exact - rounded
        margin[low : low + AT_ONCE] = np.maximum(np.maximum(off, 0).sum(axis=1), np.maximum(-off, 0).sum(axis=1))
    if margin.mean() > MOST_DOUBT * scale:
        return None
    biases = np.rint(flat.biases.astype(np.float64) * scale).astype(np.int32)
    return Fixed(fixed, biases, np.ceil(margin + 2.5).astype(np.int32), float(scale))


def fixed_fields(tables: Fixed, states: Array) -> Array:
    """(C, M) int32 of states (N, C)."""
    n, chains = states.shape
    x = aligned_zeros((chains, tables.rows.shape[1]), np.dtype(np.int32))
    x[:, :n] = tables.biases
    for c in range(chains):
        x[c] += tables.rows[states[:, c] > 0].sum(axis=0, dtype=np.int32)
    return x


@nb.njit(**INLINE)
def _round_thresholds(v, scale, n, to):
    """to = v scale, rounded towards 0, int32; what is beyond all fields stays beyond them."""
    for k in range(n):
        x = np.float64(load_field(v, k)) * scale
        store_uniform(to, k, np.int32(min(max(x, -2147483000.0), 2147483000.0)))


@nb.njit(**INLINE)
def _next_fixed(i, n, limits, fields, s):
    """The next row that flips if its field stays as it is, or the last."""
    i += 1
    while i < n - 1 and (load_field(fields, i) > load_uniform(limits, i)) == (load_state(s, i) > 0.0):
        i += 1
    return min(i, n - 1)


@nb.njit(**INLINE)
def _add_fixed(rows, i, ahead, stride, sign, h):
    """h += W[i], or -= where sign is -1 (else 0); row `ahead` is asked for meanwhile."""
    base, later = i * stride, ahead * stride
    for k in range(0, stride, LINE):
        prefetch(rows, later + k)
        for half in (k, k + LINE // 2):
            change = (load_widened(rows, base + half) ^ sign) - sign
            store_field_vector(h, half, load_field_vector(h, half) + change)


@nb.njit(**JIT)
def run_fixed(f, tables, keys, first, steps, s, h, sums):
    """The form "fixed", which sums states alone. keys (C, 2); s, sums (C, N); h (C, M) int32, the fields of s."""
    n, stride = s.shape[1], h.shape[1]
    u, v = np.empty(whole_vectors(n), dtype=s.dtype), np.empty_like(s[0])
    whole, recent = np.empty(n, dtype=np.int32), np.zeros_like(s[0])
    g, rows, margins = pointers(f), address(tables.rows, 0), address(tables.margin, 0)
    numbers, thresholds, limits, totals = address(u, 0), address(v, 0), address(whole, 0), address(recent, 0)
    for c in range(s.shape[0]):
        state, fields = address(s, c * n), address(h, c * stride)
        for t in range(first, first + steps):
            fill_rows(keys[c], np.uint64(t) * np.uint64(n + 1), u)
            thresholds_of(numbers, thresholds, n)
            _round_thresholds(thresholds, tables.scale, n, limits)
            for i in range(n):
                above = np.int64(load_field(fields, i)) - np.int64(load_uniform(limits, i))
                up = above > 0
                if abs(above) <= load_table(margins, i):
                    up = field(g, i, state) > load_field(thresholds, i)
                if up != (load_state(state, i) > 0.0):
                    store_state(state, i, ONE(s[0, 0]) if up else ZERO(s[0, 0]))
                    ahead = _next_fixed(i, n, limits, fields, state)
                    _add_fixed(rows, i, ahead, stride, np.int32(0) if up else np.int32(-1), fields)
            for k in range(n):
                store_sum(totals, k, load_sum(totals, k) + load_state(state, k))
            if (t - first) % FLUSH == FLUSH - 1:
                add_recent(totals, address(sums, c * n), 1.0, n)
        add_recent(totals, address(sums, c * n), 1.0, n)
    keep(u)
    keep(v)
    keep(whole)
    keep(recent)


# W and the fields as reals, padded with zeros to whole vectors, `stride` elements a row


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
            thresholds_of(numbers, thresholds, n)
            for i in range(n):
                here = load_field(fields, i)
                drawn = ONE(here) if here > load_field(thresholds, i) else ZERO(here)
                change = drawn - load_state(state, i)
                store_field(used, i, here)
                if change != ZERO(here):
                    store_state(state, i, drawn)
                    ahead = _next_flip(i, n, thresholds, fields, state)
                    _add_row(rows, i, ahead, stride, width, change, fields)
            sum_rows(used, state, totals, n, averaged)
            if (t - first) % FLUSH == FLUSH - 1:
                add_recent(totals, address(sums, c * n), 1.0, n)
        add_recent(totals, address(sums, c * n), 1.0, n)
    keep(u)
    keep(v)
    keep(x)
    keep(recent)
