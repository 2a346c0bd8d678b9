"""PyTorch on CPU and GPU: the generic programs, operation by operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate

from spinbench.api import Array, Backend, BackendProfile, Index, Key, Precision
from spinbench.api.backend import Carry, P, R
from spinbench.backends.numpy import NumpyBackend
from spinbench.errors import UnsupportedError
from spinbench.foundation.arithmetic import Accelerated, Arithmetic

if TYPE_CHECKING:
    import numpy as np
    import torch


class TorchArithmetic(Arithmetic):
    """In place."""

    def window(self, array: Array, start: Index, length: int) -> Array:
        return array.narrow(0, int(start), length)

    def add(self, total: Array, values: Array) -> Array:
        return total.add_(values)

    def add_product(self, total: Array, values: Array, scale: Array) -> Array:
        return total.addcmul_(values, scale)

    def sigmoid(self, x: Array) -> Array:
        return x.sigmoid()


class TorchBackend(Accelerated, Backend):
    """PyTorch tensors on one device; a key is a hash, as NumPy's.

    On a CPU random numbers are NumPy's of the same key, since PyTorch's generator there looks at 32 bits of a seed, so
    that keys would meet; on a GPU they are PyTorch's, seeded with 64 bits. Nothing is compiled: a step of most programs
    is many small operations on few numbers, or loops whose limits are data.

    Raises:
        UnsupportedError: another device than "cpu" and "gpu", or no GPU that PyTorch sees.
    """

    name = "torch"
    provides = frozenset({"arrays", "grad", "f32", "f64", "gpu"})
    requires: ClassVar[tuple[str, ...]] = ("torch", "array_api_compat")
    install = "pip install 'spinbench[torch]'"
    profile = BackendProfile(packages=("torch",), survives_fork=False)
    _faster: ClassVar[Mapping[Any, Any]] = {Arithmetic: TorchArithmetic}

    def __init__(self, *, precision: Precision = "float64", device: str = "cpu") -> None:
        import torch
        from array_api_compat import torch as namespace

        if device not in ("cpu", "gpu"):
            raise UnsupportedError(f"backend torch runs on device=cpu or gpu; device={device} was asked for")
        if device == "gpu" and not torch.cuda.is_available():
            raise UnsupportedError("backend torch finds no device=gpu here; device=cpu always works")
        super().__init__(precision=precision, device=device)
        self._torch = torch
        self._device = torch.device("cuda" if device == "gpu" else "cpu")
        self._host = NumpyBackend(precision=precision)
        self.xp = _Namespace(torch, namespace)
        self.real = getattr(torch, precision)

    def to_device(self, array: np.ndarray) -> Array:
        return self._torch.tensor(array, dtype=self.real if array.dtype.kind == "f" else None, device=self._device)

    def to_host(self, array: Array) -> Any:
        return array.detach().cpu().numpy()

    def compile(self, function: Callable[P, R]) -> Callable[P, R]:
        """Nothing is; new arrays are made on the device."""
        if self.device == "cpu":
            return function

        def call(*args: P.args, **keywords: P.kwargs) -> R:
            with self._device:
                return function(*args, **keywords)

        return call

    def grad(self, function: Callable[Concatenate[Carry, P], Array]) -> Callable[Concatenate[Carry, P], Carry]:
        gradient: Callable[Concatenate[Carry, P], Carry] = self._torch.func.grad(function)
        return gradient

    def key(self, seed: int) -> Key:
        return self._host.key(seed)

    def fold_in(self, key: Key, index: Index) -> Key:
        return self._host.fold_in(key, index)

    def uniform(self, key: Key, shape: tuple[int, ...]) -> Array:
        if self.device == "cpu":
            return self._torch.from_numpy(self._host.uniform(key, shape))
        return self._torch.rand(shape, generator=self._generator(key), dtype=self.real, device=self._device)

    def normal(self, key: Key, shape: tuple[int, ...]) -> Array:
        if self.device == "cpu":
            return self._torch.as_tensor(self._host.normal(key, shape))
        return self._torch.randn(shape, generator=self._generator(key), dtype=self.real, device=self._device)

    def _generator(self, key: Key) -> torch.Generator:
        seed = int.from_bytes(blake2b(key, digest_size=8).digest(), "little", signed=True)
        return self._torch.Generator(self._device).manual_seed(seed)

    def update(self, array: Array, index: Index | slice, values: Array, *, donate: bool = False) -> Array:
        target = array if donate else array.clone()
        target[index] = values
        return target

    def take(self, array: Array, indices: Index) -> Array:
        if isinstance(indices, int) or indices.ndim == 0:
            return array[int(indices)]
        rows = self._torch.index_select(array, 0, indices.reshape(-1))
        return rows.reshape(*indices.shape, *array.shape[1:])


class _Namespace:
    """That of array-api-compat, without its promotion of dtypes and wrapping of indices in what is called most.

    Programs neither mix the dtypes of products nor take rows by negative indices.
    """

    if TYPE_CHECKING:

        def __getattr__(self, name: str, /) -> Any: ...

    def __init__(self, torch: ModuleType, general: ModuleType) -> None:
        vars(self).update({name: getattr(general, name) for name in dir(general) if not name.startswith("__")})
        self.matmul, self.reshape, self.where = torch.matmul, torch.reshape, torch.where
        self.take = lambda x, indices, /, *, axis=0: torch.index_select(x, axis, indices)
        self.astype = lambda x, dtype, /, *, copy=True: x.to(dtype, copy=copy)
