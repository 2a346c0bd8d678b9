"""Where spinbench keeps what can be made again: exact answers, compiled code, downloads."""

from __future__ import annotations

import hashlib
import os
import tempfile
from functools import cache
from pathlib import Path


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
    return cache_folder() / "compiled" / f"numba-{digest.hexdigest()[:16]}"
