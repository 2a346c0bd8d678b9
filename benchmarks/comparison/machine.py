"""Where the comparison ran."""

from __future__ import annotations

import os
import platform
import resource
from pathlib import Path

from threadpoolctl import threadpool_info, threadpool_limits

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


def affinity() -> str:
    """The cores that this process may run on, for a cell of a table: "{1}"."""
    return "{" + ",".join(str(core) for core in sorted(environment.affinity())) + "}"


def threads() -> str:
    """Threads of BLAS and of Numba: "1, 1"; XLA takes as many as there are cores in the affinity."""
    import numba

    blas = max((int(pool["num_threads"]) for pool in threadpool_info() if pool["user_api"] == "blas"), default=1)
    return f"{blas}, {numba.get_num_threads()}"


def description() -> list[str]:
    """Lines about hardware and software."""
    seen = environment.describe()
    memory = "unknown"
    for line in Path("/proc/meminfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("MemTotal"):
            memory = f"{int(line.split()[1]) / 2**20:.0f} GiB"
    versions = ", ".join(f"{name} {version}" for name, version in seen["versions"].items())
    vectors = [flag for flag in ("avx2", "avx512f", "avx512_fp16", "neon") if flag in _flags()]
    return [
        f"processor: {seen['cpu']}, {seen['cores']} cores, {', '.join(vectors) or 'no known vector extensions'}",
        f"memory: {memory}; {platform.system()}; Python {seen['python']}",
        f"versions: {versions}",
    ]


def _flags() -> set[str]:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith(("flags", "Features")):
            return set(line.partition(":")[2].split())
    return set()
