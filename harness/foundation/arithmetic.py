"""Array operations of the harness' own programs, which its own backends have faster classes for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

if TYPE_CHECKING:
    from spinbench.api import Array, Backend, Index, Namespace


Operations = TypeVar("Operations")


class Accelerated:
    """A backend that has faster classes for some classes of array operations, or more than one device."""

    _faster: ClassVar[Mapping[Any, Any]] = {}

    def operations(self, kind: Callable[..., Operations]) -> Operations:
        """An instance of `kind`, or of the faster class for it."""
        faster: Callable[..., Operations] = self._faster.get(kind, kind)
        return faster(self)

    def split_chains(self, array: Array) -> Array:
        """An array on the device whose last axis is of chains, in parts on several devices if there are."""
        return array


def make_operations(backend: Backend, kind: Callable[..., Operations]) -> Operations:
    """An instance of `kind`, a class of array operations, or of the backend's faster class for it."""
    return backend.operations(kind) if isinstance(backend, Accelerated) else kind(backend)


def split_chains(backend: Backend, array: Array) -> Array:
    """An array on the device whose last axis is of chains, in parts where the backend has several devices."""
    return backend.split_chains(array) if isinstance(backend, Accelerated) else array


class Arithmetic:
    """Sums, rows in a row, and σ. An argument that is "given up" may be overwritten."""

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

    def sigmoid(self, x: Array) -> Array:
        """1 / (1 + e^-x), without overflow; `x` stays."""
        return 0.5 * self._xp.tanh(0.5 * x) + 0.5


def take(xp: Namespace, array: Array, indices: Array) -> Array:
    """The rows array[indices] for `indices` >= 0 of any shape; `xp.take` has vectors of indices only."""
    rows = xp.take(array, xp.reshape(indices, (-1,)), axis=0)
    return xp.reshape(rows, (*indices.shape, *array.shape[1:]))
