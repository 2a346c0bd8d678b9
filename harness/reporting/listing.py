"""`spinbench list`: which method runs on which backend here, and why not."""

from __future__ import annotations

import textwrap

from rich.console import Console
from rich.table import Table
from rich.text import Text

from spinbench.errors import BrokenPluginError
from spinbench.foundation import plugins
from spinbench.inference import kernels, registry
from spinbench.metrics import registry as metrics
from spinbench.models import catalogue, families, formats
from spinbench.reporting.display import console

STYLES = {"native": "bold green", "generic": "green", "unsupported": "dim", "unavailable": "yellow", "broken": "red"}

ROOM = 100
"""Columns of a terminal that has some for a sentence on each method."""


def show() -> None:
    """Print the coverage table, the reasons for its gaps, and the models; imports no framework."""
    output = console()
    _show_pairs(output)
    output.print()
    show_libraries(output)
    output.print()
    _show_models(output)


def _show_pairs(output: Console) -> None:
    backends = kernels.own_backends()
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
        output.print(Text(f"{', '.join(methods)} on {backend}: {reason}"), soft_wrap=True)
    named = (why for kind in ("methods", "backends") for why in plugins.passed_over(kind).values())
    for note in (*notes, *named, *kernels.astray()):
        output.print(Text(note), soft_wrap=True)


def show_libraries(output: Console) -> None:
    """Backends that are other libraries: of each the methods that it runs, which are few; broken ones stand above."""
    table = Table(title="other libraries, for comparison", title_justify="left", title_style="bold")
    for column in ("backend", "methods", "here"):
        table.add_column(column)
    reasons: dict[str, None] = {}
    for backend in filter(kernels.is_peer, registry.names("backends")):
        pairs = {method: registry.support(method, backend) for method in registry.names("methods")}
        there = {method: how for method, how in pairs.items() if how.tier not in ("unsupported", "broken")}
        tiers = dict.fromkeys(how.tier for how in there.values())
        table.add_row(backend, ", ".join(there), Text(", ".join(tiers), style=STYLES[next(iter(tiers), "unsupported")]))
        reasons |= dict.fromkeys(how.reason for how in there.values() if how.reason)
    output.print(table)
    for reason in reasons:
        output.print(Text(reason), soft_wrap=True)


def _shared(reason: str, method: str, backend: str) -> str:
    """A reason as other methods may have it: without this one's name, and where it runs, which the table shows."""
    told = "; ".join(part for part in reason.split("; ") if not part.startswith(f"{method} runs on "))
    told = told.replace(f"there is no kernel {method}.{backend}", "there is no kernel")
    told = told.replace(f"{method} has no kernel for {backend}", "there is no kernel")
    return told.replace(f"method {method} needs", "the method needs")


def _show_models(output: Console) -> None:
    output.print("models (model=NAME; spinbench sweep model=NAME --cfg job has their parameters)", style="bold")
    wrong = metrics.broken()
    broken = families.broken() | {f".{name}": why for name, why in formats.broken().items()} | wrong
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
            text = textwrap.fill(", ".join(names), width=max(output.width - 12, 40), subsequent_indent=" " * 11)
            output.print(f"  {title:<9}{text}")
    for reason in (*broken.values(), *formats.claims()):
        output.print(Text(reason), soft_wrap=True)


def _summary(method: str) -> str:
    try:
        return registry.method_class(method).summary
    except BrokenPluginError:
        return ""
