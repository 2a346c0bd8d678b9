"""Where spinbench keeps what can be made again: exact answers, compiled code, downloads."""

from __future__ import annotations

import os
import tempfile
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
