"""Tables of the Gibbs kernels, in the row order of `spinbench.methods.heat_bath.Tables`."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.backends.numba.vector_memory import (
    aligned_zeros,
)
from spinbench.layouts import Scan, units_of
from spinbench.methods.heat_bath import Tables
from spinbench.models import PairwiseModel
from spinbench.rows import Rows, compressed_rows

Array = npt.NDArray[Any]


class Flat(NamedTuple):
    """The model row by row. Reals are of the kernel's precision.

    Attributes:
        start: (N + 1,) int64, row i's entries are start[i] … start[i + 1] - 1: first those of later rows, then
            those of earlier rows, ascending, so that the value written last is also added last.
        later: (N,) int64, end of the entries of later rows.
        columns: (2E,) uint32 (Numba checks signed indices for negative ones).
        weights: (2E,) couplings.
        biases: (N,).
        forced: (N,) the field of a row when all earlier rows have their values in s* and all later ones are 0.
        sign: (N,) 1 - 2 s*.
        first: (U,) int64, row of the first member of each unit, in the order of single updates.
        sizes: (U,) int64, members of a 1-of-K group, 0 for a binary variable.
        strides: (U,) int64, rows from a member to the next.
    """

    start: Array
    later: Array
    columns: Array
    weights: Array
    biases: Array
    forced: Array
    sign: Array
    first: Array
    sizes: Array
    strides: Array


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
        reach: () int64, 0, or for two blocks without gathered slots the largest number of rows by which the neighbours
            of a block's row k lie off the other block's row k.
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
    reach: int


GATHERED = np.iinfo(np.int64).min
LANES = 16
"""Of the widest vectors; arrays are longer by so many."""
LONG_SHIFT = 0.25
"""Share of a block's rows from which a shift is worth a slot."""
AT_ONCE = 2**18
"""Rows whose entries are put in order together."""


def block_bounds(tables: Tables) -> Array:
    """(B + 1,) int64: the rows that are updated together, block by block."""
    sweep = tables.sweep
    if isinstance(sweep, Scan):
        sizes = sweep.valid.sum(axis=1)
    else:
        sizes = np.array([block.biases.size for block in sweep.first + sweep.middle + sweep.last])
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def make_flat(model: PairwiseModel, tables: Tables, rows: Rows, real: np.dtype[Any]) -> Flat:
    """The tables of a planned model."""
    n = model.num_variables
    biases = model.biases[tables.order]
    later, pull = np.empty(n, dtype=np.int64), np.empty(n)
    columns = np.empty(len(rows.columns), dtype=np.uint32)
    weights = np.empty(len(rows.columns), dtype=real)
    for low in range(0, n, AT_ONCE):
        high = min(low + AT_ONCE, n)
        start, entries = rows.start[low : high + 1], slice(rows.start[low], rows.start[high])
        near, own, degree = rows.columns[entries], rows.weights[entries], np.diff(start)
        row = np.repeat(np.arange(high - low), degree)
        earlier = near < row + low
        before = np.bincount(row[earlier], minlength=high - low)
        place = np.arange(len(row)) + np.where(earlier, (degree - before)[row], -before[row])
        columns[entries][place], weights[entries][place] = near, own
        later[low:high] = start[1:] - before
        pull[low:high] = np.bincount(row[earlier], own[earlier] * tables.mode[near[earlier]], minlength=high - low)
    first, sizes, strides = _unit_rows(model, tables)
    return Flat(
        start=rows.start,
        later=later,
        columns=columns,
        weights=weights,
        biases=biases.astype(real),
        forced=(biases + pull).astype(real),
        sign=(1 - 2 * tables.mode).astype(real),
        first=first,
        sizes=sizes,
        strides=strides,
    )


def make_rows(model: PairwiseModel, tables: Tables) -> Rows:
    """W in the order of the tables."""
    return compressed_rows(model, tables.order)


def make_bands(flat: Flat, bounds: Array) -> Bands:
    """The slots of blocks of rows."""
    n, real = len(flat.biases), flat.biases.dtype
    shifts: list[int] = []
    weights: list[Array] = []
    columns: list[Array] = []
    places: list[int] = []
    counts = [0]
    before = after = 0
    for low, high in pairwise(bounds.tolist()):
        base = low - low % 2
        length = -(-(high - base) // LANES) * LANES
        entries = slice(flat.start[low], flat.start[high])
        row = np.repeat(np.arange(low - base, high - base), np.diff(flat.start[low : high + 1]))
        away = flat.columns[entries].astype(np.int64) - (row + base)
        weight = flat.weights[entries]
        least = int(away.min(initial=0))
        long = np.flatnonzero(np.bincount(away - least) >= LONG_SHIFT * (high - low)) + least
        for shift in long.tolist() if len(row) else []:
            here = away == shift
            weights.append(_slot(length, row[here], weight[here], real))
            shifts.append(shift)
            places.append(0)
            before, after = max(before, -base - shift), max(after, base + length + shift - n)
        left = np.flatnonzero(~np.isin(away, long))
        depth = np.arange(len(left)) - np.searchsorted(row[left], row[left])
        for d in range(int(depth.max(initial=-1)) + 1):
            here = left[depth == d]
            places.append(sum(map(len, columns)))
            weights.append(_slot(length, row[here], weight[here], real))
            columns.append(_slot(length, row[here], flat.columns[entries][here], np.dtype(np.uint32)))
            shifts.append(GATHERED)
        counts.append(len(shifts))
    spare = np.zeros(LANES, dtype=real)
    return Bands(
        bounds=bounds,
        slots=np.array(counts),
        offsets=np.cumsum([0, *map(len, weights)])[:-1],
        shifts=np.array(shifts, dtype=np.int64),
        places=np.array(places, dtype=np.int64),
        columns=np.concatenate([np.zeros(0, dtype=np.uint32), *columns]),
        weights=_joined([np.zeros(0, dtype=real), *weights]),
        biases=_joined([flat.biases, spare]),
        sign=_joined([flat.sign, spare]),
        before=-(-before // LANES) * LANES,
        after=after + LANES,
        reach=_reach(bounds, counts, shifts),
    )


def _slot(length: int, rows: Array, values: Array, kind: np.dtype[Any]) -> Array:
    slot = np.zeros(length, dtype=kind)
    slot[rows] = values
    return slot


def _joined(parts: list[Array]) -> Array:
    """One array that begins on a cache line."""
    joined = aligned_zeros((sum(map(len, parts)),), parts[0].dtype)
    return np.concatenate(parts, out=joined)


def _reach(bounds: Array, counts: list[int], shifts: list[int]) -> int:
    if len(bounds) != 3 or GATHERED in shifts:
        return 0
    middle = int(bounds[1])
    return max(
        1, *(abs(shift - middle) for shift in shifts[: counts[1]]), *(abs(s + middle) for s in shifts[counts[1] :])
    )


def head_and_tail(rows: Rows) -> tuple[int, int]:
    """(rows at the begin that no earlier row is coupled to, first of the rows at the end without a later one)."""
    n = len(rows.start) - 1
    head, tail = n, 0
    for low in range(0, n, AT_ONCE):
        high = min(low + AT_ONCE, n)
        near = rows.columns[rows.start[low] : rows.start[high]]
        row = np.repeat(np.arange(low, high), np.diff(rows.start[low : high + 1]))
        head = min(head, int(row[near < row].min(initial=n)))
        tail = max(tail, int(row[near > row].max(initial=-1)) + 1)
    return min(head, tail), tail


def _unit_rows(model: PairwiseModel, tables: Tables) -> tuple[Array, Array, Array]:
    if tables.single is None and not model.groups:  # sweeps in the order of the rows
        every = np.arange(model.num_variables)
        return every, np.zeros_like(every), np.zeros_like(every)
    units = units_of(model)
    position = np.empty(model.num_variables, dtype=np.int64)
    position[tables.order] = np.arange(model.num_variables)
    if tables.single is None:
        sequence = position[units.members[:, 0]].argsort(kind="stable")
    else:
        sequence = units.of[tables.order[tables.single.rows[:, 0, 0]]]
    members = position[units.members[sequence]]
    sizes = np.where(units.grouped, units.sizes, 0)[sequence]
    strides = members[:, 1] - members[:, 0] if members.shape[1] > 1 else np.zeros_like(sizes)
    return members[:, 0].copy(), sizes, strides
