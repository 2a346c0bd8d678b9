"""CuPy on a GPU: the generic programs, operation by operation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from spinbench.api import Array, BackendProfile, Index, Key, Precision
from spinbench.backends.numpy import NumpyArithmetic, NumpyBackend
from spinbench.errors import UnsupportedError
from spinbench.foundation.arithmetic import Arithmetic

if TYPE_CHECKING:
    import cupy


class CupyArithmetic(NumpyArithmetic):
    """In place; NumPy's blocks, which stay in a CPU cache, do not help on a GPU."""

    add_product, add_compensated = Arithmetic.add_product, Arithmetic.add_compensated
    sigmoid = Arithmetic.sigmoid

    def window(self, array: Array, start: Index, length: int) -> Array:
        return array[int(start) : int(start) + length]


class CupyBackend(NumpyBackend):
    """CuPy arrays on the first CUDA device, worked on as NumPy's; its keys seed Philox generators there.

    Nothing is compiled: each operation starts a kernel, some 10 µs, so that it pays from some 10,000 numbers on.

    Raises:
        UnsupportedError: another device than "gpu", or no GPU that CuPy sees.
    """

    name = "cupy"
    provides = frozenset({"arrays", "f32", "f64", "gpu"})
    requires: ClassVar[tuple[str, ...]] = ("cupy", "array_api_compat")
    install = "pip install cupy-cuda13x array-api-compat"
    profile = BackendProfile(packages=("cupy-cuda13x", "cupy-cuda12x"), survives_fork=False)
    _faster: ClassVar[Mapping[Any, Any]] = {Arithmetic: CupyArithmetic}

    def __init__(self, *, precision: Precision = "float64", device: str = "gpu") -> None:
        if device != "gpu":
            raise UnsupportedError(f"backend cupy runs on device=gpu; device={device} was asked for")
        import cupy
        from array_api_compat import cupy as namespace

        try:
            cupy.cuda.runtime.getDeviceCount()
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise UnsupportedError(f"backend cupy finds no device=gpu here: {error}") from error
        super().__init__(precision=precision, device=device)
        self._cupy = cupy
        self.xp = namespace

    def to_device(self, array: np.ndarray) -> Array:
        return self._cupy.array(array, dtype=self.real if array.dtype.kind == "f" else None)

    def to_host(self, array: Array) -> Any:
        return self._cupy.asnumpy(array)

    def block_until_ready(self, array: Array) -> None:
        # Kernels run asynchronously: without waiting here, timings would end before the kernels do.
        self._cupy.cuda.get_current_stream().synchronize()

    def uniform(self, key: Key, shape: tuple[int, ...]) -> Array:
        return self._generator(key).random(shape, dtype=self.real)

    def normal(self, key: Key, shape: tuple[int, ...]) -> Array:
        return self._generator(key).standard_normal(shape, dtype=self.real)

    def _generator(self, key: Key) -> cupy.random.Generator:
        random = self._cupy.random
        return random.Generator(random.Philox4x3210(int.from_bytes(key, "little")))

    def take(self, array: Array, indices: Index) -> Array:
        if isinstance(indices, int) or indices.ndim == 0:
            return array[int(indices)]
        return self._cupy.take(array, indices, axis=0)
