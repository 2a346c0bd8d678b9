"""On which operating systems spinbench measures, and on how many cores."""

from __future__ import annotations

import os
import sys

from spinbench.errors import UnavailableError


def check_supported() -> None:
    """Processes that measure are killed as a group when they are late or interrupted, which Windows does not have.

    Raises:
        UnavailableError: on Windows.
    """
    if sys.platform == "win32":
        raise UnavailableError("spinbench runs on Linux and macOS; on Windows, use it within WSL (wsl --install)")


def available_cores() -> int:
    """Logical processors that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
