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
from spinbench.foundation import plugins, remarks
from spinbench.inference import kernels, registry
from spinbench.metrics import registry as metrics
from spinbench.models import catalogue, families, formats
from spinbench.reporting.progress_display import console, print_line

_PIP_INSTALL = "pip install "
_PEER_REQUIREMENT = re.compile(r"([\w.-]+)[^;]*;.*extra == ['\"]peers['\"]")
TIER_STYLES = {
    "native": "bold green",
    "generic": "green",
    "unsupported": "dim",
    "unavailable": "yellow",
    "broken": "red",
}

# Terminal width from which each method has a summary.
MIN_SUMMARY_WIDTH = 100


def run_list(arguments: Namespace | None = None) -> int:
    """`spinbench list`: print the coverage table, the reasons for its gaps, and the models; imports no framework."""
    if arguments is not None and arguments.json:
        # here and not above: without --json, msgspec is not waited for
        from spinbench.reporting.commands.json_answers import print_document

        return print_document(arguments, 0, _list_all())
    _print_support_table()
    print_line("")
    _print_peers()
    print_line("")
    _print_models()
    return 0


def _list_all() -> dict[str, object]:
    broken = _broken_plugins()
    pairs = [
        {"method": method, "backend": backend, "tier": support.tier, "reason": support.reason}
        for method in registry.names("methods")
        for backend in (*kernels.own_backends(), *peer_names())
        for support in [registry.support(method, backend)]
    ]
    return {
        "pairs": pairs,
        "families": [name for name in families.names() if name not in broken],
        "shipped": catalogue.names(),
        "read": formats.suffixes(),
        "written": formats.suffixes(writable=True),
        "metrics": [name for name in metrics.metric_names() if name not in broken],
        "broken": broken,
    }


def _broken_plugins() -> dict[str, str]:
    """Names of families, formats (after a point) and metrics that cannot be used, and why."""
    unreadable = {f".{name}": why for name, why in formats.load_errors().items()}
    return families.load_errors() | unreadable | metrics.unusable_metrics()


def _print_support_table() -> None:
    output, backends = console(), kernels.own_backends()
    table = Table(title="methods and backends", title_justify="left", title_style="bold")
    has_summaries = output.width >= MIN_SUMMARY_WIDTH
    for heading in ("method", *backends):
        table.add_column(heading, no_wrap=True)
    if has_summaries:
        table.add_column("what it does")
    reasons: dict[tuple[str, str], list[str]] = {}
    notes: dict[str, None] = {}
    for method in registry.names("methods"):
        cells = []
        for backend in backends:
            support = registry.support(method, backend)
            cells.append(Text(support.tier, style=TIER_STYLES[support.tier]))
            notes |= dict.fromkeys(support.notes)
            if support.tier == "broken":  # on whichever backend
                notes[support.reason] = None
            elif not support.runs:
                reasons.setdefault((backend, _generalise_reason(support.reason, method, backend)), []).append(method)
        table.add_row(method, *cells, *([_method_summary(method)] if has_summaries else []))
    output.print(table)
    output.print("native: a kernel of its own; generic: the method's program on the backend's arrays", style="dim")
    for (backend, reason), methods in sorted(reasons.items()):
        print_line(f"{', '.join(methods)} on {backend}: {reason}")
    shadowed_plugins = (why for kind in ("methods", "backends") for why in plugins.name_clashes(kind).values())
    for note in (*notes, *shadowed_plugins, *kernels.astray()):
        print_line(note)


def _print_peers() -> None:
    """Backends that are other libraries: of each the methods that it runs, which are few; broken ones stand above."""
    table = Table(title="other libraries, for comparison", title_justify="left", title_style="bold")
    for column in ("backend", "methods", "here"):
        table.add_column(column)
    reasons: dict[str, None] = {}
    for backend in peer_names():
        pairs = {method: registry.support(method, backend) for method in registry.names("methods")}
        usable = {method: support for method, support in pairs.items() if support.tier not in ("unsupported", "broken")}
        tiers = dict.fromkeys(support.tier for support in usable.values())
        table.add_row(
            backend, ", ".join(usable), Text(", ".join(tiers), style=TIER_STYLES[next(iter(tiers), "unsupported")])
        )
        reasons |= dict.fromkeys(support.reason for support in usable.values() if support.reason)
    console().print(table)
    for reason in reasons:
        print_line(reason)


def _generalise_reason(reason: str, method: str, backend: str) -> str:
    """A reason as other methods may have it: without this one's name, and where it runs, which the table shows."""
    text = "; ".join(part for part in reason.split("; ") if not part.startswith(f"{method} runs on "))
    text = text.replace(f"there is no kernel {method}.{backend}", "there is no kernel")
    text = text.replace(f"{method} has no kernel for {backend}", "there is no kernel")
    return text.replace(f"method {method} needs", "the method needs")


def _print_models() -> None:
    print_line("models (model=NAME; spinbench sweep model=NAME --cfg job has their parameters)", "bold")
    broken = _broken_plugins()
    working = [name for name in families.names() if name not in broken]
    kinds = {
        "families": working,
        "broken": list(broken),
        "shipped": catalogue.names(),
        "yours": [families.FILE],
        "read": formats.suffixes(),
        "metrics": [name for name in metrics.metric_names() if name not in broken],
    }
    for title, names in kinds.items():
        if names:
            text = textwrap.fill(", ".join(names), width=max(console().width - 12, 40), subsequent_indent=" " * 11)
            print_line(f"  {title:<9}{text}")
    for reason in (*broken.values(), *formats.describe_suffix_conflicts()):
        print_line(reason)


def _method_summary(method: str) -> str:
    try:
        return registry.method_class(method).summary
    except BrokenPluginError:
        return ""


def run_peers(arguments: Namespace) -> int:
    """`spinbench peers`: print which there are, what they run, and what the others need, or install some."""
    if arguments.action == "install":
        return install_peers(arguments.names)
    _print_peers()
    print("spinbench peers install NAME … installs those that are packages into this environment")
    return 0


def peer_names() -> list[str]:
    """Names of all, installed or not."""
    return [name for name in registry.names("backends") if kernels.is_peer(name)]


def install_peers(names: Sequence[str]) -> int:
    """Install peers that are packages of Python, and tell the steps for those that are programs.

    No two of them ask for different versions of anything today: one environment holds all.

    Returns:
        The exit status: 1 if one of them is not here in the end.

    Raises:
        SpinbenchError: no name, a name of no peer, or pip failed.
    """
    if not names:
        raise SpinbenchError(f"peers install needs names: {', '.join(peer_names())}")
    classes = {name: _peer_class(name) for name in names}
    absent = {name: cls for name, cls in classes.items() if registry.missing(cls)}
    steps = dict.fromkeys(_install_step(cls) for cls in absent.values())
    for step in steps:
        if step.startswith(_PIP_INSTALL):
            _run_pip(shlex.split(step)[1:])
    importlib.invalidate_caches()
    for name, cls in classes.items():
        if lacking := registry.missing(cls):
            print(f"{name}: needs {', '.join(lacking)}; {_install_step(cls)}")
        else:
            print(f"{name}: here")
    return int(any(registry.missing(cls) for cls in classes.values()))


def _peer_class(name: str) -> type[Backend]:
    if name not in peer_names():
        raise remarks.unknown_name("peer", name, peer_names())
    return registry.backend_class(name)


def _install_step(cls: type[Backend]) -> str:
    """A command for pip, of this peer alone where the extra says which package it is; else a sentence."""
    for line in metadata.requires("spinbench") or ():
        requirement = _PEER_REQUIREMENT.match(line)
        if requirement and re.sub("[-_]", ".", requirement[1]) in cls.requires:
            return _PIP_INSTALL + shlex.quote(line.partition(";")[0].strip())
    return cls.install


def _run_pip(arguments: Sequence[str]) -> None:
    command = [sys.executable, "-P", "-m", "pip", *arguments]
    print(f"running {shlex.join(command)}", flush=True)
    process = subprocess.run(command, check=False)
    if process.returncode:
        raise SpinbenchError(f"pip ended with status {process.returncode}; what it printed says why")
