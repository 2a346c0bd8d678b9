"""Whether a backend compiled what it ran, or found it compiled: in its process or on the disk."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from spinbench.inference import registry

# Environment variables with the folders of compiled code that processes share.
CACHE_VARIABLES = ("NUMBA_CACHE_DIR", "JAX_COMPILATION_CACHE_DIR")
# Environment variable that is set in a worker into whose folders of compiled code no other process writes.
OWN_CACHE_VARIABLE = "SPINBENCH_OWN_CACHE"


def has_own_cache() -> bool:
    """Whether this process alone writes into its folders of compiled code, so that new files there are its own."""
    return OWN_CACHE_VARIABLE in os.environ


@contextlib.contextmanager
def detect_compilation(backend: str, *, warm: bool) -> Iterator[dict[str, str]]:
    """Finds out whether the compile seconds of the cell inside are those of a compilation.

    "kind" becomes "fresh" (something was compiled), "cached" (read from the disk), "warm" (the process had it
    already) or "none" (a backend that does not compile).
    """
    compilation = {"kind": "none"}
    n_files_before = _count_cached_files()
    yield compilation
    if "compiled" not in registry.backend_class(backend).provides:
        # The backend does not compile: new files come from another process.
        return
    compilation["kind"] = "fresh"
    if _count_cached_files() == n_files_before:
        if warm:
            compilation["kind"] = "warm"
        elif n_files_before:
            compilation["kind"] = "cached"


def _count_cached_files() -> int:
    folders = (Path(os.environ[name]) for name in CACHE_VARIABLES if name in os.environ)
    return sum(len(files) for folder in folders for _, _, files in os.walk(folder))
