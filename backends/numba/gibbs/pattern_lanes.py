"""Chromatic and raster sweeps in vectors of 32 chains by looking probabilities up (`patterns`).

A state is a word of 16 bits, all 0 or all 1, so that the neighbours' states make the index of an entry in one
instruction a neighbour. 16 random bits are compared with the highest 16 of the entry; where they are equal, one time in
2^16, 48 further bits decide, so that draws are exact.

The limit, for 32 chains and four neighbours, in instructions for the two vector units: 13 for random words, 4 for the
index, 1 for the look-up, 5 for comparison, state and sum, 24 in all: 12 cycles for 32 updates, 0.38 an update. (The
64-bit products are three instructions each.) Rao-Blackwell means and log T add two look-ups a piece of 8 bits: 6 or 14
instructions. What reaches it: one vector of chains does all its sweeps before the next, with the generator in registers
and states, sums and tables in the first-level cache; rows of a colour do not wait for each other.

Chain c takes its numbers from quarter c mod 4 of the words of stream c // 4. Arguments as in `sweeps`.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from spinbench.backends.numba.gibbs.patterns import PIECE
from spinbench.backends.numba.gibbs.units import INLINE, JIT, KERNEL
from spinbench.backends.numba.simd.functions import at_least, exp, log1p, magnitude
from spinbench.backends.numba.simd.memory import (
    address,
    keep,
    load_field,
    load_state,
    load_sum,
    load_table,
    load_uniform,
    moved,
    store_field,
    store_state,
    store_sum,
)
from spinbench.backends.numba.simd.random import GOLDEN_GAMMA, mix64
from spinbench.backends.numba.simd.vector_memory import (
    line_address,
    load_field_vector,
    load_state_vector,
    load_sum_vector,
    load_table_words,
    look_up,
    store_field_vector,
    store_state_vector,
    store_sum_vector,
    store_uniform_vector,
)
from spinbench.backends.numba.simd.vectors import (
    any_lane,
    choose,
    quarters,
)

CHAINS = 32
"""Of a block: a vector."""
PARTS = 4
"""Chains that share a stream of words."""
FLUSH = 2**PIECE
"""Terms that a sum of pieces holds."""
EVERY = np.uint16(0xFFFF)
LOW_BITS = np.uint64(2**48 - 1)
REST = np.uint64(16)
WORDS = (0,) * 8


@nb.njit(**INLINE)
def _pattern(near, i, shape, s):
    """The states of row i's neighbours as bits."""
    first = i * len(shape)
    found = load_state_vector(s, np.int64(load_table(near, first)) * CHAINS) & np.uint16(1)
    for k in range(1, len(shape)):
        state = load_state_vector(s, np.int64(load_table(near, first + k)) * CHAINS)
        found = found | (state & np.uint16(1 << k))
    return found


@nb.njit(**INLINE)
def _entries(table, first, pattern, shape):
    """Entries first + pattern; those of the sixth neighbour's two states lie beside each other."""
    if len(shape) < 6:
        return look_up(table, first, pattern)
    low = pattern & np.uint16(31)
    return choose(pattern >= np.uint16(32), look_up(table, first + 32, low), look_up(table, first, low))


@nb.njit(**KERNEL)
def _decide(thresholds, first, patterns, hashes, state):
    """The states of lanes whose highest bits are equal, marked in `state` by 1, from further bits."""
    for lane in range(CHAINS):
        if load_state(state, lane) == np.uint16(1):
            word = load_uniform(hashes, lane >> 2) + GOLDEN_GAMMA * np.uint64((lane & 3) + 1)
            threshold = load_table(thresholds, first + np.int64(load_field(patterns, lane))) & LOW_BITS
            store_state(state, lane, EVERY if mix64(word) >> REST < threshold else np.uint16(0))


@nb.njit(**INLINE)
def _add_pieces(table, row, pieces, pattern, shape, to):
    """to[piece] += the pieces of a row's number, vectors."""
    for k in range(len(pieces)):
        part = _entries(table, (row * len(pieces) + k) << len(shape), pattern, shape)
        store_field_vector(to, k * CHAINS, load_field_vector(to, k * CHAINS) + part)


@nb.njit(**INLINE)
def _add_sums(parts, pieces, unit, sums):
    """sums += unit times the pieces' sums, which become 0."""
    for k in range(len(pieces)):
        unit = unit / 2.0**PIECE
        for c in range(CHAINS):
            store_sum(sums, c, load_sum(sums, c) + unit * np.float64(load_field(parts, k * CHAINS + c)))
            store_field(parts, k * CHAINS + c, np.uint16(0))


@nb.njit(**INLINE)
def _add_counts(counts, sums):
    """sums += counts, which become 0."""
    for c in range(CHAINS):
        store_sum(sums, c, load_sum(sums, c) + np.float64(load_field(counts, c)))
        store_field(counts, c, np.uint16(0))


@nb.njit(**INLINE)
def _add_level(levels, log_t):
    """log_t = log(e^log_t + e^level); levels become 0."""
    for c in range(0, CHAINS, 8):
        level, before = load_sum_vector(levels, c), load_sum_vector(log_t, c)
        store_sum_vector(log_t, c, at_least(level, before) + log1p(exp(-magnitude(level - before))))


@nb.njit(**JIT)
def run_pattern_lanes(g, keys, first, steps, averaged, chib, head, tail, fixed, s, sums, log_t):
    """Blocks of 32 chains; g `Words`; keys (K, 2, 8); s (K, N + 1, 32) uint16; sums (K, N, 32); log_t (K, 32)."""
    blocks, n, pieces = s.shape[0], sums.shape[1], g.pieces
    near, high, thresholds = address(g.near, 0), address(g.high, 0), address(g.thresholds, 0)
    p, losses = address(g.p, 0), address(g.losses, 0)
    width = len(pieces) if averaged else 1
    recent_ = np.zeros((n * width + 2) * CHAINS, dtype=np.uint16)
    lost_, levels_ = np.zeros((len(pieces) + 2) * CHAINS, dtype=np.uint16), np.empty(CHAINS + 8)
    patterns_, hashes_ = np.empty(2 * CHAINS, dtype=np.uint16), np.empty(16, dtype=np.uint64)
    recent, lost, levels = line_address(recent_), line_address(lost_), line_address(levels_)
    patterns, hashes = line_address(patterns_), line_address(hashes_)
    shift = len(g.shape)
    for b in range(blocks):
        state, total = address(s, b * (n + 1) * CHAINS), address(sums, b * n * CHAINS)
        start = load_table_words(address(keys, 16 * b), 0, WORDS)
        gamma = load_table_words(address(keys, 16 * b + 8), 0, WORDS)
        for t in range(first, first + steps):
            z = start + gamma * (np.uint64(t) * np.uint64(n + 1))
            if chib:
                for c in range(CHAINS):
                    store_sum(levels, c, fixed)
                for i in range(head, tail):
                    _add_pieces(losses, i, pieces, _pattern(near, i, g.shape, state), g.shape, lost)
                    if i % FLUSH == FLUSH - 1:
                        _add_sums(lost, pieces, -g.most, levels)
                _add_sums(lost, pieces, -g.most, levels)
            for i in range(n):
                pattern = _pattern(near, i, g.shape, state)
                words = mix64(z)
                z = z + gamma
                threshold, drawn = _entries(high, i << shift, pattern, g.shape), quarters(words)
                equal, none = drawn == threshold, pattern ^ pattern
                drawn = choose(drawn < threshold, ~none, none)
                own = i * CHAINS
                if any_lane(equal):
                    store_field_vector(patterns, 0, pattern)
                    store_uniform_vector(hashes, 0, words)
                    store_state_vector(state, own, choose(equal, none + np.uint16(1), drawn))
                    _decide(thresholds, i << shift, patterns, hashes, moved(state, own))
                    drawn = load_state_vector(state, own)
                store_state_vector(state, own, drawn)
                if averaged:
                    _add_pieces(p, i, pieces, pattern, g.shape, moved(recent, own * len(pieces)))
                else:
                    store_field_vector(recent, own, load_field_vector(recent, own) - drawn)
                if chib and i < head:
                    _add_pieces(losses, i, pieces, pattern, g.shape, lost)
                    if i % FLUSH == FLUSH - 1:
                        _add_sums(lost, pieces, -g.most, levels)
            if chib:
                _add_sums(lost, pieces, -g.most, levels)
                _add_level(levels, address(log_t, b * CHAINS))
            if (t - first) % FLUSH == FLUSH - 1 or t == first + steps - 1:
                for i in range(n):
                    if averaged:
                        _add_sums(moved(recent, i * len(pieces) * CHAINS), pieces, 1.0, moved(total, i * CHAINS))
                    else:
                        _add_counts(moved(recent, i * CHAINS), moved(total, i * CHAINS))
    keep(recent_)
    keep(lost_)
    keep(levels_)
    keep(patterns_)
    keep(hashes_)
