"""The file that kept states end in where they are many, as its suffix says."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from spinbench.errors import SpinbenchError, UnavailableError
from spinbench.foundation.atomic import written_whole
from spinbench.inference.kept.shelves import UnsignedArray

MEMBER = "states.npy"
_LOCAL_HEADER = 30
"""Bytes of what precedes a member's name in a zip file."""
_GROUP_BYTES, _GROUP_ROWS = 2**23, 1024
"""States that Parquet holds together, in memory and in the file: so many bytes, or more of many variables."""


@dataclass(frozen=True)
class Form:
    """A kind of file.

    Attributes:
        write: writes blocks of states (B, C, M), S in all, of variables with these names, and returns them as
            (S, C, M), mapped.
        copies: times the bytes of all states, what the disk has to hold meanwhile.
        package: that is needed, and spinbench's extra with it.
    """

    write: Callable[[Path, Iterable[UnsignedArray], int, Sequence[Hashable]], UnsignedArray]
    copies: int
    package: tuple[str, str] | None = None


def file_for(path: str | os.PathLike[str], keep: int | None) -> Path:
    """The file that `keep` states of each chain are to end in.

    Raises:
        SpinbenchError: another suffix, no such folder, or no states.
        UnavailableError: what writes such a file is not installed.
    """
    if keep is None:
        raise SpinbenchError(f"keep_in={str(path)!r} was given without keep, the number of states of each chain")
    found = Path(path)
    form = FORMS.get(found.suffix.lower())
    if form is None:
        raise SpinbenchError(f"keep_in={str(path)!r} was given; a file that ends in {' or '.join(FORMS)} is needed")
    if form.package is not None and find_spec(form.package[0]) is None:
        raise UnavailableError(
            f"keep_in={str(path)!r} was given, and {form.package[0]} is not installed; pip install "
            f"'spinbench[{form.package[1]}]', or keep them in a file that ends in .npz"
        )
    if not found.absolute().parent.is_dir():
        raise SpinbenchError(f"keep_in={str(path)!r} was given; there is no such folder")
    return found


@contextmanager
def told_if_interrupted(path: Path | None) -> Iterator[None]:
    """Let an interruption say that there is no file of states, if one was asked for."""
    try:
        yield
    except KeyboardInterrupt as error:
        if path is not None:
            error.add_note(f"{path} was not written: it appears when the run has ended")
        raise


def check_room(path: Path, size: float) -> None:
    """Raises SpinbenchError where a file's disk has too little room for so many bytes of states."""
    free, needed = shutil.disk_usage(path.absolute().parent).free, FORMS[path.suffix.lower()].copies * size
    if needed > free:
        raise SpinbenchError(
            f"keep_in={str(path)!r} was given; states and their file take up to {needed / 2**30:.2g} GiB, and "
            f"{free / 2**30:.2g} GiB are free"
        )


def write(path: Path, blocks: Iterable[UnsignedArray], count: int, labels: Sequence[Hashable]) -> UnsignedArray:
    """Write states, (B, C, M) one after another and `count` (S) in all; the file appears when it is whole.

    Args:
        path: of the file.
        blocks, count: the states.
        labels: (M,) of the variables.

    Returns:
        (C, S, M), read from a file as they are looked at.

    Raises:
        SpinbenchError: it cannot be written.
    """
    try:
        return FORMS[path.suffix.lower()].write(path, blocks, count, labels).transpose(1, 0, 2)
    except OSError as error:
        raise SpinbenchError(f"{path} could not be written: {error.strerror or error}") from error


def _npz(path: Path, blocks: Iterable[UnsignedArray], count: int, labels: Sequence[Hashable]) -> UnsignedArray:
    """ "states", (S, C, M) in C order and not compressed, so that it can be mapped."""
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
    return mapped(path)


def _parquet(path: Path, blocks: Iterable[UnsignedArray], count: int, labels: Sequence[Hashable]) -> UnsignedArray:
    """A line a state: chain, draw, and a column for each variable. What is mapped is a file without a name beside it,
    since columns are compressed."""
    import pyarrow
    from pyarrow.parquet import ParquetWriter

    names = list(map(str, labels))
    if len({"chain", "draw", *names}) < len(names) + 2:  # a column would hide another
        names = list(map(str, range(len(names))))
    with tempfile.TemporaryFile(dir=path.absolute().parent) as raw, written_whole(path) as file:
        writer: Any = None
        first, chains, dtype = 0, 0, np.dtype(np.uint8)
        try:
            for states in _grouped(blocks):
                raw.write(states.tobytes())
                draws, chains, dtype = len(states), states.shape[1], states.dtype
                places = np.indices((draws, chains)).reshape(2, -1)
                columns = [places[1], first + places[0], *states.reshape(draws * chains, -1).T]
                table = pyarrow.table([pyarrow.array(column) for column in columns], ["chain", "draw", *names])
                writer = writer or ParquetWriter(file, table.schema, compression="zstd")
                writer.write_table(table)
                first += draws
        finally:
            if writer is not None:
                writer.close()
        return np.memmap(raw, dtype=dtype, mode="r", shape=(count, chains, len(names)))


def _grouped(blocks: Iterable[UnsignedArray]) -> Iterator[UnsignedArray]:
    """Blocks put together, so that columns are long."""
    held: list[UnsignedArray] = []
    for block in blocks:
        held.append(block)
        rows, variables = sum(len(one) for one in held) * block.shape[1], block.shape[2]
        if rows >= max(_GROUP_ROWS, _GROUP_BYTES // max(variables * block.itemsize, 1)):
            yield np.concatenate(held)
            held = []
    if held:
        yield np.concatenate(held)


def mapped(path: Path) -> UnsignedArray:
    """(S, C, M) the states of an .npz file, read from it as they are looked at."""
    with zipfile.ZipFile(path) as archive:
        begin = archive.getinfo(MEMBER).header_offset
    with path.open("rb") as file:
        file.seek(begin)
        header = file.read(_LOCAL_HEADER)
        file.seek(begin + _LOCAL_HEADER + sum(int.from_bytes(header[k : k + 2], "little") for k in (26, 28)))
        np.lib.format.read_magic(file)
        shape, _, dtype = np.lib.format.read_array_header_2_0(file)
        return np.memmap(path, dtype=dtype, mode="r", offset=file.tell(), shape=shape)


FORMS: Mapping[str, Form] = {".npz": Form(_npz, copies=3), ".parquet": Form(_parquet, 4, ("pyarrow", "parquet"))}
"""By suffix."""
