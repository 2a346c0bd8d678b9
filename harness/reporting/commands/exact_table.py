"""The table of exact answers, a CSV file that grows line by line: a run that is killed keeps what it had."""

from __future__ import annotations

import csv
import fcntl
import io
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from spinbench.errors import SpinbenchError
from spinbench.foundation import atomic
from spinbench.foundation.remarks import escape_cell

COLUMNS = (
    "model",
    "evidence",
    "status",
    "log_z",
    "log10_z",
    "solver",
    "width",
    "entries",
    "memory_gib",
    "slices",
    "seconds",
    "cpu_seconds",
    "cached",
    "marginals",
    "message",
    "settings",
    "budget_seconds",
    "max_gib",
    "digest",
)

Row = Mapping[str, str]
Key = tuple[str, ...]


class AnswerTable:
    """The rows of a file, which is locked against other runs.

    Args:
        path: of a file that is not there, or that has the columns of `COLUMNS`.

    Raises:
        SpinbenchError: the file cannot be written, another run writes to it, or it is another table.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: dict[Key, Row] = {}
        self._has_superseded_rows = False
        try:
            self._file = path.open("a+b", buffering=0)
        except OSError as error:
            raise self._write_error(error) from None
        try:
            self._lock()
            self._read()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> AnswerTable:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Rows that newer ones stand for are left out, in a file that takes the place of this one."""
        if self._has_superseded_rows:
            # If writing fails, superseded rows stay and the newest row counts.
            with suppress(OSError):
                atomic.write_bytes(
                    self._path, _csv_bytes([dict(zip(COLUMNS, COLUMNS, strict=True)), *self._rows.values()])
                )
        self._file.close()

    def find_row(self, model: str, digest: str, settings: str) -> Row | None:
        """The row of a model of that name and content, found with these settings."""
        return self._rows.get((escape_cell(model), digest, settings))

    def append(self, row: Row) -> None:
        """Write a row; it is in the file whole, or not at all.

        Raises:
            SpinbenchError: the file cannot be written, as where the disk is full.
        """
        self._write(_csv_bytes([row]))
        self._index_row(row)

    def _index_row(self, row: Row) -> None:
        key = (row["model"], row["digest"], row["settings"])
        previous_row = self._rows.get(key)
        self._has_superseded_rows |= previous_row is not None
        if previous_row is None or previous_row["status"] != "answered" or row["status"] == "answered":
            self._rows[key] = row

    def _lock(self) -> None:
        busy = SpinbenchError(f"{self._path}: another run writes to this file; name another one, or wait")
        # Not `flock`: children of a killed run inherit its lock until the system has ended them.
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            raise busy from None
        except OSError:
            # The file system has no locks.
            return
        # The other run has replaced the file since it was opened.
        if os.fstat(self._file.fileno()).st_ino != os.stat(self._path).st_ino:
            raise busy

    def _read(self) -> None:
        self._file.seek(0)
        data = self._file.read()
        header = _csv_bytes([dict(zip(COLUMNS, COLUMNS, strict=True))])
        # An empty file, or one of a run that was killed while writing the header.
        if header.startswith(data):
            self._file.truncate(0)
            try:
                self._write(header)
            except SpinbenchError:
                self._path.unlink(missing_ok=True)
                raise
            return
        try:
            text = data[: data.rfind(b"\n") + 1].decode("utf-8-sig")
            rows = list(csv.DictReader(io.StringIO(text, newline="")))
        except (UnicodeDecodeError, csv.Error):
            rows, text = [], ""
        if not text.startswith(",".join(COLUMNS)):
            raise SpinbenchError(f"{self._path}: this is no table of exact answers; name another file")
        # Removes a partial line, of a run that was killed while writing.
        self._file.truncate(data.rfind(b"\n") + 1)
        for row in rows:
            if all(isinstance(row.get(name), str) for name in COLUMNS):
                self._index_row({name: row[name] for name in COLUMNS})

    def _write(self, data: bytes) -> None:
        size = os.fstat(self._file.fileno()).st_size
        try:
            while data:
                data = data[self._file.write(data) or 0 :]
            os.fsync(self._file.fileno())
        except OSError as error:
            with suppress(OSError):
                self._file.truncate(size)
            raise self._write_error(error) from None

    def _write_error(self, error: OSError) -> SpinbenchError:
        return SpinbenchError(f"{self._path}: the file cannot be written ({error.strerror or error})")


def _csv_bytes(rows: Iterable[Row]) -> bytes:
    text = io.StringIO()
    csv.DictWriter(text, COLUMNS, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
