"""Tables of the Gibbs kernels, in the row order of `spinbench.methods.heat_bath.Tables`."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.layouts import Rows, Scan, compressed_rows, padded_rows, units_of
from spinbench.methods.heat_bath import Tables
from spinbench.models import PairwiseModel

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


class Padded(NamedTuple):
    """Blocks of uncoupled rows with equally many entries each (weight 0 where there are fewer).

    Attributes:
        bounds: (B + 1,) int64, rows of block b.
        widths: (B,) int64, entries a row.
        offsets: (B,) int64: entry d of row k of block b is offsets[b] + d (bounds[b + 1] - bounds[b]) + k.
        columns: uint32.
        weights: couplings.
    """

    bounds: Array
    widths: Array
    offsets: Array
    columns: Array
    weights: Array


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
    degree = np.diff(rows.start)
    row = np.repeat(np.arange(n), degree)
    earlier = rows.columns < row
    before = np.bincount(row[earlier], minlength=n)
    place = np.arange(len(row)) - np.repeat(rows.start[:-1], degree)
    place = np.where(earlier, place + (degree - before)[row], place - before[row]) + rows.start[:-1][row]
    columns = np.empty(len(row), dtype=np.uint32)
    weights = np.empty(len(row), dtype=real)
    columns[place], weights[place] = rows.columns, rows.weights
    pull = np.bincount(row[earlier], rows.weights[earlier] * tables.mode[rows.columns[earlier]], minlength=n)
    first, sizes, strides = _unit_rows(model, tables)
    return Flat(
        start=rows.start,
        later=rows.start[:-1] + degree - before,
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
    return compressed_rows(model, units_of(model), tables.order)


def make_padded(rows: Rows, bounds: Array, real: np.dtype[Any]) -> Padded:
    """The couplings of each block of rows."""
    parts = [padded_rows(rows, low, high) for low, high in pairwise(bounds.tolist())]
    sizes = np.array([columns.size for columns, _ in parts])
    return Padded(
        bounds=bounds,
        widths=np.array([len(columns) for columns, _ in parts], dtype=np.int64),
        offsets=np.cumsum(sizes) - sizes,
        columns=np.concatenate([columns.ravel() for columns, _ in parts]).astype(np.uint32),
        weights=np.concatenate([weights.ravel() for _, weights in parts]).astype(real),
    )


def head_and_tail(rows: Rows) -> tuple[int, int]:
    """(rows at the begin that no earlier row is coupled to, first of the rows at the end without a later one)."""
    n = len(rows.start) - 1
    row = np.repeat(np.arange(n), np.diff(rows.start))
    head = row[rows.columns < row].min(initial=n)
    tail = row[rows.columns > row].max(initial=-1) + 1
    return int(min(head, tail)), int(tail)


def _unit_rows(model: PairwiseModel, tables: Tables) -> tuple[Array, Array, Array]:
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
