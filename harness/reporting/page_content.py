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
from spinbench.reporting.leaderboard import Row, rows_by_model

# Significant digits of measured numbers in the page's data: more than are displayed, and half the compressed size of
# full precision.
MEASURED_DIGITS = 8
# Parts of a record that hold measured numbers.
_MEASURED_PARTS = ("metrics", "result", "stages")


@dataclass(frozen=True)
class LogZBounds:
    """What the bounds among a model's records say.

    Attributes:
        model: its label.
        bracket: the narrowest bracket; infinite on a side without a bound.
        contradictions: sentences about the rows that it contradicts.
    """

    model: str
    bracket: brackets.LogZBracket
    contradictions: tuple[str, ...]


def verdict_word(row: Row) -> str:
    """The row's status in one word, to choose by."""
    if row.status.startswith("failed"):
        return "failed"
    if leaderboard.is_disqualified(row):
        return "contradicted"
    return "doubted" if row.doubted else "ok"


def run_setup(row: Row) -> dict[str, str]:
    """How long, with how many chains and how precisely the row's cells were run."""
    config = row.records[0].config
    budget_config, backend = config["budget"], config["backend"]
    burn_in = ""
    if budget_config.get("burn_in") is not None:
        burn_in = f", burn-in {budget_config['burn_in']}"
    budget = f"{budget_config.get('samples')} samples"
    if budget_config.get("seconds") is not None:
        budget = f"{budget_config['seconds']:g} s"
    return {"budget": budget + burn_in, "chains": str(config["chains"]), "precision": backend.get("precision") or "–"}


def common_setup(board: Sequence[Row]) -> tuple[dict[str, str], list[str]]:
    """Of budget, chains and precision: those that all rows share, and the names of the others."""
    texts_by_name: dict[str, set[str]] = defaultdict(set)
    for row in board:
        for name, text in run_setup(row).items():
            texts_by_name[name].add(text)
    shared = {name: next(iter(texts)) for name, texts in texts_by_name.items() if len(texts) == 1}
    return shared, [name for name in texts_by_name if name not in shared]


def rows_on_front(board: Sequence[Row]) -> set[int]:
    """Numbers of the rows with a point on their model's Pareto front; rows that nobody vouches for have none."""
    numbers: set[int] = set()
    for rows in rows_by_model(board).values():
        lines = {number: curves.error_curve(row.records) for number, row in rows.items() if not row.doubted}
        corners = [(number, corner) for number, line in lines.items() if line is not None for corner in line.corners()]
        numbers |= {corners[i][0] for i in curves.pareto_front([corner for _, corner in corners])}
    return numbers


def log_z_bounds(board: Sequence[Row]) -> list[LogZBounds]:
    """Of each model with a bound on log Z, whether or not it is known exactly."""
    model_bounds = []
    for model, rows in rows_by_model(board).items():
        bracket = brackets.bracket_of_rows(rows.values())
        if bracket.is_bounded:
            contradictions = tuple(text for row in rows.values() for text in _contradictions(row, bracket))
            model_bounds.append(LogZBounds(model, bracket, contradictions))
    return model_bounds


def _contradictions(row: Row, bracket: brackets.LogZBracket) -> Iterable[str]:
    """A sentence for each flag that the row's records bear."""
    flags = [(bracket.flag_record(record), record) for record in row.records]
    for flag in brackets.FLAGS:
        values = sorted(record.result.log_z or 0.0 for record_flag, record in flags if record_flag == flag)
        if values:
            span = " to ".join(dict.fromkeys(f"{value:.6g}" for value in (values[0], values[-1])))
            seeds = {1: ""}.get(len(flags), f" ({len(values)} of {len(flags)} seeds)")
            yield f"{row.title}: {span} {flag}{seeds}"


def group_failures(records: Iterable[Record]) -> list[dict[str, Any]]:
    """Reasons for which cells failed, were skipped or have no exact answer, each with its models and cells."""
    cells_by_problem: dict[tuple[str, str, str, str], tuple[dict[str, None], list[int]]] = {}
    for i, record in enumerate(records):
        if record.status != "ok":
            axes = record.axes
            key = (record.status, axes.method, axes.backend, record.error or "no reason given")
        elif record.no_reference is not None:
            key = ("no exact answer", "", "", record.no_reference)
        else:
            continue
        models, cells = cells_by_problem.setdefault(key, ({}, []))
        models[record.axes.model] = None
        cells.append(i)
    names = ("status", "method", "backend", "reason")
    return [
        {**dict(zip(names, key, strict=True)), "models": list(models), "cells": cells}
        for key, (models, cells) in sorted(cells_by_problem.items())
    ]


def group_environments(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Where and with what cells were measured, each combination once, with the number of its cells."""
    environments: dict[str, dict[str, Any]] = {}
    for record in records:
        environment, git = record.environment, record.git
        commit = (git.commit or "outside git") + (" with uncommitted changes" if git.dirty else "")
        facts = {
            "commit": commit,
            "host": environment.hostname,
            "processor": environment.cpu,
            "cores": environment.cores,
            "GPUs": ", ".join(environment.gpus or []) or None,
            "system": environment.platform,
            "Python": environment.python,
            "versions": ", ".join(f"{name} {version}" for name, version in environment.versions.items()) or None,
            "threads": ", ".join(f"{name}={n}" for name, n in environment.threads.items()) or None,
        }
        environments.setdefault(str(facts), {"cells": 0, "facts": {k: v for k, v in facts.items() if v is not None}})[
            "cells"
        ] += 1
    return sorted(environments.values(), key=lambda environment: -int(environment["cells"]))


def compress_to_base64(text: str) -> str:
    """What a script unpacks: of thousands of records, or of pictures, a tenth of the text."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def to_javascript_numbers(part: object, digits: int = 17) -> Any:
    """A record, or a part of it: floats have so many digits, and whole numbers that scripts cannot hold are texts."""
    if isinstance(part, float):
        return float(f"{part:.{digits}g}")
    if isinstance(part, Mapping):
        return {name: to_javascript_numbers(inner, digits) for name, inner in part.items()}
    if isinstance(part, list):
        return [to_javascript_numbers(inner, digits) for inner in part]
    return str(part) if isinstance(part, int) and abs(part) > 2**53 else part


def script_data(records: Sequence[Record], board: Sequence[Row]) -> dict[str, object]:
    """What the scripts need: all of the records, environments and commands once each, and which cells a row has.

    A command lacks its last word, the seeds. Measured numbers are cut to `DIGITS`; the records' own files have all.
    """
    place_of = {id(record): i for i, record in enumerate(records)}
    texts = [repr(record.content["environment"]) for record in records]
    environments = {text: record.content["environment"] for text, record in zip(texts, records, strict=True)}
    number = {text: i for i, text in enumerate(environments)}
    cells = []
    for record, text in zip(records, texts, strict=True):
        measured = {
            name: to_javascript_numbers(record[name], MEASURED_DIGITS)
            for name in _MEASURED_PARTS
            if name in record.content
        }
        cells.append({**to_javascript_numbers(record.content), **measured, "environment": number[text]})
    commands: dict[str, int] = {}
    command_of = [commands.setdefault(of_cell(record.config, ()), len(commands)) for record in records]
    return {
        "commands": list(commands),
        "command_of": command_of,
        "cells": cells,
        "environments": list(environments.values()),
        "rows": [[place_of[id(record)] for record in row.records] for row in board],
    }
