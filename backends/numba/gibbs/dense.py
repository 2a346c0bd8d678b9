"""The form "dense": long rows. The fields of all rows are kept, and a row of W is added to them when its row flips.

The limit is the bytes of a row a flip, 4 N or 8 N, which come from the cache that holds W. What reaches it: while one
row is added, that of the next flip, guessed from the fields so far, is on its way.

W and the fields are padded with zeros to whole vectors, `stride` elements a row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from spinbench.backends.numba.gibbs.form import Array, Asked, Chains, Form, Steps, row_keys
from spinbench.backends.numba.gibbs.shared import (
    FLUSH,
    INLINE,
    JIT,
    add_recent,
    draw_thresholds,
    end_sweep,
    log_add,
    pointers,
    vector_width,
    whole_vectors,
)
from spinbench.backends.numba.gibbs.tables import Flat, Source
from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.simd.functions import ONE, ZERO, softplus
from spinbench.backends.numba.simd.memory import (
    address,
    aligned_zeros,
    keep,
    line_address,
    load,
    load_vector,
    prefetch,
    store,
)
from spinbench.mathematics.graphs.rows import dense_rows
from spinbench.mathematics.graphs.sweep_layouts import Scan

LANES = 16
"""Of the widest vectors."""


class Matrix(NamedTuple):
    """W: a pointer to its rows, their number and their length in memory."""

    rows: Any
    n: Any
    stride: Any


@njit(**INLINE)
def _add_row(W, i, ahead, change, h):
    """h += change W[i]; row `ahead` is asked for meanwhile."""
    base, later = i * W.stride, ahead * W.stride
    for k in range(0, W.stride, vector_width(h)):
        prefetch(W.rows, later + k)
        store(h, k, load_vector(h, k) + change * load_vector(W.rows, base + k))


@njit(**INLINE)
def _all_fields(f, W, s, h):
    """h = a + W s."""
    for k in range(W.n):
        store(h, k, load(f.biases, k))
    for i in range(W.n):
        here = load(s, i)
        if here > ZERO(here):
            _add_row(W, i, min(i + 1, W.n - 1), here, h)


@njit(**JIT)
def fill_fields(f, rows, s, x):
    """x (C, M): the fields of s (C, N)."""
    n, stride = s.shape[1], x.shape[1]
    for c in range(s.shape[0]):
        _all_fields(pointers(f), Matrix(address(rows, 0), n, stride), address(s, c * n), address(x, c * stride))


@njit(**INLINE)
def _copy_fields(h, to, stride, width):
    for k in range(0, stride, width):
        store(to, k, load_vector(h, k))


@njit(**INLINE)
def _next_forced(f, i, n, s):
    """The next row that differs from s*, or the last."""
    i += 1
    while i < n - 1 and (load(f.sign, i) < 0.0) == (load(s, i) > 0.0):
        i += 1
    return min(i, n - 1)


@njit(**INLINE)
def _next_flip(i, n, thresholds, fields, s):
    """The next row that flips if its field stays as it is, or the last."""
    i += 1
    while i < n - 1 and (load(fields, i) > load(thresholds, i)) == (load(s, i) > 0.0):
        i += 1
    return min(i, n - 1)


@njit(**INLINE)
def _log_forced_dense(f, W, s, fields):
    """log T(s* <- s): the forced sweep, which moves only the rows that differ from s*. Uses up the fields of s."""
    total = 0.0
    for i in range(W.n):
        sign = load(f.sign, i)
        total -= np.float64(softplus(sign * load(fields, i)))
        change = (ONE(sign) if sign < ZERO(sign) else ZERO(sign)) - load(s, i)
        if change != ZERO(sign):
            _add_row(W, i, _next_forced(f, i, W.n, s), change, fields)
    return total


@njit(**INLINE)
def _sweep(W, thresholds, s, fields, used):
    """used: the fields as of the updates."""
    for i in range(W.n):
        here = load(fields, i)
        drawn = ONE(here) if here > load(thresholds, i) else ZERO(here)
        change = drawn - load(s, i)
        store(used, i, here)
        if change != ZERO(here):
            store(s, i, drawn)
            _add_row(W, i, _next_flip(i, W.n, thresholds, fields, s), change, fields)


@njit(**INLINE)
def _sweep_back(W, thresholds, s, fields):
    """The sweep in reverse order."""
    for k in range(W.n):
        i = W.n - 1 - k
        here = load(fields, i)
        drawn = ONE(here) if here > load(thresholds, i) else ZERO(here)
        change = drawn - load(s, i)
        if change != ZERO(here):
            store(s, i, drawn)
            _add_row(W, i, max(i - 1, 0), change, fields)


@njit(**JIT)
def run_dense(f, rows, asked, steps, chains):
    """rows (N, M).

    Fields are computed anew at every step whose number is divisible by FLUSH, so that rounding does not add up.
    """
    keys, s, h, _, sums, log_t = chains
    n, stride, width = s.shape[1], h.shape[1], 64 // s.itemsize
    u, v = np.empty(whole_vectors(n), dtype=s.dtype), np.empty_like(s[0])
    x, recent = np.zeros(stride + width, dtype=s.dtype), np.zeros_like(s[0])
    g, W, thresholds = pointers(f), Matrix(address(rows, 0), n, stride), address(v, 0)
    used, totals = line_address(x), address(recent, 0)
    for c in range(s.shape[0]):
        state, fields, out = address(s, c * n), address(h, c * stride), address(sums, c * n)
        for t in range(steps.first, steps.end):
            if t % FLUSH == 0:
                _all_fields(g, W, state, fields)
            if asked.chib:
                _copy_fields(fields, used, stride, width)
                log_t[c] = log_add(log_t[c], _log_forced_dense(g, W, state, used))
            draw_thresholds(keys[c], t, u, thresholds, n)
            _sweep(W, thresholds, state, fields, used)
            end_sweep(t - steps.first, asked.averaged, used, state, totals, out, n)
        add_recent(totals, out, 1.0, n)
    keep(u)
    keep(v)
    keep(x)
    keep(recent)


@njit(**JIT)
def run_dense_looks(f, rows, keys, step, mode, s, h, log_t, log_r):
    """As `ladders.run_looks`, at the states s (C, N) of fields h (C, M); of s*, mode (1, N), they are the last of h."""
    n, stride, width = s.shape[1], h.shape[1], 64 // s.itemsize
    u, v, drawn = np.empty(whole_vectors(n), dtype=s.dtype), np.empty_like(mode[0]), np.empty_like(mode[0])
    x = np.zeros(stride + width, dtype=s.dtype)
    g, W, thresholds, state = pointers(f), Matrix(address(rows, 0), n, stride), address(v, 0), address(drawn, 0)
    used, forced = line_address(x), address(h, s.shape[0] * stride)
    for c in range(s.shape[0]):
        _copy_fields(address(h, c * stride), used, stride, width)
        log_t[c] = _log_forced_dense(g, W, address(s, c * n), used)
        _copy_fields(forced, used, stride, width)
        drawn[:] = mode[0]
        draw_thresholds(keys[c], step, u, thresholds, n)
        _sweep_back(W, thresholds, state, used)
        log_r[c] = _log_forced_dense(g, W, state, used)
    keep(u)
    keep(v)
    keep(drawn)
    keep(x)


class Dense(Form):
    """x (C, M): the fields of s, kept from call to call; tables: W (N, M), M whole vectors."""

    name = "dense"
    looks_alone = True

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._mode = source.tables.mode.astype(self.real)[None]
        self._forced: Array | None = None

    def reads_flat(self, source: Source) -> bool:
        return False

    def flat_of(self, source: Source) -> Flat:
        return source.bare()

    def make_tables(self, source: Source) -> Array:
        W = aligned_zeros((self.n, -(-self.n // LANES) * LANES), self.real)
        planned = source.tables.sweep
        if isinstance(planned, Scan) and planned.columns is None:
            W[:, : self.n] = planned.weights
        else:
            W[:, : self.n] = dense_rows(source.rows, 0, self.n)
        return W

    def begin(self, seed: int, states: Array) -> tuple[Array, Array, Array]:
        s = np.ascontiguousarray(states.T)
        return row_keys(seed, states), s, self._fields(s)

    def run(self, asked: Asked, steps: Steps, chains: Chains) -> None:
        run_dense(self.flat, self.tables, asked, steps, chains)

    def looks(self, keys: Array, step: int, s: Array, x: Array) -> tuple[Array, Array]:
        if self._forced is None:
            self._forced = self._fields(self._mode)
        fields = aligned_zeros((len(x) + 1, x.shape[1]), self.real)
        fields[:-1], fields[-1:] = x, self._forced
        log_t, log_r = np.empty((2, len(s)))
        run_dense_looks(self.flat, self.tables, keys, step, self._mode, s, fields, log_t, log_r)
        return log_t, log_r

    def _fields(self, s: Array) -> Array:
        """(C, M) of states (C, N)."""
        x = aligned_zeros((len(s), self.tables.shape[1]), self.real)
        fill_fields(self.flat, self.tables, s, x)
        return x
