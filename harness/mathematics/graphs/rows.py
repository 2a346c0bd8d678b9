"""W in compressed rows, and the forms that are made of some of them: dense rows, padded lists of neighbours, and, where
these lie at few distances as on lattices, windows, which are read without indices."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from spinbench.mathematics.graphs.colouring import (
    AnyInts,
    IntArray,
    adjacency_rows,
    dense_symmetric_matrix,
    has_most,
    row_starts,
    table_to_csr,
)
from spinbench.models import PairwiseModel

FloatArray = npt.NDArray[np.float64]
# A matrix product with a dense row of W costs as much as gathering this fraction of its length.
DENSE_FACTOR = 32
# Largest N for a dense W, which takes 7 GB there.
MAX_DENSE = 30_000
# Largest number of windows of a block; reading a window costs about half of gathering one neighbour per row.
MAX_WINDOWS = 12
# Rows of a block whose entries are processed together.
AT_ONCE = 2**14


class Rows(NamedTuple):
    """W in compressed rows; the order of the rows is that of a layout. Couplings within a unit are left out.

    Attributes:
        start: (N + 1,) int32, or int64 from 2^31 entries on.
        columns: (2E,) int32, or int64 from 2^31 rows on; ascending in each row.
        weights: (2E,) float64.
    """

    start: npt.NDArray[np.signedinteger]
    columns: npt.NDArray[np.signedinteger]
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
    def start(self) -> npt.NDArray[np.signedinteger]:
        return row_starts(self.table)

    @property
    def columns(self) -> npt.NDArray[np.signedinteger]:
        return self._entries[1]

    @property
    def weights(self) -> FloatArray:
        return self._entries[2]

    @cached_property
    def _entries(self) -> tuple[AnyInts, AnyInts, FloatArray]:
        return table_to_csr(self.table)


AnyRows = Rows | SquareRows


def compressed_rows(model: PairwiseModel, order: npt.NDArray[np.signedinteger]) -> AnyRows:
    """W with rows and columns in `order`, an integer array (N,)."""
    n = model.num_variables
    position: AnyInts = np.empty(n, dtype=np.promote_types(np.int32, np.min_scalar_type(-n)))
    position[order] = np.arange(n, dtype=position.dtype)
    edges, weights = model.edges, model.couplings
    first, second = position[edges[:, 0]], position[edges[:, 1]]
    if has_most(n, len(edges)):
        return SquareRows(dense_symmetric_matrix(n, first, second, weights))
    start, columns, numbers = adjacency_rows(n, first, second)
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
    # An array from `np.empty` gets large pages where available; SciPy's own zeros would not.
    return np.asarray(some.toarray(out=np.empty((high - low, n))))


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


def pad_rows(rows: AnyRows, low: int, high: int) -> tuple[IntArray, FloatArray]:
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


class Windows(NamedTuple):
    """Neighbours at few distances, as on lattices: each distance is a window of rows, read without an index.

    Attributes:
        starts: (D,) int64, where window d begins in s with P rows of zeros on both sides.
        margin: (P,) zeros.
    """

    starts: IntArray
    margin: FloatArray


class Entries(Protocol):
    """What has the entries of rows one after another, as `Rows` has."""

    @property
    def start(self) -> np.ndarray: ...
    @property
    def columns(self) -> np.ndarray: ...
    @property
    def weights(self) -> np.ndarray: ...


def window_rows(rows: AnyRows, low: int, high: int) -> tuple[Windows, FloatArray] | None:
    """Windows and (D, high - low, 1) weights; None where the rows' neighbours are at too many distances."""
    offsets: set[int] = set()
    max_offsets = min(2 * int(np.diff(rows.start[low : high + 1]).max(initial=0)) + 1, MAX_WINDOWS)
    for first, end in parts(low, high):
        away = distances(rows, first, end)[1]
        # Distances are counted from the smallest one: counted from 0, the table would be as long as the block.
        least = int(away.min()) if len(away) else 0
        offsets.update((np.flatnonzero(np.bincount(away - least)) + least).tolist())
        if len(offsets) > max_offsets:
            return None
    if not offsets:
        return None
    ascending = sorted(offsets)
    weights = np.zeros((len(ascending), high - low, 1))
    spread(rows, (low, high), ascending, weights.ravel(), low, high - low)
    n = len(rows.start) - 1
    margin = max(0, -low - ascending[0], ascending[-1] + high - n)
    return Windows(np.array(ascending) + low + margin, np.zeros(margin)), weights


def parts(low: int, high: int) -> Iterator[tuple[int, int]]:
    """Few rows at a time, so that what is computed from their entries takes little memory."""
    for first in range(low, high, AT_ONCE):
        yield first, min(first + AT_ONCE, high)


def distances(rows: Entries, first: int, end: int) -> tuple[IntArray, IntArray]:
    """Of each entry of rows first … end - 1 its row, and its column less that."""
    row = np.repeat(np.arange(first, end), np.diff(rows.start[first : end + 1]))
    return row, rows.columns[rows.start[first] : rows.start[end]] - row


def spread(rows: Entries, span: tuple[int, int], offsets: list[int], to: np.ndarray, base: int, length: int) -> None:
    """Sets to[slot length + row - base] to the weight of each row's neighbour at a distance; others are left out.

    Args:
        rows: the couplings.
        span: rows, first and end.
        known: the distances, ascending, one a slot.
        to: a contiguous array.
        base: the row with which slots begin.
        length: of a slot.
    """
    if not offsets:
        return
    least, greatest = offsets[0], offsets[-1]
    # Start of each slot, by distance.
    begin = np.full(greatest - least + 1, -1)
    begin[np.array(offsets) - least] = np.arange(len(offsets)) * length
    for first, end in parts(*span):
        row, away = distances(rows, first, end)
        weights = rows.weights[rows.start[first] : rows.start[end]]
        inside = (away >= least) & (away <= greatest)
        if not inside.all():
            row, away, weights = row[inside], away[inside], weights[inside]
        at = begin[away - least]
        is_slot = at >= 0
        if not is_slot.all():
            row, at, weights = row[is_slot], at[is_slot], weights[is_slot]
        to[at + row - base] = weights
