"""What a sweep ends with: the leaderboard or the experiment's own report, the picture, the word on asv's history."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

from rich.console import RenderableType
from rich.text import Text

from spinbench.errors import SpinbenchError
from spinbench.foundation import plugins
from spinbench.measuring import environment
from spinbench.measuring.record_types import Record
from spinbench.measuring.records import COMMAND_FILE
from spinbench.reporting import board_tables, figures, leaderboard
from spinbench.reporting.display import console, shown
from spinbench.reporting.profiles import pictures, tables
from spinbench.reporting.profiles.profile import profile

PICTURE = "accuracy.png"
PROFILES = "profiles.png"
REASONS = 8
"""Why cells have no result: so many are told where there are many models."""

Report = Callable[[Sequence[Record], Path], Sequence[RenderableType]]
"""What compares methods over many models in an experiment's own way, by the name that a configuration gives (`report`):
a function of (records, folder), registered as an entry point of `spinbench.reports`.

It returns what is to be printed, and may write files into the folder.
"""


def find(name: str) -> Report:
    """The report of this name.

    Raises:
        UnknownNameError: there is none; the closest names are offered.
        BrokenPluginError: it raised on import or is no function, or two distributions claim the name.
    """
    return cast(Report, plugins.load("reports", name, lambda found: "" if callable(found) else "is no function"))


def chosen(folder: Path) -> str | None:
    """The name of the report that the sweep in this folder asked for."""
    try:
        name = json.loads((folder / COMMAND_FILE).read_text(encoding="utf-8")).get("report")
    except (OSError, ValueError, AttributeError):  # a folder of records alone
        return None
    return None if name is None else str(name)


def show(records: Sequence[Record], folder: Path, name: str | None = None) -> None:
    """Print a report and the cells without a result with their reasons.

    Args:
        records: of the sweep.
        folder: for pictures.
        name: of the experiment's report; None: the leaderboard, with the picture of accuracy over time, or where there
            are many models one page on all of them, with the picture of performance profiles.
    """
    output = console()
    if name is not None:
        for part in find(name)(records, folder):
            output.print()
            output.print(part, soft_wrap=isinstance(part, str | Text))
        _print_problems(records)
        return
    if len({record.axes.model for record in records}) > tables.MANY:
        _show_many(records, folder)
        return
    show_tables(records)
    _print_problems(records)
    _draw(lambda: figures.accuracy_over_time(records, folder / PICTURE), "accuracy against wall-clock")


def show_tables(records: Sequence[Record]) -> None:
    """Print the leaderboard, a table for each model."""
    output = console()
    board = leaderboard.rows(records)
    for table in board_tables.tables(board, output.width):
        output.print()
        output.print(table)
    if any("cached" in row.status or "warm" in row.status for row in board):
        output.print("warm, cached: compiled before, by the same process or read from disk", style="dim")


def _show_many(records: Sequence[Record], folder: Path) -> None:
    output = console()
    found = profile(records)
    for part in tables.page(found):
        output.print()
        output.print(part, soft_wrap=isinstance(part, str))
    _print_shared(records)
    reasons = sorted(leaderboard.problems(records))  # "failed: …" before "skipped: …"
    for line in reasons[:REASONS]:
        style = "red" if line.startswith("failed") else "yellow"
        output.print(Text(line, style=style), overflow="ellipsis", no_wrap=True)
    if len(reasons) > REASONS:
        output.print(f"{len(reasons) - REASONS} more reasons for cells without a result stand on the report's page")
    output.print(
        f"a model's table: spinbench report {shown(folder)} --model NAME; all of them: --model '*'", soft_wrap=True
    )
    _draw(lambda: pictures.save(found.boards, folder / PROFILES), "performance profiles")


def _draw(draw: Callable[[], Sequence[Path]], what: str) -> None:
    output = console()
    try:
        drawn = draw()
    except SpinbenchError as error:
        output.print(Text(str(error), style="red"), soft_wrap=True)
        return
    places = ", ".join(map(shown, drawn))
    output.print(f"picture of {what}: {places}" if drawn else "no picture: no cell has known errors", soft_wrap=True)


def _print_shared(records: Sequence[Record]) -> None:
    shared = [record.oversubscribed for record in records if record.oversubscribed]
    if shared:
        text = f"{len(shared)} of {len(records)} cells oversubscribed, so that their seconds are too long: {shared[0]}"
        console().print(Text(text, style="yellow"), soft_wrap=True)


def _print_problems(records: Sequence[Record]) -> None:
    output = console()
    _print_shared(records)
    for line in leaderboard.problems(records):
        output.print(Text(line, style="red" if line.startswith("failed") else "yellow"), soft_wrap=True)
    for line in leaderboard.notes(records):
        output.print(Text(line, style="yellow"), soft_wrap=True)
    missing = {record.no_reference for record in records if record.no_reference is not None}
    for reason in sorted(missing):
        output.print(Text(f"no exact answer to compare with: {reason}", style="yellow"), soft_wrap=True)


def history(folders: Sequence[Path]) -> list[str]:
    """Enter records into asv's history, as far as they belong there; what came of it, in sentences."""
    checkout = environment.root()
    if checkout is None:
        return [f"not in asv's history: {environment.NO_HISTORY}; the records are kept"]
    try:
        from spinbench.history.recorder import record

        return record(checkout, folders).sentences()
    except SpinbenchError as error:
        return [f"not in asv's history: {error}; the records are kept"]
    except Exception as error:  # asv's own; the sweep's results must not depend on it
        text = " ".join(str(error).split())
        return [f"not in asv's history: asv failed with {type(error).__name__}: {text}; the records are kept"]
