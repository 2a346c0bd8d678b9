"""Memory that is free, of the machine or of the container that the process is in."""

from __future__ import annotations

import os
import sys
from pathlib import Path

VARIABLE = "SPINBENCH_MAX_GIB"
"""Environment variable with the GiB that an exact answer may take where nothing else says. A sweep sets it for its
cells."""
CGROUPS = Path("/sys/fs/cgroup")
SHARE = 0.5
"""Of what is free: the rest is the page cache's, and that of other processes."""


def default_max_bytes() -> int:
    """Half of what is free, or what the environment says."""
    told = os.environ.get(VARIABLE, "")
    try:
        return max(int(float(told) * 2**30), 1)
    except (ValueError, OverflowError):
        return int(SHARE * available_bytes())


def available_bytes() -> int:
    """Of the machine, or what a container's limit (cgroups 1 and 2) leaves, whichever is less."""
    import psutil

    free = int(psutil.virtual_memory().available)
    return max(min([free, *_left_by_containers(), *_left_by_limits()]), 2**20)


def _left_by_limits() -> list[int]:
    """Bytes of addresses that the limits of this process leave (ulimit -v)."""
    if sys.platform == "win32":
        return []
    import resource

    import psutil

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return [] if limit == resource.RLIM_INFINITY else [limit - int(psutil.Process().memory_info().vms)]


def _left_by_containers() -> list[int]:
    """Bytes that the limits of this process's control group and of those around it leave."""
    left = []
    try:
        groups = Path("/proc/self/cgroup").read_text(encoding="ascii", errors="replace").split()
    except OSError:
        return []
    for group in groups:
        _, controllers, path = group.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes") if controllers else ("memory.max", "memory.current")
        place = CGROUPS / controllers / path.lstrip("/")
        for folder in (place, *place.parents):
            limit, used = (_number(folder / name) for name in names)
            if limit is not None and used is not None:
                left.append(limit - used)
            if folder == CGROUPS:
                break
    return left


def _number(file: Path) -> int | None:
    try:
        return int(file.read_text(encoding="ascii"))
    except (OSError, ValueError):  # "max": there is no limit
        return None
