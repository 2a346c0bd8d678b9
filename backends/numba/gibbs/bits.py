"""The form "bits": sweeps of many chains with their states as bits: one word holds a row's state in 64 chains.

A row is drawn in all chains at once by comparing the binary digits of uniform numbers U, one word of random bits a
digit, with those of the chains' probabilities p, from the highest digit on, until all chains have decided: U < p is
known at the first digit in which they differ, so that 512 chains take about 11 digits whatever the resolution. A digit
of p is a function of the neighbours' states alone: of the 2^d neighbour patterns' probabilities, rounded to `bits`
digits, it is looked up as 2^(d-2) of the 16 functions of the first two neighbours, and chosen among these by the
others. That serves all pairwise models of up to six neighbours a variable; biases and couplings are arbitrary.

Resolution: probabilities are multiples of 2^-bits, off by at most 2^-(bits+1), and by at most 2^-bits where they exceed
1 - 2^-(bits+1), since 1 itself is none of them. Where Dobrushin's condition holds, that moves no marginal by more than
2^-bits / (1 - α), α < 1 the largest sum of influences on a variable.

The limit, for 512 chains and four neighbours, in instructions for the two vector units: a digit takes 13 for its random
word, 3 for p's digit and 2 for the comparison; the 16 functions, the counters of the marginals and the rest take about
50 an update. With 11 digits that is 125 cycles for 512 updates, 0.25 an update. Sums are kept as binary counters of 6
words (a sweep adds by carrying) and spread over the chains' sums every 63 sweeps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from spinbench.backends.numba.gibbs.form import SUM, WORD, Asked, BlockForm, Chains, Steps, block_keys, no_fields
from spinbench.backends.numba.gibbs.shared import INLINE, JIT
from spinbench.backends.numba.gibbs.tables import Flat, Source
from spinbench.backends.numba.simd.memory import address, keep, load_sum, load_table, moved, store_sum
from spinbench.backends.numba.simd.random import mix64
from spinbench.backends.numba.simd.vector_memory import (
    aligned_zeros,
    line_address,
    load_field_words,
    load_state_words,
    load_sum_vector,
    load_sum_words,
    load_table_words,
    store_field_vector,
    store_state_vector,
    store_sum_vector,
)
from spinbench.backends.numba.simd.vectors import any_bit, bit_mask, choose

Array = npt.NDArray[Any]

COUNTERS = 6
"""Words of a binary counter."""
FLUSH = 2**COUNTERS - 1
FUNCTIONS = 16
"""Of two bits."""
CHAINS = 64
"""Of a word."""


class Digits(NamedTuple):
    """Tables, in row order.

    Attributes:
        start: (N + 1,) int64, row i's neighbours are columns[start[i]] … columns[start[i + 1] - 1].
        columns: (2E,) uint32.
        digits: (N bits,) unsigned: bit q of digits[i bits + b] is digit b, counted from the highest, of p(s_i = 1)
            where row i's neighbour k has the state that is bit k of q.
        bits: digits of a probability.
    """

    start: Array
    columns: Array
    digits: Array
    bits: int


def make_digits(flat: Flat, bits: int) -> Digits:
    """From a model of at most six neighbours a row; `flat` in float64."""
    degree = np.diff(flat.start)
    patterns = 2 ** int(degree.max(initial=0))
    kind = np.dtype(f"u{max(1, patterns // 8)}")
    digits = np.zeros((len(degree), bits), dtype=kind)
    for d in np.unique(degree).tolist():
        rows = np.flatnonzero(degree == d)
        entries = flat.start[rows][:, None] + np.arange(d)
        pattern = np.arange(2**d)
        near = (pattern[:, None] >> np.arange(d)) & 1
        fields = flat.biases[rows][:, None] + flat.weights[entries] @ near.T
        with np.errstate(over="ignore"):
            p = np.rint(2.0**bits / (1 + np.exp(-fields)))
        level = np.minimum(p, 2.0**bits - 1).astype(np.uint64)
        for b in range(bits):
            digit = (level >> np.uint64(bits - 1 - b)) & np.uint64(1)
            digits[rows, b] = (digit << pattern.astype(np.uint64)).sum(axis=1).astype(kind)
    return Digits(flat.start, flat.columns, digits.ravel(), bits)


def word_blocks(chains: int) -> tuple[int, int]:
    """(blocks, words of a block); a block is 1, 2, 4 or 8 words of 64 chains, the last of them perhaps idle."""
    words = -(-chains // CHAINS)
    size = min(8, 1 << (words - 1).bit_length())
    return -(-words // size), size


def pack_states(states: Array, blocks: int, size: int) -> Array:
    """(K, N, B) uint64 from (N, C) 0 and 1: chain 64 w + k is bit k of word w."""
    n, chains = states.shape
    padded = np.zeros((n, blocks * size * CHAINS), dtype=np.uint8)
    padded[:, :chains] = states
    words = np.packbits(padded, axis=1, bitorder="little").view(np.dtype("<u8")).astype(np.uint64)
    return words.reshape(n, blocks, size).swapaxes(0, 1)


@nb.njit(**INLINE)
def _mux(chooser, yes, no):
    """Bit by bit `yes` where the chooser is 1, else `no`."""
    return no ^ (chooser & (yes ^ no))


@nb.njit(**INLINE)
def _store_functions(a, b, functions, lanes):
    """All functions of bits a and b: number f has the value that is bit a + 2 b of f."""
    size = len(lanes)
    neither, only_a, only_b, both = ~(a | b), a & ~b, b & ~a, a & b
    store_field_vector(functions, 0, a ^ a)
    store_field_vector(functions, size, neither)
    store_field_vector(functions, 2 * size, only_a)
    store_field_vector(functions, 3 * size, ~b)
    store_field_vector(functions, 4 * size, only_b)
    store_field_vector(functions, 5 * size, ~a)
    store_field_vector(functions, 6 * size, a ^ b)
    store_field_vector(functions, 7 * size, ~both)
    store_field_vector(functions, 8 * size, both)
    store_field_vector(functions, 9 * size, ~(a ^ b))
    store_field_vector(functions, 10 * size, a)
    store_field_vector(functions, 11 * size, a | ~b)
    store_field_vector(functions, 12 * size, b)
    store_field_vector(functions, 13 * size, ~a | b)
    store_field_vector(functions, 14 * size, a | b)
    store_field_vector(functions, 15 * size, neither | a | b)


@nb.njit(**INLINE)
def _of_two(functions, digit, lanes):
    return load_field_words(functions, (digit & np.int64(15)) * len(lanes), lanes)


@nb.njit(**INLINE)
def _of_three(functions, digit, c, lanes):
    return _mux(c, _of_two(functions, digit >> 4, lanes), _of_two(functions, digit, lanes))


@nb.njit(**INLINE)
def _of_four(functions, digit, c, d, lanes):
    return _mux(d, _of_three(functions, digit >> 8, c, lanes), _of_three(functions, digit, c, lanes))


@nb.njit(**INLINE)
def _of_five(functions, digit, c, d, e, lanes):
    return _mux(e, _of_four(functions, digit >> 16, c, d, lanes), _of_four(functions, digit, c, d, lanes))


@nb.njit(**INLINE)
def _neighbour(g, i, k, s, lanes, none):
    """The word of row i's neighbour k, or `none`."""
    e = load_table(g.start, i) + k
    if e >= load_table(g.start, i + 1):
        return none
    return load_state_words(s, np.int64(load_table(g.columns, e)) * len(lanes), lanes)


@nb.njit(**INLINE)
def _draw(g, i, s, functions, z, gamma, lanes):
    """The states of row i from random words mix(z), mix(z + gamma), …"""
    degree = load_table(g.start, i + 1) - load_table(g.start, i)
    none = z ^ z
    _store_functions(_neighbour(g, i, 0, s, lanes, none), _neighbour(g, i, 1, s, lanes, none), functions, lanes)
    c, d = _neighbour(g, i, 2, s, lanes, none), _neighbour(g, i, 3, s, lanes, none)
    e, f = _neighbour(g, i, 4, s, lanes, none), _neighbour(g, i, 5, s, lanes, none)
    undecided, drawn = ~none, none
    for b in range(g.bits):
        digit = np.int64(load_table(g.digits, i * g.bits + b))
        if degree <= 2:
            p = _of_two(functions, digit, lanes)
        elif degree == 3:
            p = _of_three(functions, digit, c, lanes)
        elif degree == 4:
            p = _of_four(functions, digit, c, d, lanes)
        else:
            p = _of_five(functions, digit, c, d, e, lanes)
            if degree == 6:
                p = _mux(f, _of_five(functions, digit >> 32, c, d, e, lanes), p)
        drawn = _mux(undecided, p, drawn)
        undecided = undecided & ~(p ^ mix64(z))
        z = z + gamma
        if b % 2 == 1 and not any_bit(undecided):
            break
    return drawn & ~undecided  # U = p is not below p


@nb.njit(**INLINE)
def _count(counters, carry, lanes):
    """Add a bit to the binary counters."""
    for k in range(COUNTERS):
        digit = load_sum_words(counters, k * len(lanes), lanes)
        store_sum_vector(counters, k * len(lanes), digit ^ carry)
        carry = digit & carry


@nb.njit(**INLINE)
def _add_counts(counters, sums, words):
    """sums += counters, which become 0; eight chains at a time."""
    for w in range(words):
        for byte in range(8):
            x = load_sum_vector(sums, CHAINS * w + 8 * byte)
            weight = 1.0
            for k in range(COUNTERS):
                x = choose(bit_mask(load_sum(counters, k * words + w) >> np.uint64(8 * byte)), x + weight, x)
                weight = weight + weight
            store_sum_vector(sums, CHAINS * w + 8 * byte, x)
    for k in range(COUNTERS * words):
        store_sum(counters, k, np.uint64(0))


@nb.njit(**JIT)
def run_bits(g, steps, chains, lanes):
    """lanes: a tuple of B numbers, for its type."""
    keys, s, _, _, sums, _ = chains
    blocks, n, words = s.shape
    functions = np.empty((FUNCTIONS + 8) * words, dtype=np.uint64)
    counts = np.zeros(n * COUNTERS * words + 8, dtype=np.uint64)
    values, counters = line_address(functions), line_address(counts)
    t_ = Digits(address(g.start, 0), address(g.columns, 0), address(g.digits, 0), g.bits)
    last = steps.end - 1
    for k in range(blocks):
        state, total = address(s, k * n * words), address(sums, k * n * words * CHAINS)
        starts, gammas = address(keys, 2 * k * words), address(keys, (2 * k + 1) * words)
        gamma = load_table_words(gammas, 0, lanes)
        row_stride = gamma * np.uint64(g.bits)
        z = load_table_words(starts, 0, lanes) + row_stride * (np.uint64(steps.first) * np.uint64(n))
        for t in range(steps.first, last + 1):
            for i in range(n):
                drawn = _draw(t_, i, state, values, z, gamma, lanes)
                z = z + row_stride
                store_state_vector(state, i * words, drawn)
                _count(moved(counters, i * COUNTERS * words), drawn, lanes)
            if (t - steps.first) % FLUSH == FLUSH - 1 or t == last:
                for i in range(n):
                    _add_counts(moved(counters, i * COUNTERS * words), moved(total, i * words * CHAINS), words)
    keep(functions)
    keep(counts)


class Bits(BlockForm):
    """s (K, N, B) words of 64 chains; keys (K, 2, B); sums (K, N, 64 B); tables: `Digits`."""

    name = "bits"

    def reads_flat(self, source: Source) -> bool:
        return False

    def make_tables(self, source: Source) -> Digits:
        return make_digits(source.exact(), source.method.precision_bits)

    def begin(self, seed: int, states: Array) -> tuple[Array, Array, Array]:
        n, chains = states.shape
        blocks, size = word_blocks(chains)
        s = aligned_zeros((blocks, n, size), WORD)
        s[:] = pack_states(states, blocks, size)
        return block_keys(seed, blocks, size), s, no_fields(self.real)

    def no_sums(self, s: Array, chains: int) -> tuple[Array, Array]:
        blocks, _, size = s.shape
        return np.zeros((blocks, self.n, size * CHAINS), SUM), np.zeros((blocks, 1))

    def run(self, asked: Asked, steps: Steps, chains: Chains) -> None:
        run_bits(self.tables, steps, chains, (0,) * chains.s.shape[2])
