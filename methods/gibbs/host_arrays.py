"""NumPy's arrays, for what a plan samples on the host."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from spinbench.api import Array, Backend, Index

FloatArray = npt.NDArray[np.float64]


class HostArrays(Backend):
    """NumPy's arrays, for what a plan samples; a key is a `numpy.random.Generator`."""

    name: ClassVar[str] = "plan"
    provides: ClassVar[frozenset[str]] = frozenset({"arrays", "f64"})
    xp = np
    real = np.float64

    def fold_in(self, key: np.random.Generator, index: Index) -> np.random.Generator:
        # A NumPy generator advances its own state: successive calls give different numbers without an index.
        return key

    def uniform(self, key: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        return key.random(shape)

    def update(self, array: Array, index: Index | slice, values: Array, *, donate: bool = False) -> Array:
        target = array if donate else array.copy()
        target[index] = values
        return target
