"""Where recorded states lie: one after another while a run goes on, and in the end in a file, as its suffix says."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO, BinaryIO

import numpy as np
import numpy.typing as npt

from spinbench.errors import SpinbenchError, UnavailableError
from spinbench.foundation.atomic import open_atomically

UnsignedArray = npt.NDArray[np.unsignedinteger]

# Disk space needed while writing, in multiples of the states' bytes, by suffix.
COPIES = {".npz": 3, ".parquet": 4}
# Bytes of a Parquet row group, in memory and in the file, and its smallest number of rows.
GROUP_BYTES, MIN_GROUP_ROWS = 2**23, 1024


class StateBuffer:
    """States (N, C), one after another in a binary file, of memory or of a disk."""

    def __init__(self, file: IO[bytes], shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> None:
        self._file, self._shape, self._dtype, self._count = file, shape, dtype, 0
        self._bytes = int(np.prod(shape)) * dtype.itemsize

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> UnsignedArray:
        self._file.seek(range(self._count)[index] * self._bytes)
        return np.frombuffer(self._file.read(self._bytes), dtype=self._dtype).reshape(self._shape)

    def append(self, states: np.ndarray) -> None:
        """One more."""
        self._write(self._count, states.astype(self._dtype))
        self._count += 1

    def halve(self) -> None:
        """Drop every other one, the first among them."""
        half = range(1, self._count, 2)
        for index, source in enumerate(half):
            self._write(index, self[source])
        self._count = len(half)

    def clear(self) -> None:
        """Drop all."""
        self._count = 0

    def _write(self, index: int, states: UnsignedArray) -> None:
        self._file.seek(index * self._bytes)
        self._file.write(states.tobytes())


@dataclass(frozen=True)
class States:
    """What is to be written: S states of C chains of M variables.

    Attributes:
        blocks: of (B, C, M) states, one after another, S in all.
        shape: (S, C, M).
        dtype: of the states.
        labels: (M,) of the variables.
    """

    blocks: Iterable[UnsignedArray]
    shape: tuple[int, int, int]
    dtype: np.dtype[np.generic]
    labels: Sequence[Hashable]


def check_file(path: str | os.PathLike[str], keep: int | None) -> Path:
    """The file that `keep` states of each chain are to end in.

    Raises:
        SpinbenchError: another suffix, no such folder, or no states.
        UnavailableError: what writes such a file is not installed.
    """
    option, file = f"keep_in={str(path)!r} was given", Path(path)
    if keep is None:
        raise SpinbenchError(f"{option} without keep, the number of states of each chain")
    if file.suffix.lower() not in COPIES:
        raise SpinbenchError(f"{option}; a file that ends in {' or '.join(COPIES)} is needed")
    if file.suffix.lower() == ".parquet" and find_spec("pyarrow") is None:
        raise UnavailableError(
            f"{option}, and pyarrow is not installed; pip install 'spinbench[parquet]', or keep them in a file that "
            "ends in .npz"
        )
    if not file.absolute().parent.is_dir():
        raise SpinbenchError(f"{option}; there is no such folder")
    return file


def check_room(path: Path, size: float) -> None:
    """Raises SpinbenchError where a file's disk has too little room for so many bytes of states."""
    free, needed = shutil.disk_usage(path.absolute().parent).free, COPIES[path.suffix.lower()] * size
    if needed > free:
        raise SpinbenchError(
            f"keep_in={str(path)!r} was given; states and their file take up to {needed / 2**30:.2g} GiB, and "
            f"{free / 2**30:.2g} GiB are free"
        )


@contextmanager
def note_interruption(path: Path | None) -> Iterator[None]:
    """Let an interruption say that there is no file of states, if one was asked for."""
    try:
        yield
    except KeyboardInterrupt as error:
        if path is not None:
            error.add_note(f"{path} was not written: it appears when the run has ended")
        raise


def write_states(path: Path, states: States) -> UnsignedArray:
    """Write states; the file appears when it is whole.

    Returns:
        (C, S, M), read from a file as they are looked at.

    Raises:
        SpinbenchError: it cannot be written.
    """
    try:
        if path.suffix.lower() == ".npz":
            with open_atomically(path) as file:
                begin = _write_npz(file, states)
            return _map_states(path, states, begin)
        with tempfile.TemporaryFile(dir=path.absolute().parent) as raw, open_atomically(path) as file:
            _write_parquet(file, raw, states)
            return _map_states(raw, states)
    except OSError as error:
        raise SpinbenchError(f"{path} could not be written: {error.strerror or error}") from error


def _map_states(file: IO[bytes] | Path, states: States, begin: int = 0) -> UnsignedArray:
    return np.memmap(file, states.dtype, "r", begin, states.shape).transpose(1, 0, 2)


def _write_npz(file: BinaryIO, states: States) -> int:
    """Write "states", in C order and not compressed, so that it can be mapped from the byte that is returned."""
    about = {"descr": states.dtype.str, "fortran_order": False, "shape": states.shape}
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive,
        archive.open("states.npy", "w", force_zip64=True) as member,
    ):
        np.lib.format.write_array_header_2_0(member, about)
        begin = file.tell()
        for block in states.blocks:
            member.write(block.tobytes())
    return begin


def _write_parquet(file: BinaryIO, raw: IO[bytes], states: States) -> None:
    """Write a line a state: chain, draw, and a column for each variable.

    Columns are compressed; `raw`, a file without a name, gets the states as they are, to be mapped.
    """
    import pyarrow
    from pyarrow.parquet import ParquetWriter

    names = ["chain", "draw", *map(str, states.labels)]
    # Duplicate names would hide a column.
    if len(set(names)) < len(names):
        names[2:] = map(str, range(len(names) - 2))
    types = [pyarrow.int64()] * 2 + [pyarrow.from_numpy_dtype(states.dtype)] * len(states.labels)
    schema, first = pyarrow.schema([*zip(names, types, strict=True)]), 0
    with ParquetWriter(file, schema, compression="zstd") as writer:
        for group in _merge_blocks(states):
            raw.write(group.tobytes())
            draws, chains = np.indices(group.shape[:2]).reshape(2, -1)
            columns = [chains, first + draws, *group.reshape(len(draws), -1).T]
            writer.write_table(pyarrow.table(columns, schema=schema))
            first += len(group)
    raw.flush()


def _merge_blocks(states: States) -> Iterator[UnsignedArray]:
    """Blocks put together, so that columns are long."""
    _, chains, variables = states.shape
    enough = max(MIN_GROUP_ROWS, GROUP_BYTES // max(variables * states.dtype.itemsize, 1))
    group: list[UnsignedArray] = []
    for block in states.blocks:
        group.append(block)
        if sum(map(len, group)) * chains >= enough:
            yield np.concatenate(group)
            group.clear()
    if group:
        yield np.concatenate(group)
