"""Where kept states lie while a run goes on, and the file that they end in where they are many."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from spinbench.errors import SpinbenchError
from spinbench.foundation.atomic import written_whole

UnsignedArray = npt.NDArray[np.unsignedinteger[Any]]
SUFFIX = ".npz"
MEMBER = "states.npy"
_LOCAL_HEADER = 30
"""Bytes of what precedes a member's name in a zip file."""


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


def file_for(path: str | os.PathLike[str], keep: int | None) -> Path:
    """The file that `keep` states of each chain are to end in.

    Raises:
        SpinbenchError: another suffix, no such folder, or no states.
    """
    if keep is None:
        raise SpinbenchError(f"keep_in={str(path)!r} was given without keep, the number of states of each chain")
    found = Path(path)
    if found.suffix.lower() != SUFFIX:
        raise SpinbenchError(f"keep_in={str(path)!r} was given; a file that ends in {SUFFIX} is needed")
    if not found.absolute().parent.is_dir():
        raise SpinbenchError(f"keep_in={str(path)!r} was given; there is no such folder")
    return found


def check_room(path: Path, needed: float) -> None:
    """Raises SpinbenchError where a file's disk has less room than so many bytes."""
    free = shutil.disk_usage(path.absolute().parent).free
    if needed > free:
        raise SpinbenchError(
            f"keep_in={str(path)!r} was given; states and their file take up to {needed / 2**30:.2g} GiB, and "
            f"{free / 2**30:.2g} GiB are free"
        )


def write(path: Path, blocks: Iterable[UnsignedArray], count: int) -> None:
    """Write "states", (S, C, M) in C order and not compressed, so that it can be mapped; the file appears when it is
    whole.

    Args:
        path: of the file.
        blocks: (B, C, M), one after another.
        count: S.

    Raises:
        SpinbenchError: it cannot be written.
    """
    try:
        with (
            written_whole(path) as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive,
            archive.open(MEMBER, "w", force_zip64=True) as member,
        ):
            for turn, block in enumerate(blocks):
                if not turn:
                    about = {"descr": block.dtype.str, "fortran_order": False, "shape": (count, *block.shape[1:])}
                    np.lib.format.write_array_header_2_0(member, about)
                member.write(np.ascontiguousarray(block).tobytes())
    except OSError as error:
        raise SpinbenchError(f"{path} could not be written: {error.strerror or error}") from error


def mapped(path: Path) -> UnsignedArray:
    """(C, S, M) the states of such a file, read from it as they are looked at."""
    with zipfile.ZipFile(path) as archive:
        begin = archive.getinfo(MEMBER).header_offset
    with path.open("rb") as file:
        file.seek(begin)
        header = file.read(_LOCAL_HEADER)
        file.seek(begin + _LOCAL_HEADER + sum(int.from_bytes(header[k : k + 2], "little") for k in (26, 28)))
        np.lib.format.read_magic(file)
        shape, _, dtype = np.lib.format.read_array_header_2_0(file)
        found = np.memmap(path, dtype=dtype, mode="r", offset=file.tell(), shape=shape)
    return found.transpose(1, 0, 2)
