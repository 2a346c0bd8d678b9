"""Where and with what a cell was measured: versions, processor, threads, and the state of the code."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import math
import os
import platform
import socket
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from spinbench.errors import HistoryError
from spinbench.foundation import git, platforms, plugins
from spinbench.inference import kernels, registry
from spinbench.reference import memory

# Environment variable with the repository whose commits are measured; the default is that of the working folder.
HISTORY_VARIABLE = "SPINBENCH_HISTORY"
NO_HISTORY = (
    f"there is no history here, no {git.CONFIG} in this folder or above; go to one, name it in {HISTORY_VARIABLE}, "
    "or begin one with: spinbench init FOLDER"
)

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)
PACKAGE = Path(__file__).resolve().parents[1]
_PACKAGES = (plugins.OWN, "numpy", "scipy")


def describe() -> dict[str, Any]:
    """Of this process; imports none of the packages whose versions it tells."""
    return {
        "python": platform.python_version(),
        "implementation": sys.implementation.name,
        "versions": _package_versions(),
        "cpu": _processor_name(),
        "cores": os.cpu_count(),
        "affinity": sorted(platforms.affinity()),
        "gpus": list(platforms.gpus()),
        "threads": {name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ},
        # Memory limit of exact answers that the sweep has set for its processes.
        "max_gib": os.environ.get(memory.VARIABLE),
        "platform": platform.platform(),
        "hostname": socket.gethostname(),
    }


def timing_cores() -> dict[int, int]:
    """Physical cores to time on: the lowest logical processor of each, and the one of its processors to bind to.

    Two logical processors of a core share its arithmetic, so that cells timed on both would slow each other down. A
    container's quota of processor time bounds how many can be busy at once; the first core, which usually serves the
    machine's interrupts, is left out first.
    """
    processors: dict[int, int] = {}
    for processor in sorted(platforms.affinity()):
        processors.setdefault(_first_sibling(processor), processor)
    count = max(1, int(min(len(processors), _cpu_quota())))
    return dict(list(processors.items())[-count:])


def _first_sibling(processor: int) -> int:
    """The lowest logical processor of the same core; "0,64" and "0-1" are lists of two siblings."""
    path = Path(f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list")
    try:
        return int(path.read_text(encoding="ascii").replace("-", ",").split(",")[0])
    except (OSError, ValueError):
        return processor


def _cpu_quota() -> float:
    """Processors' worth of time that the control group allows; infinite: no bound, or none that is known."""
    group = Path("/sys/fs/cgroup")
    for names in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        try:
            limit, period = " ".join((group / name).read_text(encoding="ascii") for name in names).split()
            return float({"max": "inf", "-1": "inf"}.get(limit, limit)) / int(period)
        except (OSError, ValueError):
            continue
    return math.inf


def history_root() -> Path | None:
    """The repository whose commits are measured and whose history results enter, or None.

    It is the one that SPINBENCH_HISTORY names, or the one that one stands in, if it holds asv.conf.json.
    """
    if named := os.environ.get(HISTORY_VARIABLE):
        return Path(named).resolve()
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if (folder / git.CONFIG).is_file()), None)


def require_history_root() -> Path:
    """The same where there has to be one.

    Raises:
        HistoryError: there is none.
    """
    root = history_root()
    if root is None:
        raise HistoryError(NO_HISTORY)
    return root


def source_checkout() -> Path | None:
    """The checkout that this package's source stands in, or None (an installed wheel)."""
    checkout = Path(__file__).resolve().parents[2]
    if (checkout / ".git").exists() and (checkout / "pyproject.toml").exists():
        return checkout
    return None


def code_state() -> dict[str, Any]:
    """That of the repository whose commits are measured; without one, of spinbench's own.

    Keys: those of `git_state`, and "spinbench", what spinbench itself was, where another's commits are measured;
    "elsewhere", the folder whose code runs, where the repository holds the same project and its own code does not.
    """
    checkout, measured = source_checkout(), history_root()
    if measured is None or measured == checkout:
        return git_state(checkout)
    source_folder = foreign_source_folder(measured)
    return {
        **git_state(measured),
        "spinbench": spinbench_state(),
        "elsewhere": source_folder and str(source_folder),
    }


def foreign_source_folder(repository: Path) -> Path | None:
    """The folder that the project of a repository is imported from, if it is not that one: another clone, say."""
    project = project_name(repository)
    if project is None or (source_folder := editable_source(project)) is None:
        return None
    if source_folder.is_relative_to(repository.resolve()):
        return None
    return source_folder


def code_state_since(before: Mapping[str, Any]) -> dict[str, Any]:
    """The state of the code that was in the state `before`; "dirty" where it is in another one now.

    What was imported meanwhile may then be of neither.
    """
    now = code_state()
    if any(now.get(key) != before.get(key) for key in now.keys() | before.keys()):
        return {**now, "dirty": True}
    return dict(before)


def spinbench_state() -> str:
    """Version of spinbench itself with commit and changes, or, of an installed wheel, with a hash of its files."""
    checkout = source_checkout()
    state = git_state(checkout)
    if checkout is None:
        state["diff"] = _cached_source_digest(PACKAGE)
    parts = (_package_versions().get("spinbench"), state["commit"], state["diff"])
    return " ".join(map(str, filter(None, parts)))


def source_digest(home: Path) -> str:
    """Hash of the names and contents of the files of a package, or of a module's."""
    content = hashlib.sha256()
    for file in _source_files(home):
        content.update(file.relative_to(home.parent).as_posix().encode() + b"\0")
        try:
            content.update(hashlib.sha256(file.read_bytes()).digest())
        except OSError:
            continue
    return content.hexdigest()[:16]


_cached_source_digest = cache(source_digest)


def _source_files(home: Path) -> Iterator[Path]:
    if home.is_file():
        yield home
        return
    visited: set[str] = set()
    paths = []
    for folder, inner, files in os.walk(home, followlinks=True):
        inner[:] = [name for name in inner if name != "__pycache__"]
        if (real := os.path.realpath(folder)) in visited:  # links may go in circles
            inner.clear()
            continue
        visited.add(real)
        paths += [Path(folder) / name for name in files]
    yield from sorted(file for file in paths if file.is_file())


def git_state(checkout: Path | None) -> dict[str, object]:
    """The commit, whether tracked files differ from it, and a hash of the difference; None where git cannot tell.

    Keys: "commit", "dirty", "diff". Untracked files do not count: what registers a plugin is a tracked file.
    """
    state: dict[str, object] = {"commit": None, "dirty": None, "diff": None}
    if checkout is None:
        return state
    with suppress(OSError):  # git may not be installed
        head = git.ask(checkout, "rev-parse", "--verify", "HEAD")
        if not head.returncode:
            state["commit"] = head.stdout.decode().strip()
            difference = git.difference(checkout)
            if difference is not None:
                state["dirty"] = bool(difference)
            if difference:
                state["diff"] = hashlib.sha256(difference).hexdigest()[:16]
    return state


@plugins.cache_until_forget
def _package_versions() -> dict[str, str]:
    versions, backends = {}, dict.fromkeys([*kernels.backends_by_preference(), *registry.names("backends")])
    packages = [package for name in backends for package in kernels.backend_profile(name).packages]
    for name in dict.fromkeys([*_PACKAGES, *packages, *_plugin_requirements()]):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def _plugin_requirements() -> list[str]:
    """Distributions that others' plugins require: what these compute, and how fast, changes with them."""
    owners = {plugins.distribution(point): point.dist for point in plugins.every() if point.dist is not None}
    owners.pop(plugins.OWN, None)
    return sorted({name for owner in owners.values() for name in plugins.requirement_names(owner)} - {plugins.OWN})


@cache
def _processor_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def project_name(folder: Path) -> str | None:
    """The project that a folder's pyproject.toml names, or None."""
    try:
        return str(tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def editable_source(project: str) -> Path | None:
    """The folder whose edits take effect at once, of a project that is installed so (`pip install -e`); else None.

    Source: "Recording the Direct URL Origin of installed distributions", the Python Packaging User Guide.
    """
    try:
        direct_url = json.loads(importlib.metadata.distribution(project).read_text("direct_url.json") or "{}")
        url = None
        if direct_url["dir_info"]["editable"]:
            url = urlsplit(direct_url["url"])
    except (importlib.metadata.PackageNotFoundError, ValueError, KeyError, TypeError):
        return None
    if url is None or url.scheme != "file":
        return None
    return Path(url2pathname(url.path)).resolve()
