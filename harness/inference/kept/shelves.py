"""Where kept states lie while a run goes on."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

UnsignedArray = npt.NDArray[np.unsignedinteger[Any]]


class InMemory:
    """States (N, C), one after another."""

    def __init__(self) -> None:
        self._states: list[UnsignedArray] = []

    def __len__(self) -> int:
        return len(self._states)

    def __getitem__(self, place: int) -> UnsignedArray:
        return self._states[place]

    def append(self, states: UnsignedArray) -> None:
        """One more."""
        self._states.append(states)

    def halve(self) -> None:
        """Every other one goes, the first among them."""
        del self._states[::2]

    def clear(self) -> None:
        """All go."""
        self._states.clear()


class OnDisk:
    """The same in a file without a name, which goes with the object."""

    def __init__(self, folder: Path, shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
        """In a folder."""
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - as long as the object
        self._shape, self._dtype, self._count = shape, dtype, 0
        self._bytes = shape[0] * shape[1] * dtype.itemsize

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: int) -> UnsignedArray:
        self._file.seek(range(self._count)[place] * self._bytes)
        return np.frombuffer(self._file.read(self._bytes), dtype=self._dtype).reshape(self._shape)

    def append(self, states: UnsignedArray) -> None:
        """One more."""
        self._put(self._count, states)
        self._count += 1

    def halve(self) -> None:
        """Every other one goes, the first among them."""
        half = range(1, self._count, 2)
        for to, place in enumerate(half):
            self._put(to, self[place])
        self._count = len(half)

    def clear(self) -> None:
        """All go."""
        self._count = 0

    def _put(self, place: int, states: UnsignedArray) -> None:
        self._file.seek(place * self._bytes)
        self._file.write(np.ascontiguousarray(states).tobytes())
