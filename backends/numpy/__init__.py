"""NumPy: the reference backend. Loops over steps run in Python; everything is vectorised over sites and chains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from spinbench.api import Array, Backend, Key, Precision
from spinbench.errors import UnsupportedError


class NumpyBackend(Backend):
    """Plain NumPy on the host; keys are seed sequences, expanded by the SFC64 generator."""

    name = "numpy"
    provides = frozenset({"arrays", "f32", "f64"})
    requires: ClassVar[tuple[str, ...]] = ("numpy",)

    xp: Any = np

    def __init__(self, *, precision: Precision = "float64", device: str = "cpu") -> None:
        if device != "cpu":
            raise UnsupportedError(f"backend numpy runs on device=cpu; device={device} was asked for")
        super().__init__(precision=precision, device=device)
        self.real = np.dtype(precision)

    def put(self, tree: Any) -> Any:
        return map_arrays(self._cast, tree)

    def _cast(self, array: Any) -> Array:
        array = np.asarray(array)
        return array.astype(self.real) if np.issubdtype(array.dtype, np.floating) else array

    def host(self, tree: Any) -> Any:
        return map_arrays(np.asarray, tree)

    def sync(self, tree: Any) -> Any:
        return tree

    def compile(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function

    def repeat(self, count: Any, body: Callable[[Any, Any], Any], carry: Any) -> Any:
        for i in range(count):
            carry = body(i, carry)
        return carry

    def key(self, seed: int) -> Key:
        return (seed,)

    def fold(self, key: Key, index: Any) -> Key:
        return (*key, int(index))

    def uniform(self, key: Key, shape: tuple[int, ...]) -> Array:
        return _generator(key).random(shape, dtype=self.real)

    def normal(self, key: Key, shape: tuple[int, ...]) -> Array:
        return _generator(key).standard_normal(shape, dtype=self.real)

    def update(self, array: Array, index: Any, values: Array) -> Array:
        copy = array.copy()
        copy[index] = values
        return copy

    def place(self, array: Array, index: Any, values: Array) -> Array:
        array[index] = values
        return array


def _generator(key: Key) -> np.random.Generator:
    # As entropy alone, (1,) and (1, 0) would be the same seed.
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(key[0], spawn_key=key[1:])))


def map_arrays(function: Callable[[Any], Any], tree: Any) -> Any:
    """Apply `function` to the leaves of nested tuples, named tuples, lists and dicts; None stays None."""
    if tree is None:
        return None
    if isinstance(tree, dict):
        return {name: map_arrays(function, leaf) for name, leaf in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(map_arrays(function, leaf) for leaf in tree))
    if isinstance(tree, tuple | list):
        return type(tree)(map_arrays(function, leaf) for leaf in tree)
    return function(tree)
