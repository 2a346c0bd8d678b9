"""Exact answers on disk, one small .npz file (no pickle) for each model and method.

The folder is below that of all that can be made again (`foundation.folders`). Files are replaced atomically and hold a
checksum over their contents and the model; one that cannot be read, or whose checksum is another, is ignored and
written anew. A folder that cannot be written costs only time. What
writers that were killed have left is removed by a later one.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from spinbench.foundation.folders import cache_folder
from spinbench.models import Model
from spinbench.reference.answer import ExactAnswer

VERSION = 3  # raise it whenever a solver's answers change
ABANDONED = 86_400.0
"""Seconds after which a temporary file counts as left behind; to write one takes less than one."""


def folder() -> Path:
    """Where exact answers are kept."""
    return cache_folder() / "exact"


def path(model: Model, method: str) -> Path:
    """The file of one answer."""
    key = hashlib.sha256(f"{VERSION}/{method}/{model.content_hash}".encode()).hexdigest()
    return folder() / f"{key}.npz"


def load(model: Model, method: str, max_bytes: int, *, marginals: bool) -> ExactAnswer | None:
    """The stored answer, or None if there is none that is whole and has what is wanted.

    One that left marginals open is wanted by those alone who allow no more memory than it had.
    """
    try:
        with np.load(path(model, method), allow_pickle=False) as file:
            if str(file["checksum"]) != _checksum(model, {name: file[name] for name in file.files}):
                return None
            log_z, width, seconds = (float(file[key]) for key in ("log_z", "width", "seconds"))
            solver, backend = str(file["method"]), str(file["backend"])
            flat = np.asarray(file["marginals"], dtype=np.float64)
            had = int(file["max_bytes"])
    except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile):
        return None
    cards = model.cardinalities
    if (marginals and flat.size != sum(cards)) or (max_bytes > had and bool(np.isnan(flat).any())):
        return None
    return ExactAnswer(
        log_z,
        flat if marginals else None,
        cards,
        solver,
        None if width < 0 else int(width),
        seconds,
        backend=backend,
        cached=True,
    )


def save(model: Model, method: str, answer: ExactAnswer, max_bytes: int) -> None:
    """Stores an answer that was found in so much memory; does nothing where the folder cannot be written."""
    content: dict[str, Any] = {
        "log_z": np.float64(answer.log_z),
        "width": np.float64(-1 if answer.width is None else answer.width),
        "seconds": np.float64(answer.seconds),
        "method": np.str_(answer.method),
        "backend": np.str_(answer.backend),
        "max_bytes": np.float64(max_bytes),
        "marginals": np.empty(0) if answer.flat is None else answer.flat,
    }
    target = path(model, method)
    with contextlib.suppress(OSError):
        target.parent.mkdir(parents=True, exist_ok=True)
        _clear(target.parent)
        handle, name = tempfile.mkstemp(dir=target.parent, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                np.savez(file, **content, checksum=np.str_(_checksum(model, content)))
            os.replace(name, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise


def _checksum(model: Model, content: Mapping[str, Any]) -> str:
    """Over all that a file holds but the checksum itself, and what it is the answer for."""
    digest = hashlib.sha256(model.content_hash.encode())
    for name in sorted(content.keys() - {"checksum"}):
        digest.update(name.encode() + np.asarray(content[name]).tobytes())
    return digest.hexdigest()


def _clear(chosen: Path) -> None:
    """Remove temporary files of writers that were killed."""
    for fragment in chosen.glob("*.tmp"):
        with contextlib.suppress(OSError):  # another writer was faster
            if time.time() - fragment.stat().st_mtime > ABANDONED:
                fragment.unlink()
