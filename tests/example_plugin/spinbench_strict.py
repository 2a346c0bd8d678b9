"""A spinbench backend whose arrays do what generic programs are promised: array-api-strict, wrapped."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from spinbench.api import Backend, Key, Precision, map_arrays
from spinbench.errors import UnsupportedError


class StrictArray:
    """An array of array-api-strict that cannot be written to, and has no truth value."""

    __array_ufunc__ = None  # NumPy's own functions and arrays leave the operation to us

    def __init__(self, data: Any) -> None:
        self._data: Any = data

    @property
    def data(self) -> Any:
        """The array."""
        if self._data is None:
            raise RuntimeError("this array was donated to Backend.update and may not be used any more")
        return self._data

    shape = property(lambda self: self.data.shape)
    ndim = property(lambda self: self.data.ndim)
    dtype = property(lambda self: self.data.dtype)
    T = property(lambda self: StrictArray(self.data.T))

    def __getitem__(self, index: Any) -> StrictArray:
        return StrictArray(self.data[_bare(index)])

    def __iter__(self) -> Any:
        raise TypeError("the array API standard has no iteration over arrays; use indices")

    def __setitem__(self, index: Any, values: Any) -> None:
        raise TypeError("arrays cannot be written to; use Backend.update")

    def __bool__(self) -> bool:
        raise TypeError("a compiler does not know this number; use xp.where instead of if, and Backend.fori_loop")


def _operator(function: Callable[..., Any], *, swap: bool = False) -> Callable[..., StrictArray]:
    def method(self: StrictArray, *other: Any) -> StrictArray:
        values = (self.data, *map(_bare, other))
        return StrictArray(function(*values[:: -1 if swap else 1]))

    return method


def _in_place(self: StrictArray, other: Any) -> StrictArray:
    raise TypeError("arrays cannot be written to; write x = x + y instead of x += y")


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor"):
    setattr(StrictArray, f"__r{_name.rstrip('_')}__", _operator(getattr(operator, _name), swap=True))
    setattr(StrictArray, f"__i{_name.rstrip('_')}__", _in_place)
for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor",
              "lt", "le", "eq", "ne", "gt", "ge", "neg", "pos", "abs", "invert"):  # fmt: skip
    setattr(StrictArray, f"__{_name.rstrip('_')}__", _operator(getattr(operator, _name)))


class _Namespace:
    """That of array-api-strict, on StrictArrays."""

    def __init__(self) -> None:
        import array_api_strict

        array_api_strict.set_array_api_strict_flags(api_version="2024.12")
        self._strict = array_api_strict
        self._array = type(array_api_strict.zeros(()))

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._strict, name)
        if not callable(found):
            return found

        def function(*args: Any, **options: Any) -> Any:
            return self._wrapped(found(*_bare(args), **options))

        return function

    def _wrapped(self, found: Any) -> Any:
        return map_arrays(lambda leaf: StrictArray(leaf) if isinstance(leaf, self._array) else leaf, found)


class StrictBackend(Backend):
    """NumPy behind the standard, strictly."""

    name = "strict"
    provides = frozenset({"arrays", "f32", "f64"})
    requires = ("array_api_strict",)
    install = "pip install array-api-strict"

    def __init__(self, *, precision: Precision = "float64", device: str = "cpu") -> None:
        if device != "cpu":
            raise UnsupportedError(f"backend strict runs on device=cpu; device={device} was asked for")
        super().__init__(precision=precision, device=device)
        self.xp = _Namespace()
        self.real = getattr(self.xp, precision)

    def key(self, seed: int) -> Key:
        return (seed,)

    def fold_in(self, key: Key, index: Any) -> Key:
        return (*key, int(_bare(index)))

    def uniform(self, key: Key, shape: tuple[int, ...]) -> StrictArray:
        generator = np.random.default_rng(np.random.SeedSequence(key[0], spawn_key=key[1:]))
        return self.to_device(generator.random(shape, dtype=np.dtype(self.precision)))

    def to_host(self, array: StrictArray) -> Any:
        return np.asarray(array.data)

    def fori_loop(self, lower: Any, upper: Any, body: Callable[[Any, Any], Any], carry: Any) -> Any:
        return super().fori_loop(_bare(lower), _bare(upper), body, carry)

    def while_loop(self, condition: Callable[[Any], Any], body: Callable[[Any], Any], carry: Any) -> Any:
        return super().while_loop(lambda carry: _bare(condition(carry)), body, carry)

    def update(self, array: StrictArray, index: Any, values: Any, *, donate: bool = False) -> StrictArray:
        updated = super().update(array, index, values)
        if donate:
            array._data = None
        return updated


def _bare(value: Any) -> Any:
    return map_arrays(lambda leaf: leaf.data if isinstance(leaf, StrictArray) else leaf, value)
