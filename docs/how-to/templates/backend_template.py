"""A backend to start from: NumPy. Copy this file and replace NumPy by your framework, member by member.

`spinbench check --backend mine` says what is still wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spinbench.api import Array, Backend, Key, Precision
from spinbench.errors import UnsupportedError


class MyBackend(Backend):
    """NumPy on the CPU."""

    name = "mine"  # the entry point's name
    # Add "loop" if repeat runs in compiled code, "grad" if it differentiates, "gpu" if device="gpu" is understood.
    provides = frozenset({"arrays", "f32", "f64"})
    requires = ("numpy",)  # modules; where one is missing, `spinbench list` says "unavailable" and shows `install`
    install = "pip install numpy"

    def __init__(self, *, precision: Precision = "float64", device: str = "cpu") -> None:
        if device != "cpu":
            raise UnsupportedError(f"backend mine runs on device=cpu; device={device} was asked for")
        super().__init__(precision=precision, device=device)
        import numpy as np  # here and not above, so that `spinbench list` need not load the framework

        self._np = np
        self.xp = np  # has every name of spinbench.testing.NAMESPACE
        self.real = np.dtype(precision)

    def put(self, tree: Any) -> Any:
        """To the device: floats become `real`, other dtypes stay."""
        np = self._np
        return _map(lambda x: np.asarray(x, dtype=self.real if np.asarray(x).dtype.kind == "f" else None), tree)

    def host(self, tree: Any) -> Any:
        """Back to NumPy. Wait for the device here, since timings are taken after this call."""
        return _map(self._np.asarray, tree)

    def sync(self, tree: Any) -> Any:
        """Wait for the device."""
        return tree

    def compile(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Arguments are trees of arrays, keys and Python integers. No compiler: return the function as it is."""
        return function

    def repeat(self, count: Any, body: Callable[[Any, Any], Any], carry: Any) -> Any:
        """Where there is a compiled loop (`fori_loop`), use it; `count` and `i` may be arrays without axes."""
        for i in range(int(count)):
            carry = body(i, carry)
        return carry

    def key(self, seed: int) -> Key:
        """Seeds differ in any of 63 bits. Keys are values: drawing does not change them."""
        return (seed,)

    def fold(self, key: Key, index: Any) -> Key:
        """A key of its own for each index, also for fold(fold(key, 1), 2) and fold(fold(key, 2), 1)."""
        return (*key, int(index))

    def uniform(self, key: Key, shape: tuple[int, ...]) -> Array:
        """[0, 1), without the 1; the same numbers for the same key."""
        return self._generator(key).random(shape, dtype=self.real)

    def normal(self, key: Key, shape: tuple[int, ...]) -> Array:
        """Standard normal."""
        return self._generator(key).standard_normal(shape, dtype=self.real)

    def update(self, array: Array, index: Any, values: Array) -> Array:
        """A changed copy."""
        copy = array.copy()
        copy[index] = values
        return copy

    def _generator(self, key: Key) -> Any:
        # key[0] and the rest apart: as one tuple, (1,) and (1, 0) would be the same seed
        return self._np.random.default_rng(self._np.random.SeedSequence(key[0], spawn_key=key[1:]))


def _map(function: Callable[[Any], Any], tree: Any) -> Any:
    """`function` of the leaves of nested tuples, named tuples, lists and dictionaries; None stays None."""
    if isinstance(tree, dict):
        return {name: _map(function, node) for name, node in tree.items()}
    if isinstance(tree, tuple | list):
        nodes = [_map(function, node) for node in tree]
        return type(tree)(*nodes) if hasattr(tree, "_fields") else type(tree)(nodes)
    return None if tree is None else function(tree)
