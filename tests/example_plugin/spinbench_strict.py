"""A spinbench backend whose arrays do what generic programs are promised, and nothing else."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from spinbench.api import Backend, Key, Precision
from spinbench.errors import UnsupportedError
from spinbench.testing import NAMESPACE


class StrictArray:
    """A read-only NumPy array behind operators, indexing, `shape`, `ndim`, `dtype` and `T`."""

    __array_ufunc__ = None  # NumPy's own functions and arrays leave the operation to us

    def __init__(self, data: Any) -> None:
        self._data: Any = np.array(data)
        self._data.setflags(write=False)

    @property
    def data(self) -> Any:
        """The NumPy array."""
        if self._data is None:
            raise RuntimeError("this array was donated to Backend.update and may not be used any more")
        return self._data

    shape = property(lambda self: self.data.shape)
    ndim = property(lambda self: self.data.ndim)
    dtype = property(lambda self: self.data.dtype)
    T = property(lambda self: StrictArray(self.data.T))

    def __getitem__(self, index: Any) -> StrictArray:
        return StrictArray(self.data[_bare(index)])

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
    """The promised functions of NumPy, on StrictArrays."""

    inf = np.inf

    def __getattr__(self, name: str) -> Callable[..., StrictArray]:
        if name not in NAMESPACE:
            raise AttributeError(f"xp.{name} is not promised to generic programs; spinbench.testing.NAMESPACE is")

        def function(*args: Any, **options: Any) -> StrictArray:
            if beyond := options.keys() - {"axis", "keepdims", "dtype"}:
                raise TypeError(f"{beyond.pop()}= of xp.{name} is not promised to generic programs")
            if name == "where" and not isinstance(args[0], StrictArray):
                raise TypeError("the condition of xp.where must be an array")
            return StrictArray(getattr(np, name)(*_bare(args), **options))

        return function


class StrictBackend(Backend):
    """NumPy, strictly."""

    name = "strict"
    provides = frozenset({"arrays", "f32", "f64"})
    requires = ("numpy",)

    def __init__(self, *, precision: Precision = "float64", device: str = "cpu") -> None:
        if device != "cpu":
            raise UnsupportedError(f"backend strict runs on device=cpu; device={device} was asked for")
        super().__init__(precision=precision, device=device)
        self.xp = _Namespace()
        self.real = np.dtype(precision)

    def to_device(self, array: Any) -> StrictArray:
        return StrictArray(array if array.dtype.kind != "f" else array.astype(self.real))

    def to_host(self, array: StrictArray) -> Any:
        return array.data

    def fori_loop(self, lower: Any, upper: Any, body: Callable[[Any, Any], Any], carry: Any) -> Any:
        for i in range(int(_bare(lower)), int(_bare(upper))):
            carry = body(i, carry)
        return carry

    def key(self, seed: int) -> Key:
        return (seed,)

    def fold_in(self, key: Key, index: Any) -> Key:
        return (*key, int(_bare(index)))

    def uniform(self, key: Key, shape: tuple[int, ...]) -> StrictArray:
        return StrictArray(_generator(key).random(shape, dtype=self.real))

    def update(self, array: StrictArray, index: Any, values: Any, *, donate: bool = False) -> StrictArray:
        updated = super().update(array, index, values)
        if donate:
            array._data = None
        return updated


def _generator(key: Key) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(key[0], spawn_key=key[1:]))


def _bare(value: Any) -> Any:
    return _map(lambda leaf: leaf.data if isinstance(leaf, StrictArray) else leaf, value)


def _map(function: Callable[[Any], Any], tree: Any) -> Any:
    """`function` of the leaves of nested tuples, lists and dictionaries; None stays."""
    if isinstance(tree, dict):
        return {name: _map(function, node) for name, node in tree.items()}
    if isinstance(tree, tuple | list):
        nodes = [_map(function, node) for node in tree]
        return type(tree)(*nodes) if hasattr(tree, "_fields") else type(tree)(nodes)
    return None if tree is None else function(tree)
