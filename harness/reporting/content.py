"""What the page of a report shows beside its charts: tables, bounds, reasons, environments, the records."""

from __future__ import annotations

import base64
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spinbench.foundation.overrides import of_cell
from spinbench.measuring.record_types import Record
from spinbench.reporting import brackets, curves, leaderboard
from spinbench.reporting.brackets import Bracket
from spinbench.reporting.leaderboard import Row, by_model

DIGITS = 8
"""Of the measured numbers of records on the page: more than is shown of any, and half as much to pack."""
_MEASURED = ("metrics", "result", "stages")
"""Where these are."""


@dataclass(frozen=True)
class Bounds:
    """What the bounds among a model's records say.

    Attributes:
        model: its label.
        known: the narrowest bracket; infinite on a side without a bound.
        width: in nats; None where a bound is missing.
        flagged: sentences about the rows that it contradicts.
    """

    model: str
    known: Bracket
    width: float | None
    flagged: tuple[str, ...]


def verdict(row: Row) -> str:
    """The row's status in one word, to choose by."""
    if row.status.startswith("failed"):
        return "failed"
    if leaderboard.is_wrong(row):
        return "contradicted"
    return "doubted" if row.doubted else "ok"


def setup(row: Row) -> dict[str, str]:
    """How long, with how many chains and how precisely the row's cells were run."""
    config = row.members[0].config
    asked, backend = config["budget"], config["backend"]
    burn_in = "" if asked.get("burn_in") is None else f", burn-in {asked['burn_in']}"
    budget = f"{asked['seconds']:g} s" if asked.get("seconds") is not None else f"{asked.get('samples')} samples"
    return {"budget": budget + burn_in, "chains": str(config["chains"]), "precision": backend.get("precision") or "–"}


def setups(board: Sequence[Row]) -> tuple[dict[str, str], list[str]]:
    """Of budget, chains and precision: those that all rows share, and the names of the others."""
    found: dict[str, set[str]] = defaultdict(set)
    for row in board:
        for name, text in setup(row).items():
            found[name].add(text)
    shared = {name: next(iter(texts)) for name, texts in found.items() if len(texts) == 1}
    return shared, [name for name in found if name not in shared]


def on_front(board: Sequence[Row]) -> set[int]:
    """Numbers of the rows with a point on their model's Pareto front; rows that nobody vouches for have none."""
    found: set[int] = set()
    for rows in by_model(board).values():
        lines = {number: curves.curve(row.members) for number, row in rows.items() if not row.doubted}
        corners = [(number, corner) for number, line in lines.items() if line is not None for corner in line.corners()]
        found |= {corners[i][0] for i in curves.front([corner for _, corner in corners])}
    return found


def bounds(board: Sequence[Row]) -> list[Bounds]:
    """Of each model with a bound on log Z, whether or not it is known exactly."""
    found = []
    for model, rows in by_model(board).items():
        known = brackets.board_bracket(rows.values())
        if known.lower_method or known.upper_method:
            width = known.upper - known.lower if known.lower_method and known.upper_method else None
            flagged = tuple(text for row in rows.values() for text in _flagged(row, known))
            found.append(Bounds(model, known, width, flagged))
    return found


def _flagged(row: Row, known: Bracket) -> Iterable[str]:
    """A sentence for each flag that the row's records bear."""
    flags = [(known.flag(record), record) for record in row.members]
    for flag in brackets.FLAGS:
        values = sorted(record.result.log_z or 0.0 for own, record in flags if own == flag)
        if values:
            span = " to ".join(dict.fromkeys(f"{value:.6g}" for value in (values[0], values[-1])))
            seeds = f" ({len(values)} of {len(flags)} seeds)" if len(flags) > 1 else ""
            yield f"{row.title}: {span} {flag}{seeds}"


def problems(records: Iterable[Record]) -> list[dict[str, Any]]:
    """Reasons for which cells failed, were skipped or have no exact answer, each with its models and cells."""
    found: dict[tuple[str, str, str, str], tuple[dict[str, None], list[int]]] = {}
    for i, record in enumerate(records):
        if record.status != "ok":
            axes = record.axes
            key = (record.status, axes.method, axes.backend, record.error or "no reason given")
        elif record.no_reference is not None:
            key = ("no exact answer", "", "", record.no_reference)
        else:
            continue
        models, cells = found.setdefault(key, ({}, []))
        models[record.axes.model] = None
        cells.append(i)
    names = ("status", "method", "backend", "reason")
    return [
        {**dict(zip(names, key, strict=True)), "models": list(models), "cells": cells}
        for key, (models, cells) in sorted(found.items())
    ]


def places(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Where and with what cells were measured, each combination once, with the number of its cells."""
    found: dict[str, dict[str, Any]] = {}
    for record in records:
        place, git = record.environment, record.git
        commit = (git.commit or "outside git") + (" with uncommitted changes" if git.dirty else "")
        one = {
            "commit": commit,
            "host": place.hostname,
            "processor": place.cpu,
            "cores": place.cores,
            "GPUs": ", ".join(place.gpus or []) or None,
            "system": place.platform,
            "Python": place.python,
            "versions": ", ".join(f"{name} {version}" for name, version in place.versions.items()) or None,
            "threads": ", ".join(f"{name}={n}" for name, n in place.threads.items()) or None,
        }
        found.setdefault(str(one), {"cells": 0, "facts": {k: v for k, v in one.items() if v is not None}})["cells"] += 1
    return sorted(found.values(), key=lambda place: -int(place["cells"]))


def packed(text: str) -> str:
    """What a script unpacks: of thousands of records, or of pictures, a tenth of the text."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def for_scripts(part: Any, digits: int = 17) -> Any:
    """A record, or a part of it: floats have so many digits, and whole numbers that scripts cannot hold are texts."""
    if isinstance(part, float):
        return float(f"{part:.{digits}g}")
    if isinstance(part, Mapping):
        return {name: for_scripts(inner, digits) for name, inner in part.items()}
    if isinstance(part, list):
        return [for_scripts(inner, digits) for inner in part]
    return str(part) if isinstance(part, int) and abs(part) > 2**53 else part


def data(records: Sequence[Record], board: Sequence[Row]) -> dict[str, Any]:
    """What the scripts need: all of the records, environments and commands once each, and which cells a row has.

    A command lacks its last word, the seeds. Measured numbers are cut to `DIGITS`; the records' own files have all.
    """
    place_of = {id(record): i for i, record in enumerate(records)}
    texts = [repr(record.content["environment"]) for record in records]
    environments = {text: record.content["environment"] for text, record in zip(texts, records, strict=True)}
    number = {text: i for i, text in enumerate(environments)}
    cells = []
    for record, text in zip(records, texts, strict=True):
        measured = {name: for_scripts(record[name], DIGITS) for name in _MEASURED if name in record.content}
        cells.append({**for_scripts(record.content), **measured, "environment": number[text]})
    commands: dict[str, int] = {}
    command_of = [commands.setdefault(of_cell(record.config, ()), len(commands)) for record in records]
    return {
        "commands": list(commands),
        "command_of": command_of,
        "cells": cells,
        "environments": list(environments.values()),
        "rows": [[place_of[id(record)] for record in row.members] for row in board],
    }
