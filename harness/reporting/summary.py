"""What a sweep ends with: the leaderboard or the experiment's own report, the picture, the word on asv's history."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import cast

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from spinbench.errors import SpinbenchError
from spinbench.foundation import plugins
from spinbench.mathematics.statistics import TARGET_RMSE
from spinbench.measuring import environment
from spinbench.measuring.record_types import Record
from spinbench.measuring.records import COMMAND_FILE
from spinbench.reporting import brackets, content, figures, leaderboard
from spinbench.reporting.display import console, print_parts, say, shown
from spinbench.reporting.leaderboard import Row, by_model, is_wrong, more_titles, place, short, with_error
from spinbench.reporting.profiles import pictures, tables
from spinbench.reporting.profiles.profile import profile

PICTURE = "accuracy.png"
PROFILES = "profiles.png"
REASONS = 8
"""Why cells have no result: so many are told where there are many models."""

LEFT_OUT = ("tier", "compile\nseconds", "ESS/s", "seeds", "run\nseconds")
"""Columns of the leaderboard that a narrow terminal goes without, in this order."""
FOLDED = {"settings": 16, "status": 12}
"""Columns that may take several lines, and how narrow they get."""
SHARED = "=: within noise (95 %) of others of this rank"
Cell = Callable[[Row], "str | Text"]

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
    if name is not None:
        print_parts(find(name)(records, folder))
        _print_problems(records)
    elif len({record.axes.model for record in records}) > tables.MANY:
        _show_many(records, folder)
    else:
        show_tables(records)
        _print_problems(records)
        _draw(lambda: figures.accuracy_over_time(records, folder / PICTURE), "accuracy against wall-clock")


def show_tables(records: Sequence[Record]) -> None:
    """Print the leaderboard, a table for each model."""
    board = leaderboard.rows(records)
    print_parts(board_tables(board, console().width))
    if any("cached" in row.status or "warm" in row.status for row in board):
        say("warm, cached: compiled before, by the same process or read from disk", "dim")


def _show_many(records: Sequence[Record], folder: Path) -> None:
    found = profile(records)
    print_parts(tables.page(found))
    _print_oversubscribed(records)
    reasons = reasons_of(records)  # "failed: …" before "skipped: …"
    for line in reasons[:REASONS]:
        console().print(Text(line, style=_style(line)), overflow="ellipsis", no_wrap=True)
    if len(reasons) > REASONS:
        say(f"{len(reasons) - REASONS} more reasons for cells without a result stand on the report's page")
    say(f"a model's table: spinbench report {shown(folder)} --model NAME; all of them: --model '*'")
    _draw(lambda: pictures.save(found.boards, folder / PROFILES), "performance profiles")


def _draw(draw: Callable[[], Sequence[Path]], what: str) -> None:
    try:
        drawn = draw()
    except SpinbenchError as error:
        say(str(error), "red")
    else:
        places = ", ".join(map(shown, drawn))
        say(f"picture of {what}: {places}" if drawn else "no picture: no cell has known errors")


def _print_oversubscribed(records: Sequence[Record]) -> None:
    shared = [record.oversubscribed for record in records if record.oversubscribed]
    if shared:
        text = f"{len(shared)} of {len(records)} cells oversubscribed, so that their seconds are too long: {shared[0]}"
        say(text, "yellow")


def _print_problems(records: Sequence[Record]) -> None:
    _print_oversubscribed(records)
    missing = sorted({record.no_reference for record in records if record.no_reference is not None})
    without = [f"no exact answer to compare with: {reason}" for reason in missing]
    for line in (*reasons_of(records), *leaderboard.notes(records), *without):
        say(line, _style(line))


def reasons_of(records: Sequence[Record]) -> list[str]:
    """One line for each reason for which cells failed or were skipped."""
    return [
        f"{one['status']}: {one['method']} on {one['backend']}, {', '.join(one['models'])}: {one['reason']}"
        for one in content.problems(records)
        if one["method"]
    ]


def _style(line: str) -> str:
    return "red" if line.startswith("failed: ") else "yellow"


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


def board_tables(board: Sequence[Row], width: int | None = None) -> list[Table]:
    """The leaderboard, a table for each model; below it, where log Z is not known, the bounds on it.

    Args:
        board: rows.
        width: columns of the terminal; where a table is wider, some of `LEFT_OUT` are, and it says so. None: any.
    """
    return [_fit(model, list(rows.values()), width) for model, rows in by_model(board).items()]


def _fit(model: str, board: Sequence[Row], width: int | None) -> Table:
    """The table with as many columns as there is room for."""
    sentence = brackets.board_bracket(board).sentence()
    notes = [sentence or "", SHARED if any(row.shared for row in board) else ""]
    columns = _columns(board, bounded=sentence is not None)
    dropped: list[str] = []
    table = _board_table(model, board, columns, notes)
    for name in (*map(heading, more_titles(board)), *LEFT_OUT):
        if width is None or Console(width=10_000, markup=False).measure(table).minimum <= width:
            break
        if columns.pop(name, None) is not None:
            dropped.append(name.replace("\n", " "))
            note = f"no room for {', '.join(dropped)}; `spinbench report` writes them"
            table = _board_table(model, board, columns, [*notes, note])
    return table


def _columns(board: Sequence[Row], *, bounded: bool) -> dict[str, Cell]:
    """What stands in the columns, by heading; those without anything to tell are none."""
    reached = any(row.time_to_error is not None for row in board)
    columns: list[tuple[str, Cell, bool]] = [
        ("#", place, any(row.rank is not None for row in board)),
        ("method", lambda row: row.method, True),
        ("backend", lambda row: row.backend, True),
        ("settings", lambda row: row.variant, any(row.variant for row in board)),
        ("seeds", lambda row: str(row.replicates), any(row.replicates > 1 for row in board)),
        ("marginal\nRMSE", lambda row: with_error(row.rmse, row.rmse_se), True),
        ("log Z", lambda row: short(None) if row.log_z is None else f"{row.log_z:.6g}", bounded),
        ("|log Z\nerror|", lambda row: short(row.log_z_error), not bounded),
        (f"seconds to\n{100 * TARGET_RMSE:g} % RMSE", lambda row: short(row.time_to_error), reached),
        *((heading(title), partial(_more, title), True) for title in more_titles(board)),
        ("ESS/s", lambda row: short(row.ess_per_second), True),
        ("compile\nseconds", lambda row: short(row.compile_seconds), True),
        ("run\nseconds", lambda row: short(row.run_seconds), True),
        ("tier", lambda row: row.tier, True),
        ("status", _status, True),
    ]
    return {name: cell for name, cell, is_shown in columns if is_shown}


def _board_table(model: str, board: Sequence[Row], columns: Mapping[str, Cell], notes: Sequence[str]) -> Table:
    table = Table(
        title=f"model {model}",
        title_justify="left",
        title_style="bold",
        caption="\n".join(filter(None, notes)) or None,
        caption_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 0),
    )
    for name, cell in columns.items():
        widest = max(map(cell_len, [*name.split("\n"), *(str(cell(row)) for row in board)]))
        is_text = name in ("method", "backend", "settings", "tier", "status")
        table.add_column(
            name,
            justify="left" if is_text else "right",
            no_wrap=name not in FOLDED,
            min_width=min(FOLDED.get(name, widest), widest),
            overflow="fold",
        )
    for row in board:
        table.add_row(*(cell(row) for cell in columns.values()))
    return table


def heading(title: str) -> str:
    """Of a metric's column, in lines."""
    return textwrap.fill(title, 10)


def _more(title: str, row: Row) -> str:
    found = row.more.get(title)
    return short(None) if found is None else with_error(found.value, found.standard_error)


def _status(row: Row) -> Text:
    style = "" if row.status == "ok" else "dim"
    return Text(row.status, style="red" if is_wrong(row) else style)
