"""Where spinbench keeps what can be made again: exact answers, compiled code, downloads."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import time
from functools import cache
from pathlib import Path

KEPT = 3
"""Folders of compiled kernels that stay beside the one in use, however old they are."""
UNUSED_SECONDS = 86_400.0
"""Others go when no process has started with them for so long."""

_NUMBA = "numba-"


def cache_folder() -> Path:
    """$SPINBENCH_CACHE_DIR, or the user's cache folder; a temporary one where that cannot be written."""
    chosen = os.environ.get("SPINBENCH_CACHE_DIR")
    if not chosen:
        import platformdirs

        chosen = platformdirs.user_cache_dir("spinbench", appauthor=False)
    folder = Path(chosen)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return Path(tempfile.gettempdir()) / f"spinbench-cache-{os.getuid() if hasattr(os, 'getuid') else 0}"


@cache
def numba_folder() -> Path:
    """For machine code of the Numba kernels as they stand.

    Numba recompiles a function when the file that holds it changes, but not when a function that it calls, in another
    file, does: after an update old code would be measured. So each state of the kernels' sources has its own folder.
    """
    from spinbench.backends import numba as kernels

    digest = hashlib.sha256()
    for source in sorted(Path(kernels.__file__).parent.glob("*.py")):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    folder = cache_folder() / "compiled" / f"{_NUMBA}{digest.hexdigest()[:16]}"
    with contextlib.suppress(OSError):  # it can do without
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        _prune(folder.parent, keep=folder)
    return folder


def _prune(folder: Path, keep: Path) -> None:
    """Remove compiled kernels of other states of the sources, but for those last used, by other checkouts perhaps."""
    rivals = [(path.stat().st_mtime, path) for path in folder.glob(f"{_NUMBA}*") if path.name != keep.name]
    for used, path in sorted(rivals, reverse=True)[KEPT:]:
        if time.time() - used > UNUSED_SECONDS:
            # under another name first, so that no process finds half of it
            doomed = path.with_name(f".{path.name}.{os.getpid()}")
            path.rename(doomed)
            shutil.rmtree(doomed, ignore_errors=True)
