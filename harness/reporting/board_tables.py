"""The leaderboard on a terminal: a table for each model."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spinbench.mathematics.statistics import TARGET_RMSE
from spinbench.reporting import brackets
from spinbench.reporting.leaderboard import Row, is_wrong, more_titles, place, short, with_error

LEFT_OUT = ("tier", "compile\nseconds", "ESS/s", "seeds", "run\nseconds")
"""Columns that a narrow terminal goes without, in this order."""

FOLDED = {"settings": 16, "status": 12}
"""Columns that may take several lines, and how narrow they get."""

SHARED = "=: within noise (95 %) of others of this rank"

Cell = Callable[[Row], "str | Text"]


def tables(board: Sequence[Row], width: int | None = None) -> list[Table]:
    """A table for each model; below it, where log Z is not known, the bounds on it.

    Args:
        board: rows.
        width: columns of the terminal; where a table is wider, some of `LEFT_OUT` are, and it says so. None: any.
    """
    models = dict.fromkeys(row.model for row in board)
    return [_fitting(model, [row for row in board if row.model == model], width) for model in models]


def _fitting(model: str, board: Sequence[Row], width: int | None) -> Table:
    """The table with as many columns as there is room for."""
    sentence = brackets.bracket([record for row in board for record in row.members]).sentence()
    shared = SHARED if any(row.shared for row in board) else None
    columns = _columns(board, bounded=sentence is not None)
    dropped: list[str] = []
    table = _table(model, board, columns, [sentence, shared])
    for name in (*map(heading, more_titles(board)), *LEFT_OUT):
        if width is None or Console(width=10_000, markup=False).measure(table).minimum <= width:
            break
        if columns.pop(name, None) is not None:
            dropped.append(name.replace("\n", " "))
            note = f"no room for {', '.join(dropped)}; `spinbench report` writes them"
            table = _table(model, board, columns, [sentence, shared, note])
    return table


def _columns(board: Sequence[Row], *, bounded: bool) -> dict[str, Cell]:
    """What stands in the columns, by heading; those without anything to tell are none."""
    columns: dict[str, Cell] = {"#": place} if any(row.rank is not None for row in board) else {}
    columns |= {"method": lambda row: row.method, "backend": lambda row: row.backend}
    if any(row.variant for row in board):
        columns["settings"] = lambda row: row.variant
    if any(row.replicates > 1 for row in board):
        columns["seeds"] = lambda row: str(row.replicates)
    columns["marginal\nRMSE"] = lambda row: with_error(row.rmse, row.rmse_se)
    if bounded:
        columns["log Z"] = lambda row: short(None) if row.log_z is None else f"{row.log_z:.6g}"
    else:
        columns["|log Z\nerror|"] = lambda row: short(row.log_z_error)
    if any(row.time_to_error is not None for row in board):
        columns[f"seconds to\n{100 * TARGET_RMSE:g} % RMSE"] = lambda row: short(row.time_to_error)
    for title in more_titles(board):
        columns[heading(title)] = partial(_more, title)
    columns["ESS/s"] = lambda row: short(row.ess_per_second)
    columns["compile\nseconds"] = lambda row: short(row.compile_seconds)
    columns["run\nseconds"] = lambda row: short(row.run_seconds)
    columns["tier"] = lambda row: row.tier
    columns["status"] = _status
    return columns


def _table(model: str, board: Sequence[Row], columns: Mapping[str, Cell], notes: Sequence[str | None]) -> Table:
    table = Table(
        title=f"model {model}",
        title_justify="left",
        title_style="bold",
        caption="\n".join(filter(None, notes)) or None,
        caption_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 0),
    )
    texts = {"method", "backend", "settings", "tier", "status"}
    for name, cell in columns.items():
        justify: Literal["left", "right"] = "left" if name in texts else "right"
        lines = [*name.split("\n"), *(str(cell(row)) for row in board)]
        folds = name in FOLDED
        width = min(FOLDED[name], max(map(cell_len, lines))) if folds else max(map(cell_len, lines))
        table.add_column(name, justify=justify, no_wrap=not folds, min_width=width, overflow="fold")
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
    return Text(row.status, style="red" if is_wrong(row) else "" if row.status == "ok" else "dim")
