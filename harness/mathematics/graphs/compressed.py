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
BESIDE = 256
"""Rows and columns of it that are turned together: what they hold is in a cache."""


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
    if has_most(n, len(first)):
        numbered = pair_table(n, first, second, np.arange(1, len(first) + 1, dtype=np.int32))
        start, others, numbers = compressed_table(numbered)
        numbers -= 1
        return start, others, numbers
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


def has_most(n: int, edges: int) -> bool:
    """Whether a graph has most of the edges that it could have, so that a table of all pairs is looked through."""
    return 2 * edges * FEW_HOLES >= n * n and n * n < 2**31


def pair_table(n: int, first: AnyInts, second: AnyInts, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """(N, N) the values (E,) of the edges, each edge once, no loops; 0 of all other pairs."""
    table = np.empty((n, n), dtype=values.dtype)
    table.fill(0)  # in large pages, where there are some; zeros would come in small ones
    for low in range(0, len(first), AT_ONCE):
        some = slice(low, low + AT_ONCE)
        table[first[some], second[some]] = values[some]
    for low in range(0, n, BESIDE):
        here = slice(low, low + BESIDE)
        table[here, here] += table[here, here].T
        for other in range(low + BESIDE, n, BESIDE):  # of each pair one entry has its value by now, and both get it
            there = slice(other, other + BESIDE)
            table[here, there] += table[there, here].T
            table[there, here] = table[here, there].T
    return table


def compressed_table(table: npt.NDArray[Any]) -> tuple[AnyInts, AnyInts, npt.NDArray[Any]]:
    """Where rows start, columns and values of the entries of a table (N, N) that are not 0; at most 2^31."""
    n = len(table)
    start = row_starts(table)
    columns, values = np.empty(start[-1], dtype=np.int32), np.empty(start[-1], dtype=table.dtype)
    step = max(1, AT_ONCE // max(n, 1))
    numbers = np.tile(np.arange(n, dtype=np.int32), (min(step, n), 1))
    for low in range(0, n, step):
        part, entries = table[low : low + step], slice(start[low], start[min(low + step, n)])
        there = part != 0
        columns[entries] = numbers[: len(part)][there]
        values[entries] = part[there]
    return start, columns, values


def row_starts(table: npt.NDArray[Any]) -> AnyInts:
    """(N + 1,) int32: where the rows of a table start if what is 0 is left out."""
    start = np.zeros(len(table) + 1, dtype=np.int32)
    np.cumsum([np.count_nonzero(row) for row in table], out=start[1:])
    return start
