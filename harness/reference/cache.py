"""Exact answers on disk, one small .npz file (no pickle) for each model and method.

The folder is $SPINBENCH_CACHE_DIR, or the user's cache folder. Files are replaced atomically; one that cannot be
read, or does not fit the model, is ignored and written anew. A folder that cannot be written costs only time. What
writers that were killed have left is removed by a later one.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
import zipfile
from pathlib import Path

import numpy as np

from spinbench.models import Model
from spinbench.reference.answer import ExactAnswer

VERSION = 2  # raise it whenever a solver's answers change
ABANDONED = 86_400.0
"""Seconds after which a temporary file counts as left behind; to write one takes less than one."""


def folder() -> Path:
    """Where exact answers are kept."""
    if chosen := os.environ.get("SPINBENCH_CACHE_DIR"):
        return Path(chosen) / "exact"
    import platformdirs

    return Path(platformdirs.user_cache_dir("spinbench", appauthor=False)) / "exact"


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
            log_z, width, seconds = (float(file[key]) for key in ("log_z", "width", "seconds"))
            solver, backend = str(file["method"]), str(file["backend"])
            flat = np.asarray(file["marginals"], dtype=np.float64)
            had = int(file["max_bytes"]) if "max_bytes" in file else 0
    except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile):
        return None
    cards = model.cardinalities
    if not np.isfinite(log_z) or (marginals and flat.size != sum(cards)):
        return None
    answer = ExactAnswer(
        log_z,
        flat if marginals else None,
        cards,
        solver,
        None if width < 0 else int(width),
        seconds,
        backend=backend,
        cached=True,
    )
    left_open = [max_bytes <= had and bool(np.isnan(vector).all()) for vector in answer.marginals]
    for vector, is_open in zip(answer.marginals, left_open, strict=True):
        if not is_open and (not abs(vector.sum() - 1.0) < 1e-9 or vector.min() < 0):
            return None
    return answer


def save(model: Model, method: str, answer: ExactAnswer, max_bytes: int) -> None:
    """Stores an answer that was found in so much memory; does nothing where the folder cannot be written."""
    target = path(model, method)
    with contextlib.suppress(OSError):
        target.parent.mkdir(parents=True, exist_ok=True)
        _clear(target.parent)
        handle, name = tempfile.mkstemp(dir=target.parent, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                np.savez(
                    file,
                    log_z=np.float64(answer.log_z),
                    width=np.float64(-1 if answer.width is None else answer.width),
                    seconds=np.float64(answer.seconds),
                    method=np.str_(answer.method),
                    backend=np.str_(answer.backend),
                    max_bytes=np.float64(max_bytes),
                    marginals=np.empty(0) if answer.flat is None else answer.flat,
                )
            os.replace(name, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise


def _clear(chosen: Path) -> None:
    """Remove temporary files of writers that were killed."""
    for fragment in chosen.glob("*.tmp"):
        with contextlib.suppress(OSError):  # another writer was faster
            if time.time() - fragment.stat().st_mtime > ABANDONED:
                fragment.unlink()
