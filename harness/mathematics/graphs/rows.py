"""W in compressed rows, and the forms that are made of some of them: dense rows and padded lists of neighbours."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.mathematics.graphs.compressed import (
    AnyInts,
    compressed,
    compressed_table,
    has_most,
    pair_table,
    row_starts,
)
from spinbench.models import PairwiseModel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

DENSE_FACTOR = 32
"""A product with a row of W costs as much as gathering this fraction of its length (matrix products are fast)."""
MAX_DENSE = 30_000
"""Largest N for dense rows."""


class Rows(NamedTuple):
    """W in compressed rows; the order of the rows is that of a layout. Couplings within a unit are left out.

    Attributes:
        start: (N + 1,) int32, or int64 from 2^31 entries on.
        columns: (2E,) int32, or int64 from 2^31 rows on; ascending in each row.
        weights: (2E,) float64.
    """

    start: npt.NDArray[np.signedinteger[Any]]
    columns: npt.NDArray[np.signedinteger[Any]]
    weights: FloatArray


class SquareRows:
    """The same of all of W, of which compressed rows are made when somebody reads their entries.

    Attributes:
        table: (N, N) float64.
        start, columns, weights: as of `Rows`; what is 0 is left out.
    """

    def __init__(self, table: FloatArray) -> None:
        self.table = table

    @cached_property
    def start(self) -> npt.NDArray[np.signedinteger[Any]]:
        return row_starts(self.table)

    @property
    def columns(self) -> npt.NDArray[np.signedinteger[Any]]:
        return self._entries[1]

    @property
    def weights(self) -> FloatArray:
        return self._entries[2]

    @cached_property
    def _entries(self) -> tuple[AnyInts, AnyInts, FloatArray]:
        return compressed_table(self.table)


AnyRows = Rows | SquareRows


def compressed_rows(model: PairwiseModel, order: npt.NDArray[np.signedinteger[Any]]) -> AnyRows:
    """W with rows and columns in `order`, an integer array (N,)."""
    n = model.num_variables
    position: AnyInts = np.empty(n, dtype=np.int32 if n < 2**31 else np.int64)
    position[order] = np.arange(n, dtype=position.dtype)
    edges, weights = model.edges, model.couplings
    first, second = position[edges[:, 0]], position[edges[:, 1]]
    if has_most(n, len(edges)):
        return SquareRows(pair_table(n, first, second, weights))
    start, columns, numbers = compressed(n, first, second)
    return Rows(start, columns, weights[numbers])


def is_dense(rows: AnyRows) -> bool:
    """Whether products with rows of W are preferred to lists of neighbours."""
    n = len(rows.start) - 1
    return n <= MAX_DENSE and int(rows.start[-1]) * DENSE_FACTOR >= n * n


def dense_rows(rows: AnyRows, low: int, high: int) -> FloatArray:
    """(high - low, N) rows of W."""
    if isinstance(rows, SquareRows):
        return rows.table[low:high]
    from scipy import sparse

    n, entries = len(rows.start) - 1, slice(rows.start[low], rows.start[high])
    start = rows.start[low : high + 1] - rows.start[low]
    some = sparse.csr_array((rows.weights[entries], rows.columns[entries], start), shape=(high - low, n))
    return np.asarray(some.toarray(out=np.empty((high - low, n))))  # zeros of its own would come in small pages


def matrix(rows: AnyRows, low: int = 0) -> Any:
    """Rows low, low + 1, … of W as a sparse array of SciPy's, or as the array that it is."""
    if isinstance(rows, SquareRows):
        return rows.table[low:]
    from scipy import sparse

    n, first = len(rows.start) - 1, rows.start[low]
    entries = (rows.weights[first:], rows.columns[first:], rows.start[low:] - first)
    return sparse.csr_array(entries, shape=(n - low, n))


def entries_of(rows: AnyRows, low: int, high: int) -> tuple[IntArray, IntArray]:
    """(M,) the rows, and (M,) the columns, of the entries of rows low … high - 1."""
    if isinstance(rows, SquareRows):
        row, column = np.nonzero(rows.table[low:high])
        return row + low, column
    row = np.repeat(np.arange(low, high), np.diff(rows.start[low : high + 1]))
    return row, rows.columns[rows.start[low] : rows.start[high]].astype(np.int64)


def reach_outside(rows: AnyRows, low: int, high: int) -> tuple[bool, bool]:
    """Whether rows low … high - 1 have entries in columns before them, and in columns after them."""
    if isinstance(rows, SquareRows):
        part = rows.table[low:high]
        return bool(part[:, :low].any()), bool(part[:, high:].any())
    columns = rows.columns[rows.start[low] : rows.start[high]]
    return bool((columns < low).any()), bool((columns >= high).any())


def padded_rows(rows: AnyRows, low: int, high: int) -> tuple[IntArray, FloatArray]:
    """(D, high - low) neighbours and weights, both 0 where a row has fewer than D."""
    start = rows.start[low : high + 1]
    degree = np.diff(start)
    width = int(degree.max(initial=0))
    neighbours = np.zeros((width, high - low), dtype=np.int64)
    weights = np.zeros((width, high - low))
    if width and (degree == width).all():
        neighbours[:] = rows.columns[start[0] : start[-1]].reshape(-1, width).T
        weights[:] = rows.weights[start[0] : start[-1]].reshape(-1, width).T
        return neighbours, weights
    slot = np.arange(start[0], start[-1]) - np.repeat(start[:-1], degree)
    row = np.repeat(np.arange(high - low), degree)
    neighbours[slot, row] = rows.columns[start[0] : start[-1]]
    weights[slot, row] = rows.weights[start[0] : start[-1]]
    return neighbours, weights
