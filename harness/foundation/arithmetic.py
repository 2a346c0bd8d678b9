"""Array operations of the harness' own programs, which a backend may have a faster class for (`Backend.operations`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spinbench.api import Array, Backend, Index, Namespace


class Arithmetic:
    """Sums, and rows in a row. An argument that is "given up" may be overwritten: the caller does not use it again."""

    def __init__(self, backend: Backend) -> None:
        self._xp = backend.xp

    def window(self, array: Array, start: Index, length: int) -> Array:
        """Rows start … start + length - 1 of `array`, all of which exist (`start` may be traced)."""
        return self._xp.take(array, start + self._xp.arange(length), axis=0)

    def add(self, total: Array, values: Array) -> Array:
        """total + values; `total` is given up."""
        return total + values

    def add_product(self, total: Array, values: Array, scale: Array) -> Array:
        """total + scale * values; `total` is given up."""
        return total + scale * values

    def add_compensated(self, total: Array, excess: Array, values: Array) -> tuple[Array, Array]:
        """Compensated sum: (total + values, its rounding error); `excess` is the error of `total`; both are given up.

        Kahan, "Further remarks on reducing truncation errors", CACM 1965.
        """
        corrected = values - excess
        grown = total + corrected
        return grown, (grown - total) - corrected


def take(xp: Namespace, array: Array, indices: Array) -> Array:
    """The rows array[indices] for `indices` >= 0 of any shape; `xp.take` has vectors of indices only."""
    rows = xp.take(array, xp.reshape(indices, (-1,)), axis=0)
    return xp.reshape(rows, (*indices.shape, *array.shape[1:]))
