"""Where benchmarks run: cores, memory, and the lock under which they are timed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
from collections.abc import Iterator
from pathlib import Path

from threadpoolctl import threadpool_limits

from spinbench.measuring import environment

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def pin(cores: int) -> None:
    """Let this process and its threads run on so many of its cores, and ask libraries for as many threads.

    Libraries read the variables and count cores when they are imported; BLAS, which a plugin of pytest may have
    imported, is told apart.
    """
    allowed = sorted(os.sched_getaffinity(0))[-cores:]  # the first core serves interrupts
    os.sched_setaffinity(0, allowed)
    for name in THREADS:
        os.environ.setdefault(name, str(len(allowed)))
    threadpool_limits(len(allowed), "blas")


def limit_memory(gib: float) -> None:
    """A library that wants more gets MemoryError in place of the machine's last page."""
    resource.setrlimit(resource.RLIMIT_AS, (int(gib * 2**30), resource.getrlimit(resource.RLIMIT_AS)[1]))


def description() -> str:
    """The processor and the versions, a line."""
    seen = environment.describe()
    versions = ", ".join(f"{name} {version}" for name, version in seen["versions"].items())
    return f"{seen['cpu']}, {seen['cores']} cores; Python {seen['python']}; {versions}"


@contextlib.contextmanager
def alone(lock: Path | None) -> Iterator[None]:
    """Holds `lock` inside, for machines on which other measurements wait for it, too."""
    if lock is None:
        yield
        return
    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
