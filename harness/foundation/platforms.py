"""On which operating systems spinbench measures, on how many cores, and in how many threads of BLAS."""

from __future__ import annotations

import contextlib
import os
import sys
from functools import lru_cache
from typing import TYPE_CHECKING

from spinbench.errors import UnavailableError

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


def check_supported() -> None:
    """Processes that measure are killed as a group when they are late or interrupted, which Windows does not have.

    Raises:
        UnavailableError: on Windows.
    """
    if sys.platform == "win32":
        raise UnavailableError("spinbench runs on Linux and macOS; on Windows, use it within WSL (wsl --install)")


def affinity() -> set[int]:
    """Logical processors that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return set(os.sched_getaffinity(0))
    return set(range(os.cpu_count() or 1))


def available_cores() -> int:
    """How many they are."""
    return len(affinity())


def one_blas_thread() -> contextlib.AbstractContextManager[object]:
    """Inside, BLAS works in one thread: a second one slows small products down."""
    context: contextlib.AbstractContextManager[object] = _controller(len(sys.modules)).limit(limits=1, user_api="blas")
    return context


@lru_cache(1)
def _controller(modules: int) -> ThreadpoolController:
    """Of the libraries that so many modules have loaded: to look for them takes longer than a small model."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
