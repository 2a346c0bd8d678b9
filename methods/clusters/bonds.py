"""Host tables of cluster moves: bonds, their strengths, the fields that clusters sum, and who is next to whom."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.api import PairwiseModel
from spinbench.errors import UnsupportedError
from spinbench.mathematics.graphs.rows import AnyRows, compressed_rows

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Order = npt.NDArray[np.signedinteger]

# Smallest row width of the padded neighbour table; rows are twice the average degree wide where that is more. With rows
# as wide as the largest degree, a single hub would make the table as large as a dense one.
MIN_ROW_WIDTH = 16


class Bonds(NamedTuple):
    """E bonds between N rows, in the row order of a sweep.

    With spins σ = 2s - 1 the model is Σ J σ σ' + Σ h σ, J = W/4 and 2h = a + ½ΣW.

    Arrays look at the neighbours in a padded table of M >= N rows and D columns. A row with more neighbours goes on in
    further rows, N and above, to which bonds that are always open join it: number E.

    Attributes:
        ends: (E, 2) int64 rows, the lower first.
        couplings: (E,) W, of either sign.
        fields: (N,) 2h.
        neighbours: (D, M) int64 rows, the own where there are fewer.
        neighbour_bonds: (D, M) int64, the bond to each of them.
    """

    ends: IntArray
    couplings: FloatArray
    fields: FloatArray
    neighbours: IntArray
    neighbour_bonds: IntArray


def check_binary(method: str, model: PairwiseModel) -> None:
    """Raises UnsupportedError where variables of several states are coded by units of which one is 1."""
    if model.groups:
        raise UnsupportedError(f"{method}: {model.name} has 1-of-K groups; variables of two states are needed")


def build_bonds(model: PairwiseModel, order: Order) -> Bonds:
    """Of a model whose row i is variable order[i]."""
    rows = compressed_rows(model, order)
    row = np.repeat(np.arange(model.num_variables), np.diff(rows.start))
    upward = rows.columns > row
    ends = np.stack([row[upward], rows.columns[upward]], axis=1).astype(np.int64)
    fields = model.biases[order] + 0.5 * np.bincount(row, rows.weights, model.num_variables)
    number = np.empty(len(row), dtype=np.int64)
    number[upward] = np.arange(len(ends))
    downward = np.flatnonzero(~upward)
    number[downward[np.lexsort((row[downward], rows.columns[downward]))]] = np.arange(len(ends))
    return Bonds(ends, rows.weights[upward], fields, *_pad_neighbours(rows, row, number))


def _pad_neighbours(rows: AnyRows, row: IntArray, number: IntArray) -> tuple[IntArray, IntArray]:
    """(neighbours, through) from the row and the bond of each entry of `rows`."""
    n, degree = len(rows.start) - 1, np.diff(rows.start)
    width = int(min(degree.max(initial=1), max(MIN_ROW_WIDTH, -(-2 * len(row) // n))))
    num_extra = np.maximum(-(-degree // width) - 1, 0)
    first = n + np.cumsum(num_extra) - num_extra
    total_extra = int(num_extra.sum())
    neighbours = np.tile(np.arange(n + total_extra), (width + 2 * bool(total_extra), 1))
    neighbour_bonds = np.zeros_like(neighbours)
    entry = np.arange(len(row)) - rows.start[row]
    part = entry // width
    place = entry % width, np.where(part == 0, row, first[row] + part - 1)
    neighbours[place], neighbour_bonds[place] = rows.columns, number
    if total_extra:
        extra_rows = n + np.arange(total_extra)
        owner = np.repeat(np.arange(n), num_extra)
        previous = np.where(extra_rows == first[owner], owner, extra_rows - 1)
        neighbours[width, extra_rows], neighbours[width + 1, previous] = previous, extra_rows
        neighbour_bonds[width, extra_rows] = neighbour_bonds[width + 1, previous] = len(row) // 2
    return neighbours, neighbour_bonds
