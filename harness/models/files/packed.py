"""Files that are packed by gzip, bzip2 or xz, which the way they begin tells."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable
from functools import partial
from typing import BinaryIO, Protocol

# Compression by suffix of a file's name.
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": partial(gzip.compress, mtime=0),
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}
# Memory limit of unpacking an .xz file: files of `xz -9` need 65 MiB, but a file of 100 bytes may demand 1.5 GiB.
MAX_XZ_BYTES = 2**27
# Errors of unpacking a damaged file.
DAMAGED = (gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError)


class Readable(Protocol):
    """What bytes are read from."""

    def read(self, num_bytes: int, /) -> bytes:
        """At most so many bytes; none at the end."""


class _XZReader:
    """An .xz file of one stream, unpacked within `MAX_XZ_BYTES` of memory, which Python's own reader does not bound."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._unpacker = file, lzma.LZMADecompressor(lzma.FORMAT_XZ, MAX_XZ_BYTES)

    def read(self, num_bytes: int) -> bytes:
        """At most so many bytes; none at the end."""
        while not self._unpacker.eof:
            packed = self._file.read(2**16) if self._unpacker.needs_input else b""
            if self._unpacker.needs_input and not packed:
                raise EOFError
            if data := self._unpacker.decompress(packed, num_bytes):
                return data
        if self._unpacker.unused_data or self._file.read(1):
            raise lzma.LZMAError("several streams")
        return b""


# Readers by the first bytes of a file.
_READERS: dict[bytes, Callable[[BinaryIO], Readable]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": _XZReader,
}


def open_unpacked(file: BinaryIO) -> Readable:
    """The file, or what unpacks it."""
    head = file.peek(6)  # type: ignore[attr-defined]
    return next((make(file) for magic, make in _READERS.items() if head.startswith(magic)), file)
