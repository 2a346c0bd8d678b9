"""The form "dense": long rows. The fields of all rows are kept, and a row of W is added to them when its row flips.

The limit is the bytes of a row a flip, 4 N or 8 N, which come from the cache that holds W. What reaches it: while one
row is added, that of the next flip, guessed from the fields so far, is on its way.

W and the fields are padded with zeros to whole vectors, `stride` elements a row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spinbench.backends.numba.gibbs.form import Chains, Form, Request, Source, Steps
from spinbench.backends.numba.gibbs.shared import (
    FLUSH,
    INLINE,
    JIT,
    add_recent,
    draw_thresholds,
    end_sweep,
    log_add,
    row_keys,
    vector_width,
    whole_vectors,
)
from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.simd import (
    ONE,
    ZERO,
    Address,
    Array,
    address,
    keep,
    load,
    load_vector,
    pointers,
    prefetch,
    softplus,
    store,
    zero_array,
    zeros_aligned,
)
from spinbench.mathematics.graphs.rows import dense_rows
from spinbench.mathematics.graphs.sweep_layouts import Scan

# Float32 numbers in a vector of 512 bits, the widest there are.
LANES = 16


class Matrix(NamedTuple):
    """W and what else rows need; arrays, or pointers to them.

    Attributes:
        rows: (N, M) W; n, stride: N and M.
        biases, sign: (N,) as in `Flat`.
    """

    rows: Array | Address
    biases: Array | Address
    sign: Array | Address
    n: int
    stride: int


@njit(**INLINE)
def _add_row(W, i, ahead, change, h):
    """h += change W[i]; row `ahead` is asked for meanwhile."""
    base, later = i * W.stride, ahead * W.stride
    for k in range(0, W.stride, vector_width(h)):
        # One cache line of the next flip's row is prefetched for each line of this row, so that both share the
        # bandwidth.
        prefetch(W.rows, later + k)
        store(h, k, load_vector(h, k) + change * load_vector(W.rows, base + k))


@njit(**INLINE)
def _all_fields(W, s, h):
    """h = a + W s."""
    for k in range(W.n):
        store(h, k, load(W.biases, k))
    for i in range(W.n):
        state = load(s, i)
        # States are 0 and 1: the row of a state 0 adds nothing to the fields.
        if state > ZERO(state):
            _add_row(W, i, min(i + 1, W.n - 1), state, h)


@njit(**JIT)
def fill_fields(matrix, s, x):
    """x (C, M): the fields of s (C, N)."""
    for c in range(s.shape[0]):
        _all_fields(pointers(matrix), address(s, c * matrix.n), address(x, c * matrix.stride))


@njit(**INLINE)
def _copy_fields(h, to, stride, width):
    for k in range(0, stride, width):
        store(to, k, load_vector(h, k))


@njit(**INLINE)
def _next_flip(i, n, thresholds, fields, s):
    """The next row that flips if its field stays as it is, or the last."""
    i += 1
    # A prediction of the next flip from fields that the current flip still changes: a wrong one costs a useless
    # prefetch, never a wrong draw.
    while i < n - 1 and (load(fields, i) > load(thresholds, i)) == (load(s, i) > 0.0):
        i += 1
    return min(i, n - 1)


@njit(**INLINE)
def _log_forced_dense(W, s, fields):
    """log T(s* <- s): the forced sweep, which moves only the rows that differ from s*. Uses up the fields of s."""
    total = 0.0
    for i in range(W.n):
        sign = load(W.sign, i)
        total -= np.float64(softplus(sign * load(fields, i)))
        change = (ONE(sign) if sign < ZERO(sign) else ZERO(sign)) - load(s, i)
        # Fields are updated incrementally: only rows whose state differs from s* are added.
        if change != ZERO(sign):
            _add_row(W, i, min(i + 1, W.n - 1), change, fields)
    return total


@njit(**INLINE)
def _sweep(W, thresholds, s, fields, used, back):
    """used: the fields as of the updates. back: the last row first."""
    for k in range(W.n):
        i = W.n - 1 - k if back else k
        field = load(fields, i)
        spin = ONE(field) if field > load(thresholds, i) else ZERO(field)
        change = spin - load(s, i)
        store(used, i, field)
        if change != ZERO(field):
            store(s, i, spin)
            # Only looks sweep backwards, too few for the prediction of the next flip to pay.
            ahead = max(i - 1, 0) if back else _next_flip(i, W.n, thresholds, fields, s)
            _add_row(W, i, ahead, change, fields)


@njit(**JIT)
def run_dense(matrix, request, steps, chains):
    """Fields are computed anew at every step whose number is divisible by FLUSH, so that rounding does not add up."""
    keys, s, h, _, sums, log_t = chains
    n, stride, width = matrix.n, matrix.stride, 64 // s.itemsize
    u, v = np.empty(whole_vectors(n), dtype=s.dtype), np.empty_like(s[0])
    x, recent = zero_array(stride, s.dtype), np.zeros_like(s[0])
    W, thresholds = pointers(matrix), address(v, 0)
    used, totals = address(x, 0), address(recent, 0)
    for c in range(s.shape[0]):
        state, fields, out = address(s, c * n), address(h, c * stride), address(sums, c * n)
        for t in range(steps.first, steps.end):
            # Counted from the start of the run and not of the call: draws must not depend on how a run is cut into
            # batches.
            if t % FLUSH == 0:
                _all_fields(W, state, fields)
            if request.chib:
                _copy_fields(fields, used, stride, width)
                log_t[c] = log_add(log_t[c], _log_forced_dense(W, state, used))
            draw_thresholds(keys[c], t, u, thresholds, n)
            _sweep(W, thresholds, state, fields, used, False)
            end_sweep(t - steps.first, request.averaged, used, state, totals, out, n)
        add_recent(totals, out, 1.0, n)
    keep(u, v, x, recent)


@njit(**JIT)
def run_dense_looks(matrix, keys, step, mode, s, h, logs):
    """As `looks.run_looks`, at the states s (C, N) of fields h (C, M), into logs (2, C); mode (N,) s*."""
    n, stride, width = matrix.n, matrix.stride, 64 // s.itemsize
    u, v, swept, x = (
        np.empty(whole_vectors(n), dtype=s.dtype),
        np.empty_like(mode),
        np.empty_like(mode),
        np.empty_like(mode),
    )
    now = zero_array(stride, s.dtype)
    W, thresholds, state, fields = pointers(matrix), address(v, 0), address(swept, 0), address(now, 0)
    for c in range(s.shape[0]):
        _copy_fields(address(h, c * stride), fields, stride, width)
        logs[0, c] = _log_forced_dense(W, address(s, c * n), fields)
        swept[:] = mode
        _all_fields(W, state, fields)
        draw_thresholds(keys[c], step, u, thresholds, n)
        _sweep(W, thresholds, state, fields, address(x, 0), True)
        logs[1, c] = _log_forced_dense(W, state, fields)
    keep(u, v, swept, x, now)


class Dense(Form):
    """x (C, M): the fields of s, kept from call to call; tables: biases and signs, and W (N, M), M whole vectors."""

    looks_alone = True

    def make_tables(self, source: Source) -> Matrix:
        # Rows begin on cache lines and are padded with zeros, so that loops over whole vectors need no remainder.
        W = zeros_aligned((self.n, -(-self.n // LANES) * LANES), self.real)
        planned = source.tables.sweep
        if isinstance(planned, Scan) and planned.columns is None:
            W[:, : self.n] = planned.weights
        else:
            W[:, : self.n] = dense_rows(source.rows, 0, self.n)
        biases, mode = source.model.biases[source.tables.order], source.tables.mode
        self._mode = mode.astype(self.real)
        return Matrix(W, biases.astype(self.real), (1 - 2 * mode).astype(self.real), *W.shape)

    def begin(self, seed: int, states: Array) -> tuple[Array, Array, Array]:
        s = np.ascontiguousarray(states.T)
        x = zeros_aligned((len(s), self.tables.stride), self.real)
        fill_fields(self.tables, s, x)
        return row_keys(seed, states), s, x

    def run(self, request: Request, steps: Steps, chains: Chains) -> None:
        run_dense(self.tables, request, steps, chains)

    def looks(self, request: Request, keys: Array, step: int, s: Array, x: Array) -> Array:
        logs = np.empty((2, len(s)))
        run_dense_looks(self.tables, keys, step, self._mode, s, x, logs)
        return logs
