"""Which project a folder holds, and where the one that is installed here has its source."""

from __future__ import annotations

import importlib.metadata
import json
import tomllib
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname


def name(folder: Path) -> str | None:
    """The project that a folder's pyproject.toml names, or None."""
    try:
        return str(tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def editable(project: str) -> Path | None:
    """The folder whose edits take effect at once, of a project that is installed so (`pip install -e`); else None.

    Source: "Recording the Direct URL Origin of installed distributions", the Python Packaging User Guide.
    """
    try:
        direct_url = json.loads(importlib.metadata.distribution(project).read_text("direct_url.json") or "{}")
        url = urlsplit(direct_url["url"]) if direct_url["dir_info"]["editable"] else None
    except (importlib.metadata.PackageNotFoundError, ValueError, KeyError, TypeError):
        return None
    return None if url is None or url.scheme != "file" else Path(url2pathname(url.path)).resolve()
