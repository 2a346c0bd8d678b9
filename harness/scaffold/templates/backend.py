"""A backend to start from: NumPy. Replace it by your framework, member by member.

`spinbench check --backend mine` says what is still wrong.
"""

from __future__ import annotations

from spinbench.api import Array, Backend, Key, Precision
from spinbench.errors import UnsupportedError


class MyBackend(Backend):
    """NumPy on the CPU."""

    name = "mine"  # name of the entry point
    # Add "compiled" if it keeps code in the folder that NUMBA_CACHE_DIR or JAX_COMPILATION_CACHE_DIR names,
    # "loop" if fori_loop runs in compiled code, "grad" if it differentiates, "gpu" if device="gpu" is understood.
    provides = frozenset({"arrays", "f32", "f64"})
    requires = ("numpy",)  # modules; where one is missing, `spinbench list` says "unavailable" and shows `install`
    install = "pip install numpy"

    def __init__(self, *, precision: Precision = "float64", device: str = "cpu") -> None:
        if device != "cpu":
            raise UnsupportedError(f"backend mine runs on device=cpu; device={device} was asked for")
        super().__init__(precision=precision, device=device)
        import numpy as np  # here and not above: `spinbench list` does not load the framework

        self._np = np
        self.xp = np  # an array namespace: what the Python array API standard names
        self.real = np.dtype(precision)

    def key(self, seed: int) -> Key:
        """Seeds differ in any of 63 bits. Keys are values: drawing does not change them."""
        return (seed,)

    def fold_in(self, key: Key, index: int | Array) -> Key:
        """A key of its own for each index, also for fold_in(fold_in(key, 1), 2) and fold_in(fold_in(key, 2), 1)."""
        return (*key, int(index))

    def uniform(self, key: Key, shape: tuple[int, ...]) -> Array:
        """[0, 1), without the 1; the same numbers for the same key."""
        # key[0] is passed separately: as one tuple, (1,) and (1, 0) would be the same seed
        sequence = self._np.random.SeedSequence(key[0], spawn_key=key[1:])
        return self._np.random.default_rng(sequence).random(shape, dtype=self.real)

    # The methods below have defaults made of array operations. Where arrays are writable, these versions are faster.

    def update(self, array: Array, index: int | Array | slice, values: Array, *, donate: bool = False) -> Array:
        """array[index] = values, in place if the caller gives the array up."""
        target = array if donate else array.copy()
        target[index] = values
        return target
