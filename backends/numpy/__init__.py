"""NumPy: the reference backend. Loops over steps run in Python; everything is vectorised over sites and chains."""

from __future__ import annotations

import math
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from numpy.random.bit_generator import ISeedSequence

from spinbench.api import Array, Backend, BackendProfile, Index, Key, Namespace, Precision
from spinbench.foundation.arithmetic import Accelerated, Arithmetic

# Three words of 64 bits, the seed of SFC64.
KEY_BYTES = 24
# Elements of a block that several operations process one after another: 256 kB, three of which fit the second-level
# cache.
AT_ONCE = 2**15


class NumpyArithmetic(Arithmetic):
    """In place, and in parts."""

    def window(self, array: Array, start: Index, length: int) -> Array:
        return array[start : start + length]

    def add(self, total: Array, values: Array) -> Array:
        total += values
        return total

    def add_product(self, total: Array, values: Array, scale: Array) -> Array:
        if not total.shape == values.shape == scale.shape:
            total += scale * values
            return total
        for part in _parts(len(total), total[:1].size):
            total[part] += scale[part] * values[part]
        return total

    def add_compensated(self, total: Array, excess: Array, values: Array) -> tuple[Array, Array]:
        if total.ndim == 0:
            return super().add_compensated(total, excess, values)
        for part in _parts(len(total), total[:1].size):
            total_part, over = total[part], excess[part]
            np.subtract(values[part], over, out=over)
            grown = total_part + over
            np.subtract(grown, total_part, out=total_part)
            np.subtract(total_part, over, out=over)
            total_part[...] = grown
        return total, excess

    def sigmoid(self, x: Array) -> Array:
        p = 0.5 * x
        np.tanh(p, out=p)
        p *= 0.5
        p += 0.5
        return p


class NumpyBackend(Accelerated, Backend):
    """Plain NumPy on the host; a key is a hash, which seeds an SFC64 generator."""

    name = "numpy"
    provides = frozenset({"arrays", "f32", "f64"})
    profile = BackendProfile(priority=2)
    requires: ClassVar[tuple[str, ...]] = ("numpy",)

    xp: Namespace = np
    _faster: ClassVar[Mapping[Any, Any]] = {Arithmetic: NumpyArithmetic}

    def __init__(self, *, precision: Precision = "float64", device: str = "cpu") -> None:
        super().__init__(precision=precision, device=device)
        self.real = np.dtype(precision)

    def key(self, seed: int) -> Key:
        return blake2b(seed.to_bytes(seed.bit_length() // 8 + 1, "little"), digest_size=KEY_BYTES).digest()

    def fold_in(self, key: Key, index: Index) -> Key:
        return blake2b(int(index).to_bytes(8, "little"), key=key, digest_size=KEY_BYTES).digest()

    def uniform(self, key: Key, shape: tuple[int, ...]) -> Array:
        if self.real != np.float32:
            return np.random.Generator(_generator(key)).random(shape)
        # 24 of each 32 random bits; a Generator fills float32 arrays three times more slowly
        count = math.prod(shape)
        raw = _generator(key).random_raw((count + 1) // 2).view(np.uint32)[:count]
        raw >>= 8
        numbers = raw.view(np.int32).astype(np.float32)
        numbers *= np.float32(2.0**-24)
        return numbers.reshape(shape)

    def normal(self, key: Key, shape: tuple[int, ...]) -> Array:
        return np.random.Generator(_generator(key)).standard_normal(shape, dtype=self.real)

    def update(self, array: Array, index: Index | slice, values: Array, *, donate: bool = False) -> Array:
        target = array if donate else array.copy()
        target[index] = values
        return target

    def take(self, array: Array, indices: Index) -> Array:
        if isinstance(indices, int):
            return array[indices]
        return array.take(indices, axis=0)


def _parts(rows: int, size: int) -> list[slice]:
    """Slices of rows of `size` numbers: operations in turn find what fits in the second-level cache still there."""
    step = max(1, AT_ONCE // max(size, 1))
    return [slice(low, low + step) for low in range(0, rows, step)]


class _Words(ISeedSequence):
    """The state that a key gives; NumPy's `SeedSequence` would hash for ten times as long."""

    def __init__(self, key: bytes) -> None:
        self._words = np.frombuffer(key, dtype=np.uint64)

    def generate_state(self, n_words: int, dtype: npt.DTypeLike = np.uint64) -> npt.NDArray[np.uint64]:
        return self._words


def _generator(key: Key) -> np.random.SFC64:
    # NumPy's type stubs accept only SeedSequence.
    seed: Any = _Words(key)
    return np.random.SFC64(seed)
