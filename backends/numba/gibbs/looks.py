"""What log Z asks beside the chains of any form: looks from both sides."""

from __future__ import annotations

import numpy as np

from spinbench.backends.numba.gibbs.form import WORD, Array
from spinbench.backends.numba.gibbs.lanes import Block, add_levels, fill_lanes, log_forced_rows, update_lanes
from spinbench.backends.numba.gibbs.shared import (
    INLINE,
    JIT,
    pointers,
    vector_width,
    whole_vectors,
)
from spinbench.backends.numba.gibbs.single_updates import log_transition, update_row
from spinbench.backends.numba.gibbs.tables import Source
from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.simd.arrays import copy_into, empty_array, zero_array
from spinbench.backends.numba.simd.memory import address, keep, line_address, load, store
from spinbench.backends.numba.simd.random import fill_rows
from spinbench.backends.numba.simd.vectors import spread

MANY_CHAINS = 16
"""From so many on looks go in vectors of chains."""
LANES = 16
MOST_ROWS = 2**16
"""Of which a block of chains takes 50 MiB."""


def looks(source: Source, keys: Array, step: int, states: Array) -> tuple[Array, Array]:
    """log T(s* <- s) (C,) at the states (C, N), and at as many draws of R(. <- s*).

    Args:
        source: of the model's rows.
        keys: (C, 2) uint64, apart from those of the sweeps.
        step: that they are told apart by.
        states: (C, N) 0 and 1 of the kernel's precision.
    """
    log_t, log_r = np.empty((2, len(states)))
    run_looks(source.flat, keys, step, source.tables.mode.astype(states.dtype), states, log_t, log_r)
    return log_t, log_r


def lane_looks(source: Source, keys: Array, step: int, states: Array, chains: int) -> tuple[Array, Array]:
    """The same of so many chains in blocks: keys (K, 2, B), states (K, N, B), which change."""
    found = np.empty((2, len(states), states.shape[-1]))
    run_lane_looks(source.flat, keys, step, source.tables.mode.astype(states.dtype), states, found[0], found[1])
    return found[0].ravel()[:chains], found[1].ravel()[:chains]


def load_looks(source: Source, chains: int) -> None:
    """Compile what looks run for so many chains."""
    mode, none = source.tables.mode.astype(source.real), np.empty(0)
    if not in_lanes(source, chains):
        states = np.empty((0, len(mode)), dtype=source.real)
        run_looks(source.flat, np.empty((0, 2), dtype=WORD), 0, mode, states, none, none)
        return
    states, found = np.empty((0, 0, LANES), dtype=source.real), np.empty((0, LANES))
    run_lane_looks(source.flat, np.empty((0, 2, LANES), dtype=WORD), 0, mode, states, found, found)


def in_lanes(source: Source, chains: int) -> bool:
    """Whether looks go in vectors of chains: many do, unless their blocks would take much memory."""
    return chains >= MANY_CHAINS and source.model.num_variables <= MOST_ROWS


@njit(**INLINE)
def _begin_row(i, state, b):
    """All chains' states of row i."""
    for c in range(0, b.chains, vector_width(b.s)):
        store(b.s, i * b.chains + c, spread(state))


@njit(**JIT)
def run_lane_looks(f, keys, step, mode, s, log_t, log_r):
    """As `run_looks`, of blocks: keys (K, 2, B), s (K, N, B), which become the draws of R; log_t, log_r (K, B)."""
    blocks, n, count = s.shape
    width = 64 // s.itemsize
    level, u = zero_array(2 * count + width, s.dtype), zero_array(n * count + width, s.dtype)
    walk, saved = empty_array(count + 8, np.uint64), empty_array(count + 16, np.uint32)
    g, counter = pointers(f), np.uint64(step) * np.uint64(n + 1)
    walker, kept, v, levels = line_address(walk), line_address(saved), line_address(u), line_address(level)
    for k in range(blocks):
        gammas, states = address(keys, (2 * k + 1) * count), address(s, k * n * count)
        for drawn in range(2):  # a loop, so that what both sides take is compiled once
            log_p = address(log_r if drawn else log_t, k * count)
            b = Block(count, states, walker, gammas, kept, v, levels, log_p)
            if drawn:
                for c in range(count):
                    store(walker, c, keys[k, 0, c] + counter * keys[k, 1, c])
                for i in range(n):
                    _begin_row(i, mode[i], b)
                    fill_lanes(g, i, b)
                for i in range(n - 1, -1, -1):
                    update_lanes(g, i, b)
            for c in range(count):
                store(log_p, c, 0.0)
            log_forced_rows(g, 0, n, b)
            add_levels(b)
    keep(level)
    keep(u)
    keep(walk)
    keep(saved)


@njit(**JIT)
def run_looks(f, keys, step, mode, s, log_t, log_r):
    """log T(s* <- s) at the states s (C, N) into log_t (C,), and at as many draws of R(. <- s*) into log_r (C,).

    keys (C, 2), apart from those of the sweeps; mode (N,) s*. R is the sweep in reverse order.
    """
    g, n = pointers(f), s.shape[1]
    u, x, drawn = empty_array(whole_vectors(n), s.dtype), empty_array(n, s.dtype), empty_array(n, s.dtype)
    v, fields, row = address(u, 0), address(x, 0), address(drawn, 0)
    for c in range(s.shape[0]):
        log_t[c] = log_transition(g, n, address(s, c * n))
        copy_into(drawn, mode)
        fill_rows(keys[c], np.uint64(step) * np.uint64(n + 1), u)
        for i in range(n - 1, -1, -1):
            update_row(g, i, row, fields, load(v, i))
        log_r[c] = log_transition(g, n, row)
    keep(u)
    keep(x)
    keep(drawn)
