"""Array operations that the Python array API standard has in parts, for any of its namespaces."""

from __future__ import annotations

from typing import Any


def take(xp: Any, array: Any, indices: Any) -> Any:
    """The rows array[indices] for `indices` >= 0 of any shape; `xp.take` has vectors of indices only."""
    rows = xp.take(array, xp.reshape(indices, (-1,)), axis=0)
    return xp.reshape(rows, (*indices.shape, *array.shape[1:]))
