"""Optional members of backends: each has a default made of array operations, and may be overridden."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from spinbench.api.types import Array, Index, Namespace

Operations = TypeVar("Operations")


class Accelerators:
    """Array operations that generic programs call; a backend overrides those that its framework does faster.

    An argument that is "given up" may be overwritten: the caller does not use it again.
    """

    xp: Namespace

    def take(self, array: Array, indices: Index) -> Array:
        """The rows array[indices]: `indices` is an integer, which may be traced, or an array of any shape, all >= 0.

        `xp` has this for vectors of indices alone.
        """
        if isinstance(indices, int):
            return array[indices, ...]
        return take(self.xp, array, indices)

    def window(self, array: Array, start: Index, length: int) -> Array:
        """Rows start … start + length - 1 of `array`, all of which exist (`start` may be traced)."""
        return self.xp.take(array, start + self.xp.arange(length), axis=0)

    def sigmoid(self, x: Array) -> Array:
        """1 / (1 + e^-x), without overflow; `x` stays."""
        return 0.5 * self.xp.tanh(0.5 * x) + 0.5

    def add(self, total: Array, values: Array) -> Array:
        """total + values; `total` is given up."""
        return total + values

    def add_product(self, total: Array, values: Array, scale: Array) -> Array:
        """total + scale * values; `total` is given up."""
        return total + scale * values

    def operations(self, kind: Callable[..., Operations]) -> Operations:
        """An instance of `kind`, a class of array operations, or of the backend's faster class for it; by default
        `kind(self)`."""
        return kind(self)

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
