"""What a process that measures may do, and whether it has its core to itself."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinbench.foundation.remarks import format_count
from spinbench.measuring import environment

if TYPE_CHECKING:
    from spinbench.measuring.stages import Load

# Share of waiting in a run's wall time above which a process does not have its core to itself.
WAITING_SHARE = 0.05


def oversubscription_message(load: Load) -> str | None:
    """A sentence if more than a core's worth of threads had to share the core that a run was timed on."""
    cores = len(environment.affinity())
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
    return ProcessState(_resource_limits(), folder, mask, environment.affinity(), np.geterr())


def _resource_limits() -> dict[str, tuple[int, int]]:
    try:
        import resource
    except ImportError:  # not on Unix
        return {}
    names = (name for name in dir(resource) if name.startswith("RLIMIT_"))
    return {name: resource.getrlimit(getattr(resource, name)) for name in names}
