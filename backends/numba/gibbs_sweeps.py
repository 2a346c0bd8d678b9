"""Chromatic and raster sweeps of binary variables in vectors, over chains or over the rows of a block.

Limits of an update with vectors over the rows of a 100×100 grid, in nanoseconds on one shared core of a Sapphire
Rapids Xeon, float32 (float64): its uniform number 0.4 (1.0), the sigmoid with its comparison and sum 0.55 (1.5), four
gathered neighbours 1.2 (1.5). Vectors over chains load neighbours from consecutive places instead of gathering.

Arguments that these and the forms in `gibbs_rows` share:

    f           tables, `gibbs_tables.Flat`
    first, steps  the steps are number first … first + steps - 1 of the run; they determine the random numbers
    averaged    sum p(s_i = 1 | rest) as of the update; otherwise s_i after the sweep
    chib        sum T(s* <- s) over the states before each sweep
    head, tail, fixed  rows below `head` have no earlier neighbours, so that their fields in the forced sweep of T are
                those of the real sweep; rows from `tail` on have no later ones and add the constant `fixed`
    sums        float64, added to
    log_t       (C,) float64, log of the sum of T
"""

from __future__ import annotations

import numba as nb
import numpy as np

from spinbench.backends.numba.functions import ONE, ZERO, sigmoid, softplus
from spinbench.backends.numba.gibbs_units import INLINE, JIT, forced_field, log_add, pointers
from spinbench.backends.numba.memory import (
    address,
    load_field,
    load_state,
    load_sum,
    load_table,
    load_uniform,
    store_field,
    store_state,
    store_sum,
)
from spinbench.backends.numba.random import fill_uniform

FLUSH = 64
"""Sweeps that are summed in the kernel's precision before float64 takes over: a float32 sum of equal numbers would
drift."""
PIECE = 4096
"""Numbers of one chain that are drawn at a time, and float32 terms that are summed before float64 takes over."""
LANE_NUMBERS = 32768
"""Numbers of many chains that are drawn at a time, at most (half of the second-level cache in float64)."""


@nb.njit(**INLINE)
def add_recent(recent, sums):
    """sums += recent, which becomes 0; the same number of elements."""
    part, total = address(recent, 0), address(sums, 0)
    for k in range(recent.size):
        store_sum(total, k, load_sum(total, k) + np.float64(load_sum(part, k)))
    recent[...] = 0.0


@nb.njit(**INLINE)
def _draw_rows(x, u, offset, s, recent, low, count, averaged):
    """s_i from fields and uniform numbers (from `offset` on) for rows low … low + count - 1, and the sums."""
    if averaged:
        for k in range(count):
            p = sigmoid(load_field(x, low + k))
            store_state(s, low + k, ONE(p) if load_uniform(u, offset + k) < p else ZERO(p))
            store_sum(recent, low + k, load_sum(recent, low + k) + p)
    else:
        for k in range(count):
            p = sigmoid(load_field(x, low + k))
            drawn = ONE(p) if load_uniform(u, offset + k) < p else ZERO(p)
            store_state(s, low + k, drawn)
            store_sum(recent, low + k, load_sum(recent, low + k) + drawn)


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
def log_forced_middle(f, s, head, tail):
    """The same for rows head … tail - 1, which have earlier neighbours."""
    total = 0.0
    for i in range(head, tail):
        total -= np.float64(softplus(load_table(f.sign, i) * forced_field(f, i, s)))
    return total


# Vectors over chains


@nb.njit(**INLINE)
def _lane_fields(bias, f, begin, end, s, chains, x):
    """x (C,) = bias + Σ w s over entries begin … end - 1; s (N, C)."""
    e = begin
    if end - e >= 4:
        w0, j0 = load_table(f.weights, e), np.int64(load_table(f.columns, e)) * chains
        w1, j1 = load_table(f.weights, e + 1), np.int64(load_table(f.columns, e + 1)) * chains
        w2, j2 = load_table(f.weights, e + 2), np.int64(load_table(f.columns, e + 2)) * chains
        w3, j3 = load_table(f.weights, e + 3), np.int64(load_table(f.columns, e + 3)) * chains
        for c in range(chains):
            near = w0 * load_state(s, j0 + c) + w1 * load_state(s, j1 + c)
            far = w2 * load_state(s, j2 + c) + w3 * load_state(s, j3 + c)
            store_field(x, c, bias + near + far)
        e += 4
    else:
        for c in range(chains):
            store_field(x, c, bias)
    while end - e >= 2:
        w0, j0 = load_table(f.weights, e), np.int64(load_table(f.columns, e)) * chains
        w1, j1 = load_table(f.weights, e + 1), np.int64(load_table(f.columns, e + 1)) * chains
        for c in range(chains):
            near = w0 * load_state(s, j0 + c) + w1 * load_state(s, j1 + c)
            store_field(x, c, load_field(x, c) + near)
        e += 2
    if e < end:
        w0, j0 = load_table(f.weights, e), np.int64(load_table(f.columns, e)) * chains
        for c in range(chains):
            store_field(x, c, load_field(x, c) + w0 * load_state(s, j0 + c))


@nb.njit(**INLINE)
def _lane_log_forced(sign, x, level, chains):
    for c in range(chains):
        store_sum(level, c, load_sum(level, c) - softplus(sign * load_field(x, c)))


@nb.njit(**INLINE)
def _lane_draw(x, u, offset, s, recent, base, chains, averaged):
    if averaged:
        for c in range(chains):
            p = sigmoid(load_field(x, c))
            store_state(s, base + c, ONE(p) if load_uniform(u, offset + c) < p else ZERO(p))
            store_sum(recent, base + c, load_sum(recent, base + c) + p)
    else:
        for c in range(chains):
            p = sigmoid(load_field(x, c))
            drawn = ONE(p) if load_uniform(u, offset + c) < p else ZERO(p)
            store_state(s, base + c, drawn)
            store_sum(recent, base + c, load_sum(recent, base + c) + drawn)


@nb.njit(**JIT)
def run_lanes(f, keys, first, steps, averaged, chib, head, tail, fixed, s, sums, log_t):
    """keys (2, C); s, sums (N, C)."""
    n, chains = s.shape
    chunk = min(n, max(64, LANE_NUMBERS // chains // 2 * 2))
    u = np.empty((chunk, chains), dtype=s.dtype)
    x, level, recent = np.empty_like(s[0]), np.empty_like(s[0]), np.zeros_like(s)
    log_level = np.empty(chains)
    g, state, fields, v = pointers(f), address(s, 0), address(x, 0), address(u, 0)
    levels, totals = address(level, 0), address(recent, 0)
    for t in range(first, first + steps):
        counter = np.uint64(t) * np.uint64(n + 1)
        if chib:
            level[:] = 0.0
            log_level[:] = fixed
            for i in range(head, tail):
                begin, end = load_table(g.start, i), load_table(g.later, i)
                _lane_fields(load_table(g.forced, i), g, begin, end, state, chains, fields)
                _lane_log_forced(load_table(g.sign, i), fields, levels, chains)
                if i % FLUSH == FLUSH - 1:
                    add_recent(level, log_level)
        for i in range(n):
            place = i % chunk
            if place == 0:
                counter = fill_uniform(keys, counter, u[: min(chunk, n - i)])
            begin, end = load_table(g.start, i), load_table(g.start, i + 1)
            _lane_fields(load_table(g.biases, i), g, begin, end, state, chains, fields)
            if chib and i < head:
                _lane_log_forced(load_table(g.sign, i), fields, levels, chains)
                if i % FLUSH == FLUSH - 1:
                    add_recent(level, log_level)
            _lane_draw(fields, v, place * chains, state, totals, i * chains, chains, averaged)
        if chib:
            add_recent(level, log_level)
            for c in range(chains):
                log_t[c] = log_add(log_t[c], log_level[c])
        if (t - first) % FLUSH == FLUSH - 1:
            add_recent(recent, sums)
    add_recent(recent, sums)


# Vectors over the rows of a block


@nb.njit(**INLINE)
def _block_fields(biases, weights, columns, o, width, low, n, s, x):
    """x of n rows from `low` on; their entries begin at o, see `gibbs_tables.Padded`."""
    d = 0
    if width >= 4:
        for k in range(n):
            e = o + k
            near = load_table(weights, e) * load_state(s, load_table(columns, e))
            near += load_table(weights, e + n) * load_state(s, load_table(columns, e + n))
            far = load_table(weights, e + 2 * n) * load_state(s, load_table(columns, e + 2 * n))
            far += load_table(weights, e + 3 * n) * load_state(s, load_table(columns, e + 3 * n))
            store_field(x, low + k, load_table(biases, low + k) + near + far)
        d = 4
    else:
        for k in range(n):
            store_field(x, low + k, load_table(biases, low + k))
    while width - d >= 2:
        for k in range(n):
            e = o + d * n + k
            near = load_table(weights, e) * load_state(s, load_table(columns, e))
            near += load_table(weights, e + n) * load_state(s, load_table(columns, e + n))
            store_field(x, low + k, load_field(x, low + k) + near)
        d += 2
    if d < width:
        for k in range(n):
            e = o + d * n + k
            pull = load_table(weights, e) * load_state(s, load_table(columns, e))
            store_field(x, low + k, load_field(x, low + k) + pull)


@nb.njit(**JIT)
def run_sites(f, padded, keys, first, steps, averaged, chib, head, tail, fixed, s, sums, log_t):
    """keys (C, 2); s, sums (C, N)."""
    n, blocks = s.shape[1], padded.widths.size
    whole = n <= PIECE
    u, x, recent = np.empty_like(s[0, : min(n, PIECE)]), np.empty_like(s[0]), np.zeros_like(s[0])
    g, fields, v, totals = pointers(f), address(x, 0), address(u, 0), address(recent, 0)
    weights, columns = address(padded.weights, 0), address(padded.columns, 0)
    for c in range(s.shape[0]):
        state = address(s, c * n)
        for t in range(first, first + steps):
            counter = np.uint64(t) * np.uint64(n + 1 if whole else n + blocks)
            level = fixed + log_forced_middle(g, state, head, tail) if chib else 0.0
            if whole:
                fill_uniform(keys[c], counter, u)
            for b in range(blocks):
                low, high = padded.bounds[b], padded.bounds[b + 1]
                offset, width = padded.offsets[b], padded.widths[b]
                _block_fields(g.biases, weights, columns, offset, width, low, high - low, state, fields)
                if whole:
                    _draw_rows(fields, v, low, state, totals, low, high - low, averaged)
                else:
                    for start in range(low, high, PIECE):
                        count = min(PIECE, high - start)
                        counter = fill_uniform(keys[c], counter, u[:count])
                        _draw_rows(fields, v, 0, state, totals, start, count, averaged)
            if chib:
                log_t[c] = log_add(log_t[c], level + log_forced(g, fields, head))
            if (t - first) % FLUSH == FLUSH - 1:
                add_recent(recent, sums[c])
        add_recent(recent, sums[c])
