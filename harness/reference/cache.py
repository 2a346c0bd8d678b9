"""Exact answers on disk, one small file for each model and method.

A file is a checksum over the model and all that follows, a line of JSON, and the marginals: to open an .npz takes
longer than to solve a small model. The folder is below that of all that can be made again (`foundation.folders`). Files
are replaced atomically; one that cannot be read, or whose checksum is another, is ignored and written anew. A folder
that cannot be written costs only time. What writers that were killed have left is removed by a later one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from spinbench.foundation import atomic
from spinbench.foundation.folders import cache_folder
from spinbench.models import Model
from spinbench.reference.answer import Cost, ExactAnswer
from spinbench.reference.choice import Limits

# To be raised whenever a solver's answers change.
VERSION = 7
# Little-endian on every machine.
NUMBERS = np.dtype("<f8")


def folder() -> Path:
    """Where exact answers are kept."""
    return cache_folder() / "exact"


def path(model: Model, method: str) -> Path:
    """The file of one answer."""
    key = hashlib.sha256(f"{VERSION}/{method}/{model.content_hash}".encode()).hexdigest()
    return folder() / f"{key}.answer"


def load(model: Model, method: str, limits: Limits, *, marginals: bool) -> ExactAnswer | None:
    """The stored answer, or None if there is none that is whole and has what is wanted.

    One that left marginals open is wanted by those alone who allow no more memory and time than it had.
    """
    try:
        data = path(model, method).read_bytes()
    except OSError:
        return None
    checksum, _, content = data.partition(b"\n")
    if checksum != _checksum(model, content):
        return None
    header, _, numbers = content.partition(b"\n")
    told_of: dict[str, Any] = json.loads(header)
    flat = np.frombuffer(numbers, dtype=NUMBERS).astype(np.float64)
    cards, cost = model.cardinalities, told_of["cost"]
    more = limits.max_bytes > told_of["max_bytes"] or limits.seconds > told_of["limit_seconds"]
    if (marginals and flat.size != sum(cards)) or (more and bool(np.isnan(flat).any())):
        return None
    return ExactAnswer(
        told_of["log_z"],
        flat if marginals else None,
        cards,
        told_of["method"],
        told_of["width"],
        told_of["seconds"],
        backend=told_of["backend"],
        cached=True,
        cost=cost and Cost(**cost | {"order": cost["order"] and tuple(cost["order"])}),
    )


def save(model: Model, method: str, answer: ExactAnswer, limits: Limits) -> None:
    """Stores an answer that was found within limits; does nothing where the folder cannot be written."""
    header = {
        "log_z": float(answer.log_z),
        "width": None if answer.width is None else int(answer.width),
        "seconds": float(answer.seconds),
        "method": answer.method,
        "backend": answer.backend,
        "max_bytes": limits.max_bytes,
        "limit_seconds": limits.seconds,
        "cost": answer.cost,
    }
    numbers = b"" if answer.flat is None else answer.flat.astype(NUMBERS).tobytes()
    content = json.dumps(header, default=vars).encode() + b"\n" + numbers
    target = path(model, method)
    with contextlib.suppress(OSError):
        target.parent.mkdir(parents=True, exist_ok=True)
        atomic.clear_fragments(target.parent)
        atomic.write_bytes(target, _checksum(model, content) + b"\n" + content, sync=False)  # has a checksum


def _checksum(model: Model, content: bytes) -> bytes:
    """Over what follows it in a file, and what that is the answer for."""
    return hashlib.sha256(model.content_hash.encode() + content).hexdigest().encode()
