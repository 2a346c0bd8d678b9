"""The edges of a graph in compressed rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

AnyInts = npt.NDArray[np.signedinteger[Any]]


def compressed(n: int, first: AnyInts, second: AnyInts) -> tuple[AnyInts, AnyInts, AnyInts]:
    """Who is next to whom, both ways.

    Args:
        n: vertices.
        first, second: (E,) ends of the edges, each edge once, no loops.

    Returns:
        (N + 1,) where rows start; (2E,) neighbours, ascending in each row; (2E,) the numbers of their edges. Of 32 bits
        each, where that is enough.
    """
    from scipy import sparse

    narrow: Any = np.int32 if n < 2**31 else np.int64
    number: Any = np.int32 if len(first) < 2**31 else np.int64
    ends = np.concatenate([first, second], dtype=narrow)
    others = np.concatenate([ends[len(first) :], ends[: len(first)]])
    numbers = np.tile(np.arange(len(first), dtype=number), 2)
    square = sparse.coo_array((numbers, (ends, others)), shape=(n, n), copy=False)
    square.has_canonical_format = True  # there are no duplicates to look for by sorting
    by_rows = square.tocsr()
    del ends, others, numbers, square  # with edges' numbers for weights, half as large, all this takes little more than
    ascending = by_rows.tocsc()  # the result. Columns of a symmetric matrix are its rows, and this puts them in order.
    return ascending.indptr, ascending.indices.astype(narrow, copy=False), ascending.data
