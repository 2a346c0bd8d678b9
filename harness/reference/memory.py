"""Memory that is free, of the machine or of the container that the process is in."""

from __future__ import annotations

import math
import os
import sys
import time
from functools import lru_cache
from pathlib import Path

from spinbench.errors import SpinbenchError

# Environment variable with the default memory limit of an exact answer in GiB; a sweep sets it for its cells.
VARIABLE = "SPINBENCH_MAX_GIB"
# Larger than the memory of any machine.
MAX_GIB = 2.0**33
OWN_GROUPS = Path("/proc/self/cgroup")
CGROUPS = Path("/sys/fs/cgroup")
# Share of the free memory: the rest is left to the page cache and to other processes.
SHARE = 0.5


def allowed_bytes(max_bytes: int | None) -> int:
    """What a caller allows, or the default; errors as `default_max_bytes`."""
    if max_bytes is None:
        return default_max_bytes()
    return max_bytes


def default_max_bytes() -> int:
    """Half of what is free, or what the environment says.

    Raises:
        SpinbenchError: the environment says what is no number of GiB.
    """
    setting = os.environ.get(VARIABLE)
    if setting is None:
        return int(SHARE * available_bytes())
    try:
        gib = float(setting)
    except ValueError:
        gib = math.nan
    if not 0 < gib <= MAX_GIB:
        raise SpinbenchError(f"{VARIABLE}={setting!r} is set; a positive number of GiB is needed, 2^33 at most")
    return max(int(gib * 2**30), 1)


def available_bytes() -> int:
    """Of the machine, or what a container's limit (cgroups 1 and 2) leaves, whichever is less; read once a second."""
    return _available_bytes(int(time.monotonic()))


@lru_cache(maxsize=1)
def _available_bytes(second: int) -> int:
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
    if limit == resource.RLIM_INFINITY:
        return []
    return [limit - int(psutil.Process().memory_info().vms)]


def _left_by_containers() -> list[int]:
    """Bytes that the limits of this process's control group and of those around it leave."""
    left = []
    try:
        groups = OWN_GROUPS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    for group in groups:
        _, controllers, path = group.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        names = ("memory.max", "memory.current")
        if controllers:
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
        place = CGROUPS / controllers / path.lstrip("/")
        for folder in (place, *place.parents):
            limit, used = (_number(folder / name) for name in names)
            if limit is not None and used is not None:
                left.append(limit - used + _page_cache_bytes(folder / "memory.stat"))
            if folder == CGROUPS:
                break
    return left


def _page_cache_bytes(file: Path) -> int:
    """Bytes of files that a group counts as used and gives back when they are needed."""
    try:
        counts = dict(line.split() for line in file.read_text(encoding="ascii").splitlines())
        return int(counts.get("total_inactive_file", counts.get("inactive_file", 0)))
    except (OSError, ValueError):
        return 0


def _number(file: Path) -> int | None:
    try:
        return int(file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        # The value "max" stands for no limit.
        return None
