"""Backends: where it is computed."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from typing import Any, ClassVar

from spinbench.api.types import Array, Key, Precision


class Backend(ABC):
    """A compute backend. Frameworks are imported in the constructor, never at module level.

    Class attributes:
        provides: capabilities out of {"arrays", "loop", "grad", "f32", "f64", "gpu"}. "arrays": the members below
            exist, so generic programs run; "loop": `repeat` runs in compiled code; "grad": the framework can
            differentiate a program (for methods whose `needs` ask for it; none that is built in does); "f32", "f64":
            the precisions offered; "gpu": device="gpu" is understood, and refused where there is none.
        requires: names of importable modules that must exist.
        install: the command that installs them.
    """

    name: ClassVar[str]
    provides: ClassVar[frozenset[str]]
    requires: ClassVar[tuple[str, ...]] = ()
    install: ClassVar[str] = ""

    xp: Any
    """The array namespace (array API names: `matmul`, `exp`, `where`, `sum`, `concat`, …)."""
    real: Any
    """The floating dtype of `precision`."""

    def __init__(self, *, precision: Precision = "float64", device: str = "cpu") -> None:
        """Raises UnsupportedError where the precision or device is not offered."""
        self.precision = precision
        self.device = device

    def put(self, tree: Any) -> Any:
        """Host arrays (in nested tuples) to the device; floats become `real`, integers at most 64 bits."""
        raise NotImplementedError

    def host(self, tree: Any) -> Any:
        """Device arrays (in nested tuples or dicts) to NumPy arrays, synchronised."""
        raise NotImplementedError

    def sync(self, tree: Any) -> Any:
        """Wait until all arrays are computed; returns its argument."""
        raise NotImplementedError

    def compile(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A compiled version of a pure function of arrays."""
        raise NotImplementedError

    def repeat(self, count: Any, body: Callable[[Any, Any], Any], carry: Any) -> Any:
        """carry = body(i, carry) for i = 0 … count - 1; `count` may be a traced integer."""
        raise NotImplementedError

    def key(self, seed: int) -> Key:
        """A key from a non-negative seed."""
        raise NotImplementedError

    def fold(self, key: Key, index: Any) -> Key:
        """An independent key for each integer `index` (may be traced)."""
        raise NotImplementedError

    def uniform(self, key: Key, shape: tuple[int, ...]) -> Array:
        """[0, 1) of dtype `real`."""
        raise NotImplementedError

    def normal(self, key: Key, shape: tuple[int, ...]) -> Array:
        """Standard normal of dtype `real`."""
        raise NotImplementedError

    def update(self, array: Array, index: Any, values: Array) -> Array:
        """A copy of `array` with array[index] = values (index: integer, integer array or slice of rows)."""
        raise NotImplementedError

    def place(self, array: Array, index: Any, values: Array) -> Array:
        """`update` of an array that the caller gives up: it may be overwritten. By default a copy."""
        return self.update(array, index, values)

    def add(self, total: Array, values: Array) -> Array:
        """total + values, of a `total` that the caller gives up."""
        return total + values

    def add_product(self, total: Array, values: Array, scale: Array) -> Array:
        """total + scale * values, of a `total` that the caller gives up."""
        return total + scale * values

    def add_compensated(self, total: Array, excess: Array, values: Array) -> tuple[Array, Array]:
        """(total + values, what rounding put into it), both arrays given up: `excess` is what `total` has too much.

        Kahan, "Further remarks on reducing truncation errors", CACM 1965.
        """
        corrected = values - excess
        grown = total + corrected
        return grown, (grown - total) - corrected

    def window(self, array: Array, start: Any, length: int) -> Array:
        """Rows start … start + length - 1 of `array`, all of which exist (`start` may be traced)."""
        return self.xp.take(array, start + self.xp.arange(length), axis=0)

    def sigmoid(self, x: Array) -> Array:
        """1 / (1 + e^-x), without overflow; `x` stays."""
        return 0.5 * self.xp.tanh(0.5 * x) + 0.5
