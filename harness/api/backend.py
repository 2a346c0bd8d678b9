"""Backends: array frameworks that methods compute with."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, ParamSpec, TypeVar

from spinbench.api.old_members import add_old_operations
from spinbench.api.profile import BackendProfile
from spinbench.api.types import Array, Index, Key, Namespace, Precision
from spinbench.errors import UnsupportedError
from spinbench.foundation import deadline
from spinbench.foundation.arithmetic import take

if TYPE_CHECKING:
    import numpy as np

P = ParamSpec("P")
R = TypeVar("R")
Carry = TypeVar("Carry")
"""Arrays in nested tuples, as a loop hands them on."""


class Backend:
    """An array framework on a device. It is imported in the constructor, never at module level.

    Where arrays are offered, a constructor that sets `xp` and `real`, and `key`, `fold_in` and `uniform` are to be
    written. All else has a default in terms of `xp`.

    Class attributes:
        provides: capabilities out of {"arrays", "compiled", "loop", "grad", "jax", "f32", "f64", "gpu"}. "arrays": the
            members below exist, so generic programs run (without, it is another library that runs kernels of its own
            alone, for comparison: it runs where it is named, is listed in a table of its own, and the harness chooses
            it for nothing); "compiled": code is compiled when it first runs, and kept in the folder that
            NUMBA_CACHE_DIR or JAX_COMPILATION_CACHE_DIR names, where sweeps look for it; "loop": `fori_loop` runs in
            compiled code; "grad": `grad` is there, for methods whose `requires` name it (none that is built in does);
            "jax": arrays are JAX's and keys are such as `jax.random` takes, for programs that call libraries made on
            JAX; "f32", "f64": the precisions offered; "gpu": device="gpu" is understood, and refused where there is
            none.
        requires: names of importable modules that must exist.
        programs: names of programs that must be found on the path.
        install: the command that installs them.
        profile: what records, sweeps and plots ask of it.
    """

    name: ClassVar[str]
    provides: ClassVar[frozenset[str]]
    requires: ClassVar[tuple[str, ...]] = ()
    programs: ClassVar[tuple[str, ...]] = ()
    install: ClassVar[str] = ""
    profile: ClassVar[BackendProfile] = BackendProfile()

    xp: Namespace
    """The array namespace (array API names: `matmul`, `exp`, `where`, `sum`, `concat`, …)."""
    real: Any
    """The floating dtype of `precision`."""

    def __init__(self, *, precision: Precision = "float64", device: str = "cpu") -> None:
        """The device by default is what sweeps take: "cpu", but for a backend that has none.

        Raises:
            UnsupportedError: the precision or device is not offered.
        """
        devices = ["cpu", *sorted({"gpu"} & self.provides)]
        if device not in devices:
            allowed = " or ".join(devices)
            raise UnsupportedError(f"backend {self.name} runs on device={allowed}; device={device} was asked for")
        self.precision = precision
        self.device = device

    def key(self, seed: int) -> Key:
        """A key from a non-negative seed."""
        raise NotImplementedError

    def fold_in(self, key: Key, index: Index) -> Key:
        """An independent key for each integer `index` (may be traced)."""
        raise NotImplementedError

    def uniform(self, key: Key, shape: tuple[int, ...]) -> Array:
        """Uniform random numbers in [0, 1) of dtype `real`."""
        raise NotImplementedError

    def normal(self, key: Key, shape: tuple[int, ...]) -> Array:
        """Standard normal random numbers of dtype `real`; by default by Box and Muller's method."""
        xp, u = self.xp, self.uniform(key, (2, *shape))
        return xp.sqrt(-2 * xp.log1p(-u[0, ...])) * xp.cos(2 * math.pi * u[1, ...])

    def take(self, array: Array, indices: Index) -> Array:
        """The rows array[indices]: `indices` is an integer, which may be traced, or an array of any shape, all >= 0.

        `xp` has this for vectors of indices alone.
        """
        if isinstance(indices, int):
            return array[indices, ...]
        return take(self.xp, array, indices)

    def to_device(self, array: np.ndarray) -> Array:
        """A copy of a NumPy array on the device; floats become `real`, integers have at most 64 bits."""
        if array.dtype.kind != "f":
            return self.xp.asarray(array, copy=True)
        values = array.astype(self.precision, copy=False)  # PyTorch converts no arrays without axes
        return self.xp.asarray(values, dtype=self.real, copy=True)

    def to_host(self, array: Array) -> np.ndarray:
        """`array` as a NumPy array; waits until it is computed."""
        import numpy as np  # here and not above: the contracts import without an array library

        return np.asarray(array)

    def block_until_ready(self, array: Array) -> None:
        """Return when `array` is computed; by default by fetching it."""
        self.to_host(array)

    def compile(self, function: Callable[P, R]) -> Callable[P, R]:
        """A compiled version of a pure function of arrays in nested tuples; by default the function itself."""
        return function

    def grad(self, function: Callable[Concatenate[Carry, P], Array]) -> Callable[Concatenate[Carry, P], Carry]:
        """The gradient of a function of arrays whose value is a number, with respect to the first of them.

        The first argument may be arrays in nested tuples, as which the gradient comes back. Limits of loops within the
        function are Python integers.

        Raises:
            UnsupportedError: `provides` has no "grad".
        """
        raise UnsupportedError(f"backend {self.name} has no gradients")

    def fori_loop(self, lower: Index, upper: Index, body: Callable[[Index, Carry], Carry], carry: Carry) -> Carry:
        """A loop carry = body(i, carry) over i = lower … upper - 1; the limits may be traced integers. The default is a
        Python loop, which a deadline may end."""
        for i in range(int(lower), int(upper)):
            deadline.check()
            carry = body(i, carry)
        return carry

    def while_loop(self, condition: Callable[[Carry], Array], body: Callable[[Carry], Carry], carry: Carry) -> Carry:
        """The loop carry = body(carry) while condition(carry), an array of one flag, is true; by default in Python."""
        while bool(condition(carry)):
            deadline.check()
            carry = body(carry)
        return carry

    def update(self, array: Array, index: Index | slice, values: Array, *, donate: bool = False) -> Array:
        """`array` with array[index] = values, by default a copy, made of standard operations.

        Args:
            array: stays as it was, unless donated.
            index: of rows: an integer (may be traced), a vector of integers, none of them twice, or a slice with static
                bounds. Negative ones count from the end.
            values: the rows, in `array`'s dtype.
            donate: `array` may be overwritten, for the caller uses it no more.
        """
        xp, rows = self.xp, array.shape[0]
        if isinstance(index, slice):
            low, high, step = index.indices(rows)
            if step == 1:
                return xp.concat([array[:low, ...], values, array[max(low, high) :, ...]], axis=0)
            index = xp.arange(low, high, step)
        flat = (rows, *[1] * (array.ndim - 1))
        if getattr(index, "ndim", 0) == 0:
            return xp.where(xp.reshape(xp.arange(rows) == index % rows, flat), values, array)
        places: Array = index
        if places.shape[0] == 0:
            return array
        is_row = xp.reshape(xp.astype(places, xp.int32) % rows, (-1, 1)) == xp.arange(rows)[None, :]
        chosen = xp.take(values, xp.argmax(xp.astype(is_row, xp.int32), axis=0), axis=0)
        return xp.where(xp.reshape(xp.any(is_row, axis=0), flat), chosen, array)


add_old_operations(Backend)
