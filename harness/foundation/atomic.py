"""Files that a reader sees whole or not at all, whenever the writer is killed, and whether files can be written."""

from __future__ import annotations

import json
import os
import socket
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from spinbench.errors import SpinbenchError

# Seconds after which a temporary file of another host counts as abandoned: its process cannot be checked from here.
FOREIGN_AGE = 86_400.0


def check_outputs(outputs: Sequence[Path], suffixes: Sequence[str]) -> None:
    """Raises SpinbenchError, before the time is spent, where an answer could not be written to one of these files."""
    for path in outputs:
        if path.suffix.lower() not in [suffix.lower() for suffix in suffixes]:
            raise SpinbenchError(f"--output {path} was given; the suffix has to be {' or '.join(suffixes)}")
        if not path.absolute().parent.is_dir():
            raise SpinbenchError(f"--output {path} was given; there is no such folder")


def write_json(path: Path, value: object) -> None:
    """Write a JSON file through a temporary neighbour; missing folders are made.

    Raises:
        ValueError: `value` holds a NaN or an infinity, which JSON has not.
        OSError: the folder cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, json.dumps(value, allow_nan=False).encode())


def write_bytes(path: Path, data: bytes, *, sync: bool = True) -> None:
    """Write a file through a temporary neighbour.

    Args:
        path: of the file.
        data: what it holds.
        sync: whether the disk has it before the call ends, which takes milliseconds.

    Raises:
        OSError: the folder cannot be written, or is not there.
    """
    with open_atomically(path, sync=sync) as file:
        file.write(data)


@contextmanager
def open_atomically(path: Path, *, sync: bool = True) -> Iterator[BinaryIO]:
    """A temporary neighbour, which becomes the file where nothing is raised.

    Raises:
        OSError: the folder cannot be written, or is not there.
    """
    # The suffix is not .json, since readers list *.json while writers are at work. The name says which process wrote
    # the file.
    prefix = f".{path.name}.{_host()}.{os.getpid()}."
    temporary = path.parent / f"{prefix}{uuid.uuid4().hex}.tmp"
    try:
        # Opened with the default mode, so that the umask decides who may read the file.
        with temporary.open("xb") as file:
            yield file
            file.flush()
            if sync:
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def clear_fragments(folder: Path) -> int:
    """Remove the temporary files that killed writers left in a folder; those of living writers stay.

    Returns:
        How many were removed.
    """
    removed = 0
    for path in folder.glob(".*.tmp"):
        with suppress(OSError):
            if _is_abandoned(path):
                path.unlink()
                removed += 1
    return removed


def _is_abandoned(path: Path) -> bool:
    host, process = ([*path.name.split(".")[-4:-2], "", ""])[:2]
    if host == _host() and process.isdigit():
        return not alive(int(process))
    return time.time() - path.stat().st_mtime > FOREIGN_AGE


def alive(process: int) -> bool:
    """Whether a process of this machine exists; one that is dead and not yet buried does."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it belongs to another user
        return True
    return True


def _host() -> str:
    """Without dots, which part the names of temporary files."""
    return socket.gethostname().replace(".", "_")
