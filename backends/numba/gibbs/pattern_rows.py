"""The form "pattern_rows": chromatic and raster sweeps of one row after the other by looking probabilities up.

Everything of an update is an integer: the neighbours' states make an index, the entry there is compared with 64 random
bits. The limit, with four neighbours: 8 loads for the index, 4 instructions that combine them, 5 for the entry,
comparison and state, 3 for random bits and sum and 1 of the loop, which at 6 a cycle is 3.5 cycles an update. What
reaches it: rows of a colour do not wait for each other, so that many are on their way at once, there is no branch but
the loop's, and sums are made in vectors when the sweep is over. On lattices neighbours lie at a few shifts, so that the
indices are vectors, too, and entries are gathered.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from spinbench.backends.numba.gibbs.form import Chains, Flat, Form, Request, Source, Steps, no_fields
from spinbench.backends.numba.gibbs.patterns import MAX_NEIGHBOURS, pad_neighbours, tabulate
from spinbench.backends.numba.gibbs.shared import INLINE, JIT, row_keys
from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.simd import (
    Array,
    address,
    choose,
    count_up,
    gather_indexed,
    in_lanes,
    keep,
    load,
    load_lanes,
    load_vector,
    mix64,
    pointers,
    store,
)
from spinbench.mathematics.graphs.rows import distances

# 64-bit words of a vector of 512 bits.
WORDS = 8
LANES = (0,) * WORDS
# Mean number of rows of a lattice's block from which vectors over them are faster than row after row.
WIDE_BLOCK = 12
# Of the fixed point that thresholds are in.
UNIT = 2.0**-64


class RowTables(NamedTuple):
    """Bit k of a pattern is the state of a row's neighbour k.

    Attributes:
        near: (N D,) uint32, the neighbours of each row, N where there are fewer than D; of a lattice (1,).
        thresholds: (N P,) uint64, p(s_i = 1 | pattern) 2^64, rounded, 2^64 - 1 at most.
        bounds: (B + 1,) int64, rows of block b.
        slots: (B + 1,) int64, shifts of block b.
        shifts: int64, from a row to its neighbours.
    """

    near: Array
    thresholds: Array
    bounds: Array
    slots: Array
    shifts: Array


@njit(**INLINE)
def _sweep_rows(g, shape, key, n, u, s):
    """Updates row after row, as u[i] says: at first 64 random bits, those of row i in `random.row_numbers` for float64,
    then the row's threshold."""
    start, gamma = key
    z = count_up(gamma) * gamma + start
    for i in range(0, n, WORDS):
        store(u, i, mix64(z))
        z = z + np.uint64(WORDS) * gamma
    for i in range(n):
        last, entry = (i + 1) * len(shape) - 1, i
        for k in range(len(shape)):
            entry = 2 * entry + np.int64(load(s, np.int64(load(g.near, last - k))))
        threshold = load(g.thresholds, entry)
        store(s, i, np.uint8(load(u, i) < threshold))
        store(u, i, threshold)


@njit(**INLINE)
def _sweep_lattice(g, width, key, n, entries, u, s):
    """The same in vectors over the rows of a block."""
    block, low, (start, gamma) = 0, 0, key
    while low < n:
        high, first, last = load(g.bounds, block + 1), load(g.slots, block), load(g.slots, block + 1) - 1
        for row in range(low, high, 2 * WORDS):
            bits = load_vector(s, row + load(g.shifts, last))
            for k in range(last - 1, first - 1, -1):
                bits = bits + bits + load_vector(s, row + load(g.shifts, k))
            store(entries, row, ((count_up(bits) + np.uint32(row)) << np.uint32(width)) + bits)
        # The last vector reaches beyond the block, where states must stay.
        z, after = (count_up(gamma) + np.uint64(low)) * gamma + start, load_lanes(s, high, LANES)
        zero = in_lanes(np.uint32(0), LANES)
        for row in range(low, high, WORDS):
            threshold = gather_indexed(g.thresholds, entries, row)
            store(s, row, choose(mix64(z) < threshold, zero + np.uint32(1), zero))
            store(u, row, threshold)
            z = z + np.uint64(WORDS) * gamma
        store(s, high, after)
        block, low = block + 1, high


@njit(**JIT)
def run_pattern_rows(tables, shape, width, request, steps, chains):
    keys, s, _, _, sums, _ = chains
    n = sums.shape[1]
    bits, places = np.empty(n + WORDS, dtype=np.uint64), np.empty(n + 2 * WORDS, dtype=np.uint32)
    g, u, entries = pointers(tables), address(bits, 0), address(places, 0)
    for c in range(s.shape[0]):
        state, out = address(s, c * s.shape[1] + n), address(sums, c * n)
        for t in range(steps.first, steps.end):
            key = keys[c, 0] + np.uint64(t) * np.uint64(n + 1) * keys[c, 1], keys[c, 1]
            # One of them is None, so that Numba drops its branch.
            if shape is not None:
                _sweep_rows(g, shape, key, n, u, state)
            if width is not None:
                _sweep_lattice(g, width, key, n, entries, u, state)
            for i in range(n):
                term = np.float64(load(u, i)) * UNIT if request.averaged else np.float64(load(state, i))
                store(out, i, load(out, i) + term)
    keep(bits, places)


def _lattice_shifts(flat: Flat, bounds: Array) -> tuple[Array, Array, Array] | None:
    """Slots and shifts as in `RowTables`, and the rows' couplings (N, D); None where a block has too many shifts."""
    weights, slots, shifts = np.zeros((len(flat.biases), MAX_NEIGHBOURS)), [0], list[int]()
    for low, high in pairwise(bounds.tolist()):
        row, away = distances(flat, low, high)
        block_shifts, slot = np.unique(away, return_inverse=True)
        if not 0 < len(block_shifts) <= MAX_NEIGHBOURS:
            return None
        weights[row, slot] = flat.weights[flat.start[low] : flat.start[high]]
        shifts += block_shifts.tolist()
        slots.append(len(shifts))
    return np.array(slots), np.array(shifts), weights[:, : np.diff(slots).max()]


class PatternRows(Form):
    """s (C, 3 N + 16) uint8, of a lattice uint32, the rows from N on; tables: what `run_pattern_rows` takes of them."""

    def make_tables(self, source: Source) -> tuple[RowTables, tuple[int, ...] | None, int | None]:
        flat, none, bounds = source.exact(), np.zeros(1, dtype=np.int64), source.bounds
        lattice = _lattice_shifts(flat, bounds) if source.block_rows >= WIDE_BLOCK else None
        if lattice is None:
            near, weights, _ = pad_neighbours(flat, max(1, source.widest))
            thresholds, _ = tabulate(flat.biases, weights)
            return RowTables(near.ravel(), thresholds.ravel(), bounds, none, none), (0,) * weights.shape[1], None
        slots, shifts, weights = lattice
        # Vectors reach beyond the last row.
        thresholds, _ = tabulate(np.pad(flat.biases, (0, WORDS)), np.pad(weights, ((0, WORDS), (0, 0))))
        return RowTables(none.astype(np.uint32), thresholds.ravel(), bounds, slots, shifts), None, weights.shape[1]

    def begin(self, seed: int, states: Array) -> tuple[Array, Array, Array]:
        n, chains = states.shape
        s = np.zeros((chains, 3 * n + 2 * WORDS), dtype=np.uint32 if self.tables[1] is None else np.uint8)
        s[:, n : 2 * n] = states.T
        return row_keys(seed, states), s, no_fields(self.real)

    def rows(self, s: Array, chains: int) -> Array:
        return super().rows(s[:, self.n :], chains)

    def run(self, request: Request, steps: Steps, chains: Chains) -> None:
        run_pattern_rows(*self.tables, request, steps, chains)
