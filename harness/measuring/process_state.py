"""What a cell may change in its process for good, so that the cells after it would be measured otherwise."""

from __future__ import annotations

import contextlib
import os
from typing import Any, NamedTuple

import numpy as np

from spinbench.measuring import environment


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
    mask = os.umask(0)  # there is no way to read it alone
    os.umask(mask)
    return ProcessState(_resource_limits(), folder, mask, environment.affinity(), np.geterr())


def _resource_limits() -> dict[str, tuple[int, int]]:
    try:
        import resource
    except ImportError:  # not a Unix
        return {}
    names = (name for name in dir(resource) if name.startswith("RLIMIT_"))
    return {name: resource.getrlimit(getattr(resource, name)) for name in names}
