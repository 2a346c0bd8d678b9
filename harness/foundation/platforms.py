"""On which operating systems spinbench measures, on which cores and GPUs, and in how many threads of BLAS."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from spinbench.errors import UnavailableError

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

# Longest wait for the list of GPUs: a driver that loads takes a few seconds.
GPU_QUERY_SECONDS = 10.0


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


@cache
def gpus() -> tuple[str, ...]:
    """Card, driver and memory of each GPU that NVIDIA's own tool lists."""
    command = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=GPU_QUERY_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return ()
    listed = [[part.strip() for part in line.split(",")] for line in done.stdout.splitlines()]
    return tuple(f"{name} ({memory}, driver {driver})" for name, driver, memory in listed)


def one_blas_thread() -> contextlib.AbstractContextManager[object]:
    """Inside, BLAS works in one thread: a second one slows small products down."""
    context: contextlib.AbstractContextManager[object] = _controller(len(sys.modules)).limit(limits=1, user_api="blas")
    return context


@lru_cache(1)
def _controller(modules: int) -> ThreadpoolController:
    """Of the libraries that so many modules have loaded: to look for them takes longer than a small model."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
