"""Where and with what a cell was measured: versions, processor, threads, and the state of the code."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import socket
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

ROOT_VARIABLE = "SPINBENCH_ROOT"
"""Environment variable with the checkout whose commit is measured; by default the one that spinbench is run from."""

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)
_PACKAGES = ("spinbench", "numpy", "scipy", "numba", "llvmlite", "jax", "jaxlib")


def describe() -> dict[str, Any]:
    """Of this process; imports none of the packages whose versions it tells."""
    return {
        "python": platform.python_version(),
        "implementation": sys.implementation.name,
        "versions": _versions(),
        "cpu": _processor(),
        "cores": os.cpu_count(),
        "affinity": sorted(affinity()),
        "threads": {name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ},
        "platform": platform.platform(),
        "hostname": socket.gethostname(),
    }


def affinity() -> set[int]:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return set(os.sched_getaffinity(0))
    return set(range(os.cpu_count() or 1))


def root() -> Path | None:
    """The checkout that this package's source stands in, or None (an installed wheel)."""
    if named := os.environ.get(ROOT_VARIABLE):
        return Path(named).resolve()
    checkout = Path(__file__).resolve().parents[1]
    return checkout if (checkout / ".git").exists() and (checkout / "pyproject.toml").exists() else None


def git_state(checkout: Path | None) -> dict[str, Any]:
    """The commit, whether tracked files differ from it, and a hash of the difference; None where there is no git.

    Keys: "commit", "dirty", "diff". Untracked files do not count: what registers a plugin is a tracked file.
    """
    commit = _git(checkout, "rev-parse", "--verify", "HEAD")
    if commit is None:
        return {"commit": None, "dirty": None, "diff": None}
    difference = _git(checkout, "diff", "HEAD", "--no-ext-diff", "--binary") or b""
    return {
        "commit": commit.decode().strip(),
        "dirty": bool(difference),
        "diff": hashlib.sha256(difference).hexdigest()[:16] if difference else None,
    }


def _git(checkout: Path | None, *arguments: str) -> bytes | None:
    if checkout is None:
        return None
    try:
        done = subprocess.run(["git", "-C", str(checkout), *arguments], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout


@cache
def _versions() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


@cache
def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
