"""Tables of the Gibbs kernels that run vectors over rows: neighbours of a block of rows by how far away they are."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from spinbench.backends.numba.gibbs.form import Flat
from spinbench.backends.numba.simd import Array, zeros_aligned
from spinbench.mathematics.graphs.rows import AnyRows, distances, spread


class Bands(NamedTuple):
    """The same model for vectors over the rows of a block of uncoupled rows.

    The entries of a block are laid out in slots of one entry a row (weight 0 where there is none). In a slot with a
    shift, row i's neighbour is row i + shift, so that vectors of neighbours are loaded instead of gathered: on a grid
    that is so for all of them. A slot begins with the block's first row, rounded down to an even one.

    Attributes:
        bounds: (B + 1,) int64, rows of block b.
        slots: (B + 1,) int64, slots of block b.
        offsets: (S,) int64, where a slot begins in `weights`.
        shifts: (S,) int64, or `GATHERED`.
        places: (S,) int64, where a gathered slot begins in `columns`.
        columns: uint32.
        weights: couplings.
        biases, sign: as in `Flat`, but a vector longer.
        before, after: () int64, elements that must exist before the first and after the last row of states.
    """

    bounds: Array
    slots: Array
    offsets: Array
    shifts: Array
    places: Array
    columns: Array
    weights: Array
    biases: Array
    sign: Array
    before: int
    after: int


GATHERED = np.iinfo(np.int64).min
# Float32 numbers in a vector of 512 bits, the widest there are. Arrays are padded by one vector, since whole vectors
# are loaded from the last rows on.
LANES = 16
# Share of a block's rows that need a common shift for it to be stored as one. A shift reads weights for every row, also
# for rows without that neighbour, but a gathered vector costs as much as all the rest of an update, so that a quarter
# of the rows is enough.
LONG_SHIFT = 0.25


class _Block(NamedTuple):
    """What a block of rows needs.

    Attributes:
        low, high, base, length: its rows, and begin and length of its slots.
        long: shifts that are worth a slot.
        left: the entries of other shifts; row: those entries' rows, from `base` on; depth: how many of a row's come
            before.
    """

    low: int
    high: int
    base: int
    length: int
    long: list[int]
    left: Array
    row: Array
    depth: Array


def make_bands(rows: AnyRows | Flat, biases: Array, sign: Array, bounds: Array) -> Bands:
    """The slots of blocks of rows.

    Args:
        rows: the couplings.
        biases, sign: (N,) as in `Flat`, of the kernel's precision.
        bounds: (B + 1,) int64, rows of block b.
    """
    n, real = len(biases), biases.dtype
    blocks = [_survey(rows, low, high) for low, high in pairwise(bounds.tolist())]
    begins: list[tuple[int, int]] = []
    slots: list[tuple[int, int, int]] = []
    counts = [0]
    # Elements so far in `weights` and in `columns`; how far loads reach before the first row and beyond the last.
    total = wide = before = after = 0
    for block in blocks:
        begins.append((total, wide))
        for shift in block.long:
            slots.append((total, shift, 0))
            total += block.length
            before, after = max(before, -block.base - shift), max(after, block.base + block.length + shift - n)
        for _ in range(int(block.depth.max(initial=-1)) + 1):
            slots.append((total, GATHERED, wide))
            total += block.length
            wide += block.length
        counts.append(len(slots))
    weights, columns = zeros_aligned((total,), real), np.zeros(wide, dtype=np.uint32)
    for block, (first, gathered) in zip(blocks, begins, strict=True):
        _fill(rows, block, weights[first:], columns[gathered:])
    spare = np.zeros(LANES, dtype=real)
    offsets, shifts, places = np.array(slots, dtype=np.int64).reshape(-1, 3).T.copy()
    return Bands(
        bounds=bounds,
        slots=np.array(counts),
        offsets=offsets,
        shifts=shifts,
        places=places,
        columns=columns,
        weights=weights,
        biases=_join_aligned([biases, spare]),
        sign=_join_aligned([sign, spare]),
        before=-(-before // LANES) * LANES,
        after=after + LANES,
    )


def _survey(rows: AnyRows | Flat, low: int, high: int) -> _Block:
    # float32 random numbers come in pairs of an even row and the next (`random.row_numbers`), so that a block begins at
    # an even row.
    base = low - low % 2
    length = -(-(high - base) // LANES) * LANES
    row, away = distances(rows, low, high)
    # bincount takes no negative numbers, so that the smallest distance is subtracted.
    away = away - (least := int(away.min(initial=0)))
    long = np.bincount(away) >= max(1.0, LONG_SHIFT * (high - low))
    left = np.flatnonzero(~long[away])
    row = row[left] - base
    depth = np.arange(len(row)) - np.searchsorted(row, row)
    shifts = np.flatnonzero(long) + least
    return _Block(low, high, base, length, shifts.tolist(), left + rows.start[low], row, depth)


def _fill(rows: AnyRows | Flat, block: _Block, weights: Array, columns: Array) -> None:
    """Sets the slots of a block, at which `weights` and `columns` begin."""
    spread(rows, (block.low, block.high), block.long, weights, block.base, block.length)
    at = block.depth * block.length + block.row
    weights[len(block.long) * block.length + at] = rows.weights[block.left]
    columns[at] = rows.columns[block.left]


def _join_aligned(parts: list[Array]) -> Array:
    """One array that begins on a cache line."""
    band = zeros_aligned((sum(map(len, parts)),), parts[0].dtype)
    return np.concatenate(parts, out=band)
