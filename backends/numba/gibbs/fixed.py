"""The form "fixed": "dense" with integers, 16 bits a coupling, where only states are summed: 2 N bytes a flip.

What rounding can make of a field is bounded (`Fixed.margin`); a row whose field is closer than that to its threshold,
one in some hundred, gets its field from the couplings themselves, so that it draws what exact fields would make it
draw.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from spinbench.backends.numba.gibbs.form import Array, Asked, Chains, Form, Steps, row_keys
from spinbench.backends.numba.gibbs.raster import draw_thresholds, end_sweep
from spinbench.backends.numba.gibbs.shared import INLINE, JIT, add_recent, field, pointers, whole_vectors
from spinbench.backends.numba.gibbs.tables import Flat, Source
from spinbench.backends.numba.simd.functions import ONE, ZERO
from spinbench.backends.numba.simd.memory import (
    address,
    keep,
    load_field,
    load_state,
    load_table,
    load_uniform,
    store_state,
    store_uniform,
)
from spinbench.backends.numba.simd.vector_memory import (
    aligned_zeros,
    load_field_vector,
    load_widened,
    prefetch,
    store_field_vector,
)
from spinbench.mathematics.graphs.rows import AnyRows, dense_rows

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


class Couplings(NamedTuple):
    """Pointers to `Fixed.rows` and `Fixed.margin`, the number of rows and their length in memory."""

    rows: Any
    margin: Any
    n: Any
    stride: Any


def make_fixed(flat: Flat, rows: AnyRows) -> Fixed | None:
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


@nb.njit(**INLINE)
def _sweep(f, fixed, limits, thresholds, s, fields):
    """fixed: `Couplings`."""
    for i in range(fixed.n):
        above = np.int64(load_field(fields, i)) - np.int64(load_uniform(limits, i))
        up = above > 0
        before = load_state(s, i)
        if abs(above) <= load_table(fixed.margin, i):
            up = field(f, i, s) > load_field(thresholds, i)
        if up != (before > 0.0):
            store_state(s, i, ONE(before) if up else ZERO(before))
            ahead = _next_fixed(i, fixed.n, limits, fields, s)
            _add_fixed(fixed.rows, i, ahead, fixed.stride, np.int32(0) if up else np.int32(-1), fields)


@nb.njit(**JIT)
def run_fixed(f, tables, steps, chains):
    """What "dense" does where states alone are summed."""
    keys, s, h, _, sums, _ = chains
    n = s.shape[1]
    u, v = np.empty(whole_vectors(n), dtype=s.dtype), np.empty_like(s[0])
    whole, recent = np.empty(n, dtype=np.int32), np.zeros_like(s[0])
    g, fixed = pointers(f), Couplings(address(tables.rows, 0), address(tables.margin, 0), n, h.shape[1])
    thresholds, limits, totals = address(v, 0), address(whole, 0), address(recent, 0)
    for c in range(s.shape[0]):
        state, fields, out = address(s, c * n), address(h, c * h.shape[1]), address(sums, c * n)
        for t in range(steps.first, steps.end):
            draw_thresholds(keys[c], t, u, thresholds, n)
            _round_thresholds(thresholds, tables.scale, n, limits)
            _sweep(g, fixed, limits, thresholds, state, fields)
            end_sweep(t - steps.first, False, thresholds, state, totals, out, n)
        add_recent(totals, out, 1.0, n)
    keep(u)
    keep(v)
    keep(whole)
    keep(recent)


def fixed_tables(source: Source) -> Fixed | None:
    """The tables of a model, if states alone are summed and rounding leaves little in doubt."""
    if source.method.marginals != "empirical" or source.method.weighs_steps:
        return None
    return make_fixed(source.flat, source.rows)


class FixedPoint(Form):
    """x (C, M) int32: the fields of s, kept from call to call, M whole cache lines of couplings."""

    name = "fixed"

    def make_tables(self, source: Source) -> Fixed | None:
        return source.once(fixed_tables)

    def begin(self, seed: int, states: Array) -> tuple[Array, Array, Array]:
        return row_keys(seed, states), np.ascontiguousarray(states.T), fixed_fields(self.tables, states)

    def run(self, asked: Asked, steps: Steps, chains: Chains) -> None:
        run_fixed(self.flat, self.tables, steps, chains)
