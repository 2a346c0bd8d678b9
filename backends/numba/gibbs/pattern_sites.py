"""Chromatic sweeps in vectors over 16 rows of a block by looking probabilities up (`patterns`), chain by chain.

States are words of 32 bits, all 0 or all 1; neighbours are loaded at a shift as in `sites`. 32 random bits are
compared with the highest 32 of the entry; where they are equal, one time in 2^32, 32 further bits decide, so that draws
are exact.

The limit, for 16 rows: a gather of 16 entries, whose loads take 8 cycles, while the two vector units do 13 instructions
for random words and a dozen others. Between two blocks there are about 60 cycles from a load of states to the next.
What reaches it is that tables stay in the second-level cache, at 128 bytes a row; larger models take `sites`.

Arguments as in `sweeps`.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from spinbench.backends.numba.gibbs.bands import GATHERED
from spinbench.backends.numba.gibbs.patterns import Sites
from spinbench.backends.numba.gibbs.units import INLINE, JIT, KERNEL, log_add
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
from spinbench.backends.numba.simd.random import GOLDEN_GAMMA, HIGH, mix64
from spinbench.backends.numba.simd.vector_memory import (
    gather_states,
    gather_table,
    line_address,
    load_field_vector,
    load_state_vector,
    load_sum_vector,
    store_field_vector,
    store_state_vector,
    store_sum_vector,
    store_uniform_vector,
)
from spinbench.backends.numba.simd.vectors import (
    any_lane,
    choose,
    count_up,
    halves,
    one_half,
    total,
)

WIDTH = 16
EVERY = np.uint32(0xFFFFFFFF)
LOW_BITS = np.uint64(2**32 - 1)


@nb.njit(**INLINE)
def _pattern(g, first_slot, last_slot, row, base, s):
    """The neighbours' states of rows row, row + 1, … as bits."""
    found = load_state_vector(s, row) & np.uint32(0)
    for q in range(first_slot, last_slot):
        shift = load_table(g.shifts, q)
        if shift != GATHERED:
            near = load_state_vector(s, row + shift)
        else:
            near = gather_states(s, g.columns, load_table(g.places, q) + row - base)
        found = found | (near & np.uint32(1 << (q - first_slot)))
    return found


@nb.njit(**INLINE)
def _entries(pattern, row, width):
    """Where the entries of rows row, row + 1, … for these patterns are."""
    rows = count_up(pattern) + np.uint32(row)
    return (rows << np.uint32(width)) + pattern


@nb.njit(**KERNEL)
def _decide(thresholds, entries, hashes, state):
    """The states of lanes whose highest bits are equal, marked in `state` by 1, from further bits."""
    for lane in range(WIDTH):
        if load_state(state, lane) == np.uint32(1):
            word = load_uniform(hashes, lane >> 1) + GOLDEN_GAMMA * np.uint64((lane & 1) + 1)
            threshold = load_table(thresholds, np.int64(load_field(entries, lane))) & LOW_BITS
            store_state(state, lane, EVERY if mix64(word) >> HIGH < threshold else np.uint32(0))


@nb.njit(**INLINE)
def _add_entries(table, entries, to, row):
    """to[row + lane] += table[entry], float64."""
    low, high = gather_table(table, one_half(entries, 0)), gather_table(table, one_half(entries, 1))
    store_sum_vector(to, row, load_sum_vector(to, row) + low)
    store_sum_vector(to, row + WIDTH // 2, load_sum_vector(to, row + WIDTH // 2) + high)


@nb.njit(**INLINE)
def _losses(g, block, low, high, s, level):
    """level[0 … 15] += what rows low … high - 1 of a block lose, before they are updated."""
    first, last, base = load_table(g.slots, block), load_table(g.slots, block + 1), load_table(g.bounds, block)
    for row in range(low, high, WIDTH):
        entries = _entries(_pattern(g, first, last, row, base, s), row, g.width)
        _add_entries(g.losses, entries, level, 0)


@nb.njit(**INLINE)
def _update_block(g, block, z, gamma, averaged, forced, s, sums, counts, level, entries_, hashes):
    """Update the rows of a block; its first hashes are those of z. Returns z after them."""
    first, last = load_table(g.slots, block), load_table(g.slots, block + 1)
    base, width = load_table(g.bounds, block), g.width
    for row in range(base, load_table(g.bounds, block + 1), WIDTH):
        pattern = _pattern(g, first, last, row, base, s)
        entries = _entries(pattern, row, width)
        words = mix64(z)
        z = z + np.uint64(WIDTH // 2) * gamma
        threshold, drawn = gather_table(g.high, entries), halves(words)
        none, equal = pattern ^ pattern, drawn == threshold
        drawn = choose(drawn < threshold, ~none, none)
        if any_lane(equal):
            store_field_vector(entries_, 0, entries)
            store_uniform_vector(hashes, 0, words)
            store_state_vector(s, row, choose(equal, none + np.uint32(1), drawn))
            _decide(g.thresholds, entries_, hashes, moved(s, row))
            drawn = load_state_vector(s, row)
        store_state_vector(s, row, drawn)
        if averaged:
            _add_entries(g.p, entries, sums, row)
        else:
            store_field_vector(counts, row, load_field_vector(counts, row) - drawn)
        if forced:
            _add_entries(g.losses, entries, level, 0)
    return z


@nb.njit(**JIT)
def run_pattern_sites(tables, keys, first, steps, averaged, chib, s, sums, log_t):
    """keys (C, 2); s (C, before + M + after) uint32; sums (C, M) with M padded rows."""
    chains, n = sums.shape
    blocks = tables.bounds.size - 1
    counts_, entries_ = np.zeros(n + WIDTH, dtype=np.uint32), np.empty(2 * WIDTH, dtype=np.uint32)
    hashes_, level_ = np.empty(WIDTH, dtype=np.uint64), np.zeros(WIDTH + 8)
    g = _pointers(tables)
    counts, entries, hashes = line_address(counts_), line_address(entries_), line_address(hashes_)
    level = line_address(level_)
    for c in range(chains):
        state, out = address(s, c * s.shape[1] + tables.before), address(sums, c * n)
        start, gamma = keys[c, 0], keys[c, 1]
        for t in range(first, first + steps):
            z = count_up(gamma) * gamma + (start + np.uint64(t) * np.uint64(n + 1) * gamma)
            if chib:
                for block in range(tables.head, tables.tail):
                    _losses(g, block, load_table(g.bounds, block), load_table(g.bounds, block + 1), state, level)
            for block in range(blocks):
                forced = chib and block < tables.head
                z = _update_block(g, block, z, gamma, averaged, forced, state, out, counts, level, entries, hashes)
            if chib:
                lost = total(load_sum_vector(level, 0) + load_sum_vector(level, WIDTH // 2))
                log_t[c] = log_add(log_t[c], tables.fixed - lost)
                for k in range(WIDTH):
                    store_sum(level, k, 0.0)
        if not averaged:
            for i in range(n):
                store_sum(out, i, load_sum(out, i) + np.float64(load_field(counts, i)))
                store_field(counts, i, np.uint32(0))
    keep(counts_)
    keep(entries_)
    keep(hashes_)
    keep(level_)


@nb.njit(**INLINE)
def _pointers(g):
    """`Sites` with pointers in place of the arrays."""
    return Sites(
        address(g.bounds, 0),
        address(g.slots, 0),
        address(g.shifts, 0),
        address(g.places, 0),
        address(g.columns, 0),
        address(g.high, 0),
        address(g.thresholds, 0),
        address(g.p, 0),
        address(g.losses, 0),
        address(g.rows, 0),
        g.before,
        g.after,
        g.head,
        g.tail,
        g.fixed,
        g.width,
    )
