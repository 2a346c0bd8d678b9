"""The form "pattern_lanes": chromatic and raster sweeps in vectors of 32 chains by looking probabilities up.

A state is a word of 16 bits, all 0 or all 1, so that the neighbours' states make the index of an entry in one
instruction a neighbour. 16 random bits are compared with the highest 16 of the entry; where they are equal, one time in
2^16, 48 further bits decide, so that draws are exact.

The limit, for 32 chains and four neighbours, in instructions for the two vector units: 13 for random words, 4 for the
index, 1 for the look-up, 5 for comparison, state and sum, 24 in all: 12 cycles for 32 updates, 0.38 an update. (The
64-bit products are three instructions each.) Rao-Blackwell means add two look-ups a piece of 8 bits: 6 or 14
instructions. What reaches it: one vector of chains does all its sweeps before the next, with the generator in registers
and states, sums and tables in the first-level cache; rows of a colour do not wait for each other.

Chain c takes its numbers from quarter c mod 4 of the words of stream c // 4.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spinbench.backends.numba.gibbs.form import Chains, Copies, Form, Request, Source, Steps, no_fields
from spinbench.backends.numba.gibbs.patterns import PIECE, Words, make_words
from spinbench.backends.numba.gibbs.shared import INLINE, JIT, WRITTEN_OUT, add_recent, block_keys, in_blocks
from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.simd import (
    GOLDEN_GAMMA,
    Address,
    Array,
    address,
    any_lane,
    choose,
    empty_array,
    keep,
    load,
    load_lanes,
    load_vector,
    look_up,
    mix64,
    offset_pointer,
    quarters,
    store,
    zero_array,
    zeros_aligned,
)

# Chains of a block: 16-bit words in a vector of 512 bits.
CHAINS = 32
# Chains that share a stream (the length of this tuple): a hash of 64 bits gives four uniform numbers of 16 bits.
PARTS = (0,) * 4
# Sweeps between flushes: a sum of 2^8 pieces below 2^8 fits 16 bits.
FLUSH = 2**PIECE
# Marks of a state: 0, undecided, and 1. In state 1 every bit is set, so that it serves as a mask.
MARKS = (np.uint16(0), np.uint16(1), np.uint16(0xFFFF))
WORDS = (0,) * 8


class Block(NamedTuple):
    """Pointers of a block of chains.

    Attributes:
        s: (N + 1, 32) states.
        recent: (N, K, 32) pieces of p, or (N, 32) counts of s, of the last sweeps.
        patterns, hashes: room for `decide`.
    """

    s: Address
    recent: Address
    patterns: Address
    hashes: Address


@njit(**WRITTEN_OUT)
def decide(thresholds, first, entries, hashes, state, marks, parts):
    """The states of the lanes of a vector whose highest bits are equal to the threshold's, from further bits.

    marks: (0, 1, a state of 1), of the states' type: 1 in `state` says which lanes those are. entries: of the lanes in
    `thresholds`, from `first` on. parts: a tuple of as many numbers as lanes share one of the `hashes`.
    """
    none, equal, every = marks
    shared = np.int64(len(parts))
    # The highest bits were equal; the rest of the threshold is compared with as many new random bits.
    bits_used = np.uint64(64 // shared)
    for lane in range(8 * shared):
        if load(state, lane) == equal:
            hashed = load(hashes, lane // shared) + GOLDEN_GAMMA * np.uint64(lane % shared + 1)
            threshold = load(thresholds, first + np.int64(load(entries, lane)))
            rest = mix64(hashed) >> bits_used
            below = rest < (threshold & (np.uint64(2**64 - 1) >> bits_used))
            store(state, lane, every if below else none)


@njit(**INLINE)
def pattern_of(near, i, shape, s):
    """The states of row i's neighbours as bits."""
    first = i * len(shape)
    bits = load_vector(s, np.int64(load(near, first)) * CHAINS) & np.uint16(1)
    for k in range(1, len(shape)):
        state = load_vector(s, np.int64(load(near, first + k)) * CHAINS)
        bits = bits | (state & np.uint16(1 << k))
    return bits


@njit(**INLINE)
def entries_of(table, first, pattern, shape):
    """Entries first + pattern; those of the sixth neighbour's two states lie beside each other."""
    # One look-up reaches a vector of 32 16-bit entries; 64 entries take two look-ups and a selection.
    if len(shape) < 6:
        return look_up(table, first, pattern)
    low = pattern & np.uint16(31)
    return choose(pattern >= np.uint16(32), look_up(table, first + 32, low), look_up(table, first, low))


@njit(**INLINE)
def add_pieces(table, row, pieces, shape, pattern, mask, to):
    """to[piece] += the pieces of a row's number, vectors, in the lanes of which the mask has all bits."""
    for k in range(len(pieces)):
        part = entries_of(table, (row * len(pieces) + k) << len(shape), pattern, shape) & mask
        store(to, k * CHAINS, load_vector(to, k * CHAINS) + part)


@njit(**INLINE)
def add_sums(parts, pieces, unit, signed, sums):
    """sums += unit times the pieces' sums, which become 0; the highest may be `signed`."""
    for k in range(len(pieces)):
        unit = unit / 2.0**PIECE
        for c in range(CHAINS):
            part = np.float64(load(parts, k * CHAINS + c))
            if signed and k == 0 and part >= 2.0**15:
                part -= 2.0**16
            store(sums, c, load(sums, c) + unit * part)
            store(parts, k * CHAINS + c, np.uint16(0))


@njit(**INLINE)
def draw_row(g, i, pattern, hashes, b):
    """Row i's new states, of g's `high`, `thresholds` and `shape` and b's `s`, `patterns` and `hashes`."""
    first, row = i << len(g.shape), i * CHAINS
    threshold, uniforms = entries_of(g.high, first, pattern, g.shape), quarters(hashes)
    equal, none = uniforms == threshold, pattern ^ pattern
    spins = choose(uniforms < threshold, ~none, none)
    # Happens once in 2^11 updates of a 32-lane vector: rare enough to go through memory, lane by lane.
    if any_lane(equal):
        store(b.patterns, 0, pattern)
        store(b.hashes, 0, hashes)
        store(b.s, row, choose(equal, none + MARKS[1], spins))
        decide(g.thresholds, first, b.patterns, b.hashes, offset_pointer(b.s, row), MARKS, PARTS)
        spins = load_vector(b.s, row)
    store(b.s, row, spins)
    return spins


@njit(**INLINE)
def _sweep(g, n, averaged, z, gamma, b):
    """With the words that begin with mix(z)."""
    for i in range(n):
        pattern, row = pattern_of(g.near, i, g.shape, b.s), i * CHAINS
        spins = draw_row(g, i, pattern, mix64(z), b)
        z = z + gamma
        if averaged:
            whole = ~(pattern ^ pattern)
            add_pieces(g.p, i, g.pieces, g.shape, pattern, whole, offset_pointer(b.recent, row * len(g.pieces)))
        else:
            # A state with all bits set is -1 as a signed number, so that subtracting it counts ones.
            store(b.recent, row, load_vector(b.recent, row) - spins)


@njit(**INLINE)
def flush(pieces, n, averaged, recent, sums):
    """sums (N, 32) += the recent ones, which become 0."""
    for i in range(n):
        if averaged:
            add_sums(
                offset_pointer(recent, i * len(pieces) * CHAINS), pieces, 1.0, False, offset_pointer(sums, i * CHAINS)
            )
        else:
            add_recent(offset_pointer(recent, i * CHAINS), offset_pointer(sums, i * CHAINS), 1.0, CHAINS)


@njit(**INLINE)
def word_pointers(g, low, high):
    """`Words` with pointers in place of the arrays, from places `low` of the thresholds and `high` of their bits on."""
    near, thresholds = address(g.near, 0), address(g.thresholds, low)
    return Words(near, thresholds, address(g.high, high), address(g.p, 0), g.pieces, g.shape)


@njit(**JIT)
def run_pattern_lanes(tables, request, steps, chains, copies):
    keys, s, _, _, sums, _ = chains
    blocks, n = s.shape[0], sums.shape[1]
    width = len(tables.pieces) if request.averaged else 1
    recent_ = zero_array(n * width * CHAINS, np.uint16)
    patterns_, hashes_ = empty_array(CHAINS, np.uint16), empty_array(8, np.uint64)
    recent, patterns, hashes = address(recent_, 0), address(patterns_, 0), address(hashes_, 0)
    g = word_pointers(tables, 0, 0)
    for k in range(blocks):
        b = Block(address(s, k * (n + 1) * CHAINS), recent, patterns, hashes)
        start = load_lanes(address(keys, 16 * k), 0, WORDS)
        gamma = load_lanes(address(keys, 16 * k + 8), 0, WORDS)
        copied, due = 0, steps.first + copies.first
        for t in range(steps.first, steps.end):
            _sweep(g, n, request.averaged, start + gamma * (np.uint64(t) * np.uint64(n + 1)), gamma, b)
            if (t - steps.first) % FLUSH == FLUSH - 1 or t == steps.end - 1:
                flush(tables.pieces, n, request.averaged, recent, address(sums, k * n * CHAINS))
            if t + 1 == due and copied < len(copies.states):
                copy = address(copies.states, (copied * blocks + k) * (n + 1) * CHAINS)
                for i in range(n):
                    store(copy, i * CHAINS, load_vector(b.s, i * CHAINS))
                copied, due = copied + 1, due + copies.every
    keep(recent_, patterns_, hashes_)


class PatternLanes(Form):
    """s (K, N + 1, 32) uint16, 0 or all bits 1, the last row 0; keys (K, 2, 8); tables: `Words`."""

    look_steps = 16

    def make_tables(self, source: Source) -> Words:
        return make_words(source.exact(), self.real, source.method.precision_bits)

    def begin(self, seed: int, states: Array) -> tuple[Array, Array, Array]:
        n, chains = states.shape
        blocks = -(-chains // CHAINS)
        s = zeros_aligned((blocks, n + 1, CHAINS), np.dtype(np.uint16))
        s[:, :n] = in_blocks(np.where(states > 0, MARKS[2], MARKS[0]), blocks, CHAINS)
        return block_keys(seed, blocks, CHAINS // len(PARTS)), s, no_fields(self.real)

    def run_and_copy(self, request: Request, steps: Steps, copies: Copies, chains: Chains) -> None:
        run_pattern_lanes(self.tables, request, steps, chains, copies)
