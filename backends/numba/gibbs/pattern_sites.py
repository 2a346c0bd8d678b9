"""The form "pattern_sites": chromatic sweeps in vectors over 16 rows of a block by looking probabilities up.

States are words of 32 bits, all 0 or all 1; neighbours are loaded at a shift as in `sites`. 32 random bits are
compared with the highest 32 of the entry; where they are equal, one time in 2^32, 32 further bits decide, so that draws
are exact.

The limit, for 16 rows: a gather of 16 entries, whose loads take 8 cycles, while the two vector units do 13 instructions
for random words and a dozen others. Between two blocks there are about 60 cycles from a load of states to the next.
What reaches it is that tables stay in the second-level cache, at 128 bytes a row; larger models take `sites`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from spinbench.backends.numba.gibbs.form import SUM, Array, Asked, Chains, Form, Steps, no_fields, row_keys
from spinbench.backends.numba.gibbs.patterns import MOST_ROUGH_ENTRIES, MOST_ROW_ENTRIES, decide
from spinbench.backends.numba.gibbs.shared import INLINE, JIT, WRITTEN_OUT, add_counts, log_add
from spinbench.backends.numba.gibbs.site_patterns import SiteTables, make_site_tables
from spinbench.backends.numba.gibbs.sites import near_states
from spinbench.backends.numba.gibbs.tables import Source
from spinbench.backends.numba.simd.memory import address, keep, load_table, moved, store_sum
from spinbench.backends.numba.simd.random import mix64
from spinbench.backends.numba.simd.vector_memory import (
    aligned_zeros,
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
from spinbench.backends.numba.simd.vectors import any_lane, choose, count_up, halves, one_half, total

WIDTH = 16
MARKS = (np.uint32(0), np.uint32(1), np.uint32(0xFFFFFFFF))
PARTS = (0,) * 2
"""Rows that share a word of 64 bits."""


class Chain(NamedTuple):
    """Pointers of one chain, and the stride of its numbers.

    Attributes:
        s, sums, counts: of its rows; counts are of s.
        level: (16,) what the rows of a sweep lose, by lanes.
        entries, hashes: room for `decide`.
    """

    s: Any
    sums: Any
    counts: Any
    level: Any
    entries: Any
    hashes: Any
    gamma: Any


@nb.njit(**WRITTEN_OUT)
def _pattern(g, block, row, s):
    """The neighbours' states of rows row, row + 1, … of a block as bits."""
    first, base = load_table(g.slots, block), load_table(g.bounds, block)
    found = load_state_vector(s, row) & np.uint32(0)
    for q in range(first, load_table(g.slots, block + 1)):
        found = found | (near_states(g, q, row, base, s) & np.uint32(1 << (q - first)))
    return found


@nb.njit(**WRITTEN_OUT)
def _entries(pattern, row, width):
    """Where the entries of rows row, row + 1, … for these patterns are."""
    rows = count_up(pattern) + np.uint32(row)
    return (rows << np.uint32(width)) + pattern


@nb.njit(**WRITTEN_OUT)
def _add_entries(table, entries, to, row):
    """to[row + lane] += table[entry], float64."""
    low, high = gather_table(table, one_half(entries, 0)), gather_table(table, one_half(entries, 1))
    store_sum_vector(to, row, load_sum_vector(to, row) + low)
    store_sum_vector(to, row + WIDTH // 2, load_sum_vector(to, row + WIDTH // 2) + high)


@nb.njit(**WRITTEN_OUT)
def _losses(g, block, chain):
    """level[0 … 15] += what the rows of a block lose, before they are updated."""
    for row in range(load_table(g.bounds, block), load_table(g.bounds, block + 1), WIDTH):
        entries = _entries(_pattern(g, block, row, chain.s), row, g.width)
        _add_entries(g.losses, entries, chain.level, 0)


@nb.njit(**WRITTEN_OUT)
def _update_block(g, block, z, averaged, forced, chain):
    """Update the rows of a block; its first hashes are those of z. Returns z after them."""
    for row in range(load_table(g.bounds, block), load_table(g.bounds, block + 1), WIDTH):
        pattern = _pattern(g, block, row, chain.s)
        entries = _entries(pattern, row, g.width)
        words = mix64(z)
        z = z + np.uint64(WIDTH // 2) * chain.gamma
        threshold, drawn = gather_table(g.high, entries), halves(words)
        none, equal = pattern ^ pattern, drawn == threshold
        drawn = choose(drawn < threshold, ~none, none)
        if any_lane(equal):
            store_field_vector(chain.entries, 0, entries)
            store_uniform_vector(chain.hashes, 0, words)
            store_state_vector(chain.s, row, choose(equal, none + MARKS[1], drawn))
            decide(g.thresholds, 0, chain.entries, chain.hashes, moved(chain.s, row), MARKS, PARTS)
            drawn = load_state_vector(chain.s, row)
        store_state_vector(chain.s, row, drawn)
        if averaged:
            _add_entries(g.p, entries, chain.sums, row)
        else:
            store_field_vector(chain.counts, row, load_field_vector(chain.counts, row) - drawn)
        if forced:
            _add_entries(g.losses, entries, chain.level, 0)
    return z


@nb.njit(**INLINE)
def _take_level(level):
    """The sum of all lanes, which become 0."""
    lost = total(load_sum_vector(level, 0) + load_sum_vector(level, WIDTH // 2))
    for k in range(WIDTH):
        store_sum(level, k, 0.0)
    return lost


@nb.njit(**JIT)
def run_pattern_sites(tables, asked, steps, chains):
    keys, s, _, _, sums, log_t = chains
    n = sums.shape[1]
    counts_, entries_ = np.zeros(n + WIDTH, dtype=np.uint32), np.empty(2 * WIDTH, dtype=np.uint32)
    hashes_, level_ = np.empty(WIDTH, dtype=np.uint64), np.zeros(WIDTH + 8)
    g, counts, level = _pointers(tables), line_address(counts_), line_address(level_)
    for c in range(sums.shape[0]):
        out, start, gamma = address(sums, c * n), keys[c, 0], keys[c, 1]
        state = address(s, c * s.shape[1] + tables.before)
        chain = Chain(state, out, counts, level, line_address(entries_), line_address(hashes_), gamma)
        for t in range(steps.first, steps.end):
            z = count_up(gamma) * gamma + (start + np.uint64(t) * np.uint64(n + 1) * gamma)
            if asked.chib:
                for block in range(tables.head, tables.tail):
                    _losses(g, block, chain)
            for block in range(tables.bounds.size - 1):
                z = _update_block(g, block, z, asked.averaged, asked.chib and block < tables.head, chain)
            if asked.chib:
                log_t[c] = log_add(log_t[c], tables.fixed - _take_level(level))
        if not asked.averaged:
            add_counts(counts, MARKS[0], out, n)
    keep(counts_)
    keep(entries_)
    keep(hashes_)
    keep(level_)


@nb.njit(**INLINE)
def _pointers(g):
    """`SiteTables` with pointers in place of the arrays."""
    return SiteTables(
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


def site_tables(source: Source) -> SiteTables | None:
    """The tables of a model, if they are small enough for the cache."""
    summed = source.method.marginals == "rao_blackwell" or source.method.weighs_steps
    rough = summed and source.real == np.float32
    most = MOST_ROUGH_ENTRIES if rough else MOST_ROW_ENTRIES
    if source.model.num_variables > most:
        return None
    return make_site_tables(source.exact(), source.bounds, source.head, source.tail, most)


class PatternSites(Form):
    """s uint32, 0 or all bits 1, with the rows and columns of `SiteTables`; sums (C, M)."""

    name = "pattern_sites"

    def reads_flat(self, source: Source) -> bool:
        return False

    def make_tables(self, source: Source) -> SiteTables | None:
        return source.once(site_tables)

    def begin(self, seed: int, states: Array) -> tuple[Array, Array, Array]:
        before, rows = self.tables.before, self.tables.rows
        columns = before + int(self.tables.bounds[-1]) + self.tables.after
        s = aligned_zeros((states.shape[1], columns), np.dtype(np.uint32))
        s[:, before + rows] = np.where(states.T > 0, MARKS[2], MARKS[0])
        return row_keys(seed, states), s, no_fields(self.real)

    def states(self, s: Array, chains: int) -> Array:
        return np.ascontiguousarray(s[:, self.tables.before + self.tables.rows] > 0, dtype=self.real)

    def no_sums(self, s: Array, chains: int) -> tuple[Array, Array]:
        return aligned_zeros((chains, int(self.tables.bounds[-1])), SUM), np.full(chains, -np.inf)

    def run(self, asked: Asked, steps: Steps, chains: Chains) -> None:
        run_pattern_sites(self.tables, asked, steps, chains)

    def of_chains(self, sums: Array, log_t: Array, chains: int) -> tuple[Array, Array]:
        return sums[:, self.tables.rows].T, log_t
