"""`spinbench list` and `spinbench peers`: what runs here and why not, and how other libraries come here."""

from __future__ import annotations

import importlib
import re
import shlex
import subprocess
import sys
import textwrap
from argparse import Namespace
from collections.abc import Sequence
from importlib import metadata

from rich.table import Table
from rich.text import Text

from spinbench.api import Backend
from spinbench.errors import BrokenPluginError, SpinbenchError
from spinbench.foundation import plugins
from spinbench.foundation.names import unknown_name
from spinbench.inference import kernels, registry
from spinbench.metrics import registry as metrics
from spinbench.models import catalogue, families, formats
from spinbench.reporting.display import console, say

_PIP = "pip install "
_OF_PEERS = re.compile(r"([\w.-]+)[^;]*;.*extra == ['\"]peers['\"]")
STYLES = {"native": "bold green", "generic": "green", "unsupported": "dim", "unavailable": "yellow", "broken": "red"}

ROOM = 100
"""Columns of a terminal that has some for a sentence on each method."""


def show(arguments: Namespace | None = None) -> int:
    """`spinbench list`: print the coverage table, the reasons for its gaps, and the models; imports no framework."""
    _show_pairs()
    say("")
    _show_libraries()
    say("")
    _show_models()
    return 0


def _show_pairs() -> None:
    output, backends = console(), kernels.own_backends()
    table = Table(title="methods and backends", title_justify="left", title_style="bold")
    described = output.width >= ROOM
    for heading in ("method", *backends):
        table.add_column(heading, no_wrap=True)
    if described:
        table.add_column("what it does")
    reasons: dict[tuple[str, str], list[str]] = {}
    notes: dict[str, None] = {}
    for method in registry.names("methods"):
        cells = []
        for backend in backends:
            how = registry.support(method, backend)
            cells.append(Text(how.tier, style=STYLES[how.tier]))
            notes |= dict.fromkeys(how.notes)
            if how.tier == "broken":  # wherever it is to run
                notes[how.reason] = None
            elif not how.runs:
                reasons.setdefault((backend, _shared(how.reason, method, backend)), []).append(method)
        table.add_row(method, *cells, *([_summary(method)] if described else []))
    output.print(table)
    output.print("native: a kernel of its own; generic: the method's program on the backend's arrays", style="dim")
    for (backend, reason), methods in sorted(reasons.items()):
        say(f"{', '.join(methods)} on {backend}: {reason}")
    named = (why for kind in ("methods", "backends") for why in plugins.passed_over(kind).values())
    for note in (*notes, *named, *kernels.astray()):
        say(note)


def _show_libraries() -> None:
    """Backends that are other libraries: of each the methods that it runs, which are few; broken ones stand above."""
    table = Table(title="other libraries, for comparison", title_justify="left", title_style="bold")
    for column in ("backend", "methods", "here"):
        table.add_column(column)
    reasons: dict[str, None] = {}
    for backend in peers():
        pairs = {method: registry.support(method, backend) for method in registry.names("methods")}
        there = {method: how for method, how in pairs.items() if how.tier not in ("unsupported", "broken")}
        tiers = dict.fromkeys(how.tier for how in there.values())
        table.add_row(backend, ", ".join(there), Text(", ".join(tiers), style=STYLES[next(iter(tiers), "unsupported")]))
        reasons |= dict.fromkeys(how.reason for how in there.values() if how.reason)
    console().print(table)
    for reason in reasons:
        say(reason)


def _shared(reason: str, method: str, backend: str) -> str:
    """A reason as other methods may have it: without this one's name, and where it runs, which the table shows."""
    told = "; ".join(part for part in reason.split("; ") if not part.startswith(f"{method} runs on "))
    told = told.replace(f"there is no kernel {method}.{backend}", "there is no kernel")
    told = told.replace(f"{method} has no kernel for {backend}", "there is no kernel")
    return told.replace(f"method {method} needs", "the method needs")


def _show_models() -> None:
    say("models (model=NAME; spinbench sweep model=NAME --cfg job has their parameters)", "bold")
    wrong = metrics.broken()
    broken = families.load_errors() | {f".{name}": why for name, why in formats.load_errors().items()} | wrong
    working = [name for name in families.names() if name not in broken]
    kinds = {
        "families": working,
        "broken": list(broken),
        "shipped": catalogue.names(),
        "yours": [families.FILE],
        "read": formats.suffixes(),
        "metrics": [name for name in metrics.names() if name not in wrong],
    }
    for title, names in kinds.items():
        if names:
            text = textwrap.fill(", ".join(names), width=max(console().width - 12, 40), subsequent_indent=" " * 11)
            say(f"  {title:<9}{text}")
    for reason in (*broken.values(), *formats.describe_suffix_conflicts()):
        say(reason)


def _summary(method: str) -> str:
    try:
        return registry.method_class(method).summary
    except BrokenPluginError:
        return ""


def run_peers(arguments: Namespace) -> int:
    """`spinbench peers`: print which there are, what they run, and what the others need, or install some."""
    if arguments.what == "install":
        return install(arguments.names)
    _show_libraries()
    print("spinbench peers install NAME … installs those that are packages into this environment")
    return 0


def peers() -> list[str]:
    """Names of all, installed or not."""
    return [name for name in registry.names("backends") if kernels.is_peer(name)]


def install(wanted: Sequence[str]) -> int:
    """Install peers that are packages of Python, and tell the steps for those that are programs.

    No two of them ask for different versions of anything today: one environment holds all.

    Returns:
        The exit status: 1 if one of them is not here in the end.

    Raises:
        SpinbenchError: no name, a name of no peer, or pip failed.
    """
    if not wanted:
        raise SpinbenchError(f"peers install needs names: {', '.join(peers())}")
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
    if name not in peers():
        raise unknown_name("peer", name, peers())
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
