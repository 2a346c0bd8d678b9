"""The edges of a graph in compressed rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

AnyInts = npt.NDArray[np.signedinteger[Any]]

FEW_HOLES = 4
"""Of so many pairs of vertices one has an edge at least, where a table of all of them is looked through."""
AT_ONCE = 2**20
"""Entries of it that are looked at together."""


def compressed(n: int, first: AnyInts, second: AnyInts) -> tuple[AnyInts, AnyInts, AnyInts]:
    """Who is next to whom, both ways.

    Args:
        n: vertices.
        first, second: (E,) ends of the edges, each edge once, no loops.

    Returns:
        (N + 1,) where rows start; (2E,) neighbours, ascending in each row; (2E,) the numbers of their edges. Of 32 bits
        each, where that is enough.
    """
    narrow: Any = np.int32 if n < 2**31 else np.int64
    number: Any = np.int32 if len(first) < 2**31 else np.int64
    if _has_most(n, len(first)):
        return _compressed_square(n, first, second, np.arange(len(first), dtype=np.int32), -1)
    from scipy import sparse

    ends = np.concatenate([first, second], dtype=narrow)
    others = np.concatenate([ends[len(first) :], ends[: len(first)]])
    numbers = np.tile(np.arange(len(first), dtype=number), 2)
    square = sparse.coo_array((numbers, (ends, others)), shape=(n, n), copy=False)
    square.has_canonical_format = True  # there are no duplicates to look for by sorting
    by_rows = square.tocsr()
    del ends, others, numbers, square  # with edges' numbers for weights, half as large, all this takes little more than
    ascending = by_rows.tocsc()  # the result. Columns of a symmetric matrix are its rows, and this puts them in order.
    return ascending.indptr, ascending.indices.astype(narrow, copy=False), ascending.data


def compressed_values(
    n: int, first: AnyInts, second: AnyInts, values: npt.NDArray[np.float64]
) -> tuple[AnyInts, AnyInts, npt.NDArray[np.float64]]:
    """As `compressed`, with the edges' values (E,), which are finite, in place of their numbers."""
    if _has_most(n, len(first)):  # to look them up by their numbers would take as long as all the rest
        return _compressed_square(n, first, second, values, np.inf)
    start, columns, numbers = compressed(n, first, second)
    return start, columns, values[numbers]


def _has_most(n: int, edges: int) -> bool:
    """Whether a graph has most of the edges that it could have, so that a table of all pairs is looked through."""
    return 2 * edges * FEW_HOLES >= n * n and n * n < 2**31


def _compressed_square(
    n: int, first: AnyInts, second: AnyInts, values: npt.NDArray[Any], nothing: float
) -> tuple[AnyInts, AnyInts, npt.NDArray[Any]]:
    """As `compressed`, of a graph that has most edges, with their values (E,), none of which is `nothing`."""
    table = np.full((n, n), nothing, dtype=values.dtype)
    for low in range(0, len(first), AT_ONCE):
        some = slice(low, low + AT_ONCE)
        i, j = (ends[some].astype(np.intp) for ends in (first, second))
        table[i, j] = table[j, i] = values[some]
    return compressed_table(table, nothing)


def compressed_table(table: npt.NDArray[Any], nothing: float) -> tuple[AnyInts, AnyInts, npt.NDArray[Any]]:
    """Where rows start, columns and values of the entries of a table (N, N) that are not `nothing`; at most 2^31."""
    n = len(table)
    start = np.zeros(n + 1, dtype=np.int32)
    np.cumsum([np.count_nonzero(row != nothing) for row in table], out=start[1:])
    columns, values = np.empty(start[-1], dtype=np.int32), np.empty(start[-1], dtype=table.dtype)
    step = max(1, AT_ONCE // max(n, 1))
    numbers = np.tile(np.arange(n, dtype=np.int32), (min(step, n), 1))
    for low in range(0, n, step):
        part, entries = table[low : low + step], slice(start[low], start[min(low + step, n)])
        there = part != nothing
        columns[entries] = numbers[: len(part)][there]
        values[entries] = part[there]
    return start, columns, values
