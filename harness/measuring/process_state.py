"""What a process that measures may do, whether it has its core to itself and compiled, and what it answers."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinbench.foundation import platforms
from spinbench.foundation.remarks import format_count
from spinbench.inference import kernels, registry
from spinbench.measuring import environment
from spinbench.measuring.records import METRICS
from spinbench.metrics import registry as metrics

if TYPE_CHECKING:
    from spinbench.measuring.stages import Load

# Share of waiting in a run's wall time above which a process does not have its core to itself.
WAITING_SHARE = 0.05
# Environment variable of a worker whose folders of compiled code no other process writes into.
OWN_CACHE_VARIABLE = "SPINBENCH_OWN_CACHE"
# Parts of a record that the measuring process returns: status, error, traceback, metrics, result, reference,
# environment, stages, oversubscribed.
Answer = dict[str, Any]
# Largest number of characters of a message, and of the end of its traceback, in a record: an exception may contain an
# array.
MAX_CHARACTERS = 4000


def oversubscription_message(load: Load) -> str | None:
    """A sentence if more than a core's worth of threads had to share the core that a run was timed on."""
    cores = platforms.available_cores()
    for name in environment.THREAD_VARIABLES:
        value = os.environ.get(name, "1")
        if value.isdigit() and int(value) > cores:
            return f"{name}={value} asked for more threads than the {format_count(cores, 'core')} of its process"
    if load.waited_seconds is None or load.waited_seconds <= WAITING_SHARE * load.wall_seconds:
        return None
    share = load.waited_seconds / load.wall_seconds
    return f"its process waited for its core in {share:.0%} of the time, because other threads used it"


class ProcessState(NamedTuple):
    """Of this process.

    Attributes:
        limits: the system's on it, by name; none where the system has none.
        folder: the working directory; None: it is gone.
        file_mask: of new files.
        cores: that it may run on.
        arithmetic: what NumPy does where it fails.
    """

    limits: dict[str, tuple[int, int]]
    folder: str | None
    file_mask: int
    cores: set[int]
    arithmetic: Any


def current_process_state() -> ProcessState:
    """Of this process and, for arithmetic, of the thread that calls."""
    folder = None
    with contextlib.suppress(FileNotFoundError):
        folder = os.getcwd()
    # umask can only be read by setting it.
    mask = os.umask(0)
    os.umask(mask)
    return ProcessState(_resource_limits(), folder, mask, platforms.affinity(), np.geterr())


def _resource_limits() -> dict[str, tuple[int, int]]:
    try:
        import resource
    except ImportError:  # not on Unix
        return {}
    names = (name for name in dir(resource) if name.startswith("RLIMIT_"))
    return {name: resource.getrlimit(getattr(resource, name)) for name in names}


def has_own_cache() -> bool:
    """Whether this process alone writes into its folders of compiled code, so that new files there are its own."""
    return OWN_CACHE_VARIABLE in os.environ


@contextlib.contextmanager
def detect_compilation(backend: str, *, warm: bool) -> Iterator[dict[str, str]]:
    """Finds out whether the compile seconds of the cell inside are those of a compilation.

    "kind" becomes "fresh" (something was compiled), "cached" (read from the disk), "warm" (the process had it
    already) or "none" (a backend that does not compile).
    """
    compilation = {"kind": "none"}
    n_files_before = _count_cached_files()
    yield compilation
    if "compiled" not in registry.backend_class(backend).provides:
        # The backend does not compile: new files come from another process.
        return
    compilation["kind"] = "fresh"
    if _count_cached_files() == n_files_before:
        if warm:
            compilation["kind"] = "warm"
        elif n_files_before:
            compilation["kind"] = "cached"


def _count_cached_files() -> int:
    folders = (Path(os.environ[name]) for name in kernels.cache_variables() if name in os.environ)
    return sum(len(files) for folder in folders for _, _, files in os.walk(folder))


def failure_answer(sentence: str, details: str | None = None) -> Answer:
    """The answer of a cell that gave no result."""
    if len(sentence) > MAX_CHARACTERS:
        sentence = f"{sentence[:MAX_CHARACTERS]} … ({len(sentence)} characters)"
    details = details and details[-MAX_CHARACTERS:]
    return {
        "status": "failed",
        "error": sentence,
        "traceback": details,
        "metrics": {name: {"failed": sentence} for name in (*METRICS, *metrics.metric_names())},
        "result": None,
        "reference": None,
        "environment": {},
        "stages": {},
        "oversubscribed": None,
    }
