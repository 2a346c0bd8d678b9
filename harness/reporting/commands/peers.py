"""`spinbench peers`: the other libraries to compare with, and how they come here."""

from __future__ import annotations

import importlib
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata

from spinbench.api import Backend
from spinbench.errors import SpinbenchError
from spinbench.foundation.names import unknown_name
from spinbench.inference import kernels, registry
from spinbench.reporting import listing
from spinbench.reporting.display import console

_PIP = "pip install "
_OF_PEERS = re.compile(r"([\w.-]+)[^;]*;.*extra == ['\"]peers['\"]")


def names() -> list[str]:
    """Of all peers, installed or not."""
    return [name for name in registry.names("backends") if kernels.is_peer(name)]


def show() -> int:
    """Print which there are, what they run, and what the others need; 0, the exit status."""
    listing.show_libraries(console())
    print("spinbench peers install NAME … installs those that are packages into this environment")
    return 0


def install(wanted: Sequence[str]) -> int:
    """Install peers that are packages of Python, and tell the steps for those that are programs.

    No two of them ask for different versions of anything today: one environment holds all.

    Returns:
        The exit status: 1 if one of them is not here in the end.

    Raises:
        SpinbenchError: no name, a name of no peer, or pip failed.
    """
    if not wanted:
        raise SpinbenchError(f"peers install needs names: {', '.join(names())}")
    classes = {name: _class(name) for name in wanted}
    absent = {name: cls for name, cls in classes.items() if registry.missing(cls)}
    steps = dict.fromkeys(_step(cls) for cls in absent.values())
    for step in steps:
        if step.startswith(_PIP):
            _pip(shlex.split(step)[1:])
    importlib.invalidate_caches()
    for name, cls in classes.items():
        lacking = registry.missing(cls)
        print(f"{name}: needs {', '.join(lacking)}; {_step(cls)}" if lacking else f"{name}: here")
    return int(any(registry.missing(cls) for cls in classes.values()))


def _class(name: str) -> type[Backend]:
    if name not in names():
        raise unknown_name("peer", name, names())
    return registry.backend_class(name)


def _step(cls: type[Backend]) -> str:
    """A command for pip, of this peer alone where the extra says which package it is; else a sentence."""
    for line in metadata.requires("spinbench") or ():
        found = _OF_PEERS.match(line)
        if found and re.sub("[-_]", ".", found[1]) in cls.requires:
            return _PIP + shlex.quote(line.partition(";")[0].strip())
    return cls.install


def _pip(words: Sequence[str]) -> None:
    command = [sys.executable, "-m", "pip", *words]
    print(f"running {shlex.join(command)}", flush=True)
    done = subprocess.run(command, check=False)
    if done.returncode:
        raise SpinbenchError(f"pip ended with status {done.returncode}; what it printed says why")
