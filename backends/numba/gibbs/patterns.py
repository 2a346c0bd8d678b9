"""Tables of what a row's update needs, by the pattern of its neighbours' states, for models of few neighbours.

With D neighbours a row has 2^D conditional probabilities. Looked up, they cost neither field nor exponential, and they
are as exact as the host makes them: p is held as the 64-bit number p 2^64, compared with 64 random bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spinbench.backends.numba.gibbs.form import Flat
from spinbench.backends.numba.simd import Array, Real, zeros_aligned

# Largest number of neighbours with tables: an update looks up two vectors of 32 entries, and a seventh neighbour would
# double both that and the tables.
MAX_NEIGHBOURS = 6
# Largest number of table entries of all rows for vectors of chains, 32 of which share each table that is read.
MOST_ENTRIES = 2**22
# The same for a single chain, where every update reads a table of its own: 2^17 thresholds of 8 bytes, 1 MB, must stay
# in the second-level cache.
MOST_ROW_ENTRIES = 2**17
# Rows whose tables are computed together: fields and exponentials of all rows would take several times the memory of
# the tables.
AT_ONCE = 2**16
# Bits of a piece of a fixed-point number: sums of 2^PIECE pieces fit 16 bits.
PIECE = 8
# Pieces of a probability that is summed: somewhat more bits than the mantissa of that precision.
PIECES = {np.dtype(np.float32): 3, np.dtype(np.float64): 7}
# Padding of tables in elements: vector loads may read beyond the end.
SPARE = 64


class Words(NamedTuple):
    """Tables in words of 16 bits, for `look_up`; bit k of a pattern is the state of a row's neighbour k.

    Attributes:
        near: (N D,) uint32, the neighbours of each row, N where there are fewer than D (row N is always 0).
        thresholds: (N P,) uint64, p(s_i = 1 | pattern) 2^64, rounded, 2^64 - 1 at most.
        high: (N P,) uint16, the highest bits of the thresholds.
        p: (N K P,) uint16, p in K pieces of 8 bits after the point, the highest first.
        pieces: () (0,) * K, for its type.
        shape: () (0,) * D, for its type.
    """

    near: Array
    thresholds: Array
    high: Array
    p: Array
    pieces: tuple[int, ...]
    shape: tuple[int, ...]


def _even_width(widest: int) -> int:
    """The most neighbours of a row, rounded up to an even number, so that there are fewer forms to compile."""
    return -(-max(1, widest) // 2) * 2


def fit(n: int, widest: int, entries: int) -> bool:
    """Whether the tables of n rows of at most `widest` neighbours have no more than so many entries."""
    return widest <= MAX_NEIGHBOURS and n << _even_width(widest) <= entries


def all_patterns(width: int) -> Array:
    """(D, 2^D) float64 0 and 1: bit k of a pattern in row k."""
    return ((np.arange(2**width)[:, None] >> np.arange(width)) & 1).T.astype(np.float64)


def as_thresholds(p: Array) -> Array:
    """uint64: p 2^64, rounded, 2^64 - 1 at most."""
    # 2^64 does not fit uint64 and would wrap to 0: p = 1 gets the largest threshold.
    sure = p == 1
    thresholds = (np.where(sure, 0.0, p) * 2.0**64).astype(np.uint64)
    thresholds[sure] = np.iinfo(np.uint64).max
    return thresholds


def pad_neighbours(flat: Flat, width: int) -> tuple[Array, Array, Array]:
    """Of each row's neighbours (N, D): near uint32, N where there are fewer; weights float64; which rows are later."""
    n, degree = len(flat.biases), np.diff(flat.start)
    slot = np.arange(len(flat.columns)) - np.repeat(flat.start[:-1], degree)
    row = np.repeat(np.arange(n), degree)
    near = np.full((n, width), n, dtype=np.uint32)
    near[row, slot] = flat.columns
    weights = np.zeros((n, width))
    weights[row, slot] = flat.weights
    return near, weights, np.arange(width) < (flat.later - flat.start[:-1])[:, None]


def tabulate(biases: Array, weights: Array, bits: int = 0) -> tuple[Array, Array]:
    """(thresholds, p) (N, P) of all patterns, thresholds as in `Words`.

    Args:
        biases: (N,) float64.
        weights: (N, D) couplings to the neighbours of each row.
        bits: 0, or the probabilities are rounded to multiples of 2^-bits, and 1 - 2^-bits at most.
    """
    n, width = weights.shape
    pattern, p, thresholds = all_patterns(width), np.empty((n, 2**width)), np.empty((n, 2**width), dtype=np.uint64)
    for low in range(0, n, AT_ONCE):
        part = slice(low, low + AT_ONCE)
        # The exponential overflows to infinity, and 1 / (1 + infinity) is the correct 0.
        with np.errstate(over="ignore"):
            p[part] = 1 / (1 + np.exp(-(biases[part, None] + weights[part] @ pattern)))
        if bits:
            # At most 1 - 2^-bits, so that no rounded probability becomes certain.
            p[part] = np.minimum(np.rint(p[part] * 2.0**bits), 2.0**bits - 1) / 2.0**bits
        thresholds[part] = as_thresholds(p[part])
    return thresholds, p


def make_words(flat: Flat, real: Real, bits: int = 0) -> Words:
    """Tables of a model in float64; sums are made of as many pieces as `real` asks for, `bits` as in `tabulate`."""
    near, weights, _ = pad_neighbours(flat, _even_width(int(np.diff(flat.start).max(initial=0))))
    thresholds, p = tabulate(flat.biases, weights, bits)
    high = with_spare((thresholds.ravel() >> np.uint64(48)).astype(np.uint16))
    words = fixed_point_pieces(p, PIECES[real])
    return Words(near.ravel(), thresholds.ravel(), high, words, (0,) * PIECES[real], (0,) * weights.shape[1])


def fixed_point_pieces(values: Array, pieces: int) -> Array:
    """Of (n, P) numbers in [0, 1]: (n pieces P,) uint16 and what vectors may read beyond."""
    total = PIECE * pieces
    fixed = np.minimum(np.rint(values * 2.0**total).astype(np.uint64), np.uint64(2**total - 1))
    shifts = np.arange(total - PIECE, -1, -PIECE, dtype=np.uint64)
    return with_spare(((fixed[:, None, :] >> shifts[:, None]) & np.uint64(2**PIECE - 1)).astype(np.uint16).ravel())


def with_spare(table: Array) -> Array:
    padded = zeros_aligned((len(table) + SPARE,), table.dtype)
    padded[: len(table)] = table
    return padded
