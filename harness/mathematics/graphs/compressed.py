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
    if 2 * len(first) * FEW_HOLES >= n * n and n * n < 2**31:
        return _compressed_square(n, first, second)
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


def _compressed_square(n: int, first: AnyInts, second: AnyInts) -> tuple[AnyInts, AnyInts, AnyInts]:
    """As `compressed`, of a graph that has most of the edges that it could have."""
    table = np.full((n, n), -1, dtype=np.int32)
    for low in range(0, len(first), AT_ONCE):
        i, j = (ends[low : low + AT_ONCE].astype(np.intp) for ends in (first, second))
        table[i, j] = table[j, i] = np.arange(low, low + len(i), dtype=np.int32)
    return compressed_table(table, -1)


def compressed_table(table: npt.NDArray[Any], nothing: float) -> tuple[AnyInts, AnyInts, npt.NDArray[Any]]:
    """Where rows start, columns and values of the entries of a table (N, N) that are not `nothing`; at most 2^31."""
    n = len(table)
    start = np.zeros(n + 1, dtype=np.int32)
    np.cumsum([np.count_nonzero(row != nothing) for row in table], out=start[1:])
    columns, values = np.empty(start[-1], dtype=np.int32), np.empty(start[-1], dtype=table.dtype)
    step = max(1, AT_ONCE // max(n, 1))
    for low in range(0, n, step):
        part, entries = table[low : low + step], slice(start[low], start[min(low + step, n)])
        there = part != nothing
        columns[entries] = np.flatnonzero(there) % n
        values[entries] = part[there]
    return start, columns, values
