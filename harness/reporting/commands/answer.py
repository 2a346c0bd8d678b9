"""An answer for people: log Z and its brackets in sentences, marginals in a table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from spinbench.api import LogZKind
from spinbench.inference.result import Result
from spinbench.models import Model, load, specs
from spinbench.models.families import FILE
from spinbench.reporting.leaderboard import short

SHOWN = 20
"""States whose marginals are printed."""


def opened(name: str, evidence: str | None) -> tuple[Model, Mapping[str, Any]]:
    """A model, and its configuration in a sweep."""
    if name in specs.names() and name != FILE and evidence is None:
        return specs.build({"name": name}), {"model": name}
    beside = {} if evidence is None else {"model.evidence": str(Path(evidence))}
    return load(name, evidence=evidence), {"model": FILE, "model.path": str(Path(name)), **beside}


def of_log_z(answer: Result) -> list[str]:
    """Log Z, where there is one, and the tightest bracket of each grade but of the exact one."""
    lines = [] if answer.log_z is None else [_said_of(answer.log_z, answer.log_z_se, answer.log_z_kind)]
    lines += [f"do not believe it: {doubt}" for doubt in answer.status.split(", ") if doubt.startswith("log Z outside")]
    for grade in dict.fromkeys(bound.grade for bound in answer.bounds if bound.grade != "exact"):
        sides = {bound.side: bound for bound in answer.bounds if bound.grade == grade}
        low, high = (f"{sides[s].value:.8g} ({sides[s].by})" if s in sides else "none" for s in ("lower", "upper"))
        chance = 1 - sum(bound.delta for bound in sides.values())
        lines.append(f"{grade} bracket of log Z: [{low}, {high}]{f', with {100 * chance:.6g} %' if chance < 1 else ''}")
    return lines


def _said_of(log_z: float, error: float | None, kind: LogZKind) -> str:
    if error is not None and not math.isfinite(error):
        return f"log Z is unresolved; {log_z:.8g} ({kind}) has no error that it could claim"
    return f"log Z = {log_z:.8g}{'' if error is None else f' ± {error:.2g}'} ({kind})"


def of_marginals(answer: Result) -> Table:
    """The first marginals, a line for each state."""
    columns = {name: values[:SHOWN].tolist() for name, values in answer.columns().items()}
    found = Table(box=SIMPLE_HEAD, show_edge=False)
    for name in columns:
        found.add_column(name.replace("_", " "), justify="right")
    for line in zip(*columns.values(), strict=True):
        found.add_row(*(Text(str(value) if isinstance(value, int) else short(value)) for value in line))
    return found
