"""Where the steps of a program run that are not compiled: NumPy, with keys that NumPy's generators take."""

from __future__ import annotations

from typing import Any

from numpy.random import SeedSequence

from spinbench.api import Key
from spinbench.backends.numpy import NumpyBackend


class Host(NumpyBackend):
    """NumPy with a `SeedSequence` for a key."""

    def key(self, seed: int) -> Key:
        return SeedSequence(seed)

    def fold_in(self, key: Key, index: Any) -> Key:
        return SeedSequence(key.entropy, spawn_key=(*key.spawn_key, int(index)))
