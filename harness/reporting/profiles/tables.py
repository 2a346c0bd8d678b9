"""What a terminal and pages show of many models, whatever their number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.table import Table

from spinbench.measuring.record_types import Record
from spinbench.reporting import drawing
from spinbench.reporting.display import new_table
from spinbench.reporting.profiles import pictures
from spinbench.reporting.profiles.boards import LOG_Z, RMSE, Board, performance
from spinbench.reporting.profiles.profile import Profile, profile

MANY = 8
"""Models from which on a sweep ends with a page on all of them, instead of a table for each."""
LINES = 8
"""Solvers that are shown of a board, unless all are asked for."""
FACTORS = np.array([2.0, 10.0])
"""How far behind the best a solver may be to count as near it."""

MIN_MODELS = 5
"""From which on a report's page has something to say across models."""
WORDS = ("doubted", "failed", "refused", "not run")
HEADINGS = ("solver", "mean rank", "95 %", "best", "≤ 2 ×", "≤ 10 ×", *WORDS)
STYLE: dict[str, Any] = {"title_style": "bold", "padding": (0, 1)}


def page(found: Profile, *, whole: bool = False) -> Iterator[RenderableType]:
    """Sentences, a table for each board, solvers from the best mean rank on, and who is best on which class.

    Args:
        found: what to show.
        whole: whether to show all solvers after all budgets, and not only the first few after the longest.
    """
    boards = found.boards if whole else found.last
    yield "\n".join(sentences(found))
    for board in boards:
        yield _ranking(board, None if whole else LINES)
    if boards:
        yield _classes(boards)
    if not whole and (len(boards) < len(found.boards) or any(len(board.solvers) > LINES for board in boards)):
        yield "all solvers, after each budget: spinbench profile FOLDER --all"


def sentences(found: Profile) -> list[str]:
    """What was compared, what counts as a failure, and what the columns are."""
    cells = sum(found.counts.values())
    bad = ", ".join(f"{found.counts[word]} {text}" for word, text in _BAD.items() if found.counts[word])
    missing = max((sum(count["not run"] for count in board.counts) for board in found.boards), default=0)
    lines = [f"{found.models} models, {cells} cells: {found.counts['ok']} vouched for{f'; {bad}' if bad else ''}"]
    lines[0] += f"; {missing} were not run" if missing else ""
    lines[0] += ". All others count as not solved, those in doubt for the number in doubt." if bad or missing else "."
    if found.unanswered:
        lines.append(f"No exact answer, so nothing to compare, on {', '.join(found.unanswered)}.")
    lines.append(f"{found.truth[0].upper()}{found.truth[1:]}.")
    lines.append(
        "best: on how many models first or tied; ≤ 2 ×, ≤ 10 ×: on which share of the models within that factor of the "
        "best; 95 %: of the mean rank, by the bootstrap over models."
    )
    return lines


_BAD = {"doubted": "with a verdict that doubts marginals or log Z", "failed": "failed", "refused": "refused"}


def title(board: Board) -> str:
    """What a board compares."""
    return f"{board.quantity.name}{f' after {board.budget}' if board.budget else ''}, {len(board.models)} models"


def table_of(board: Board) -> tuple[list[str], list[list[str]]]:
    """Headings, and of each solver the texts below them; columns without any text are left out."""
    ratios, ranks = board.ratios, board.ranks
    near = performance(ratios, FACTORS)
    found = []
    for i, solver in enumerate(board.solvers):
        best, count = int((ratios[:, i] == 1).sum()), board.counts[i]
        interval = f"{ranks.low[i]:.1f}–{ranks.high[i]:.1f}"
        shares = [f"{100 * share:.0f} %" for share in near[:, i]]
        outcomes = [str(count[word] or "") for word in WORDS]
        found.append([solver, f"{ranks.mean[i]:.1f}", interval, str(best), *shares, *outcomes])
    shown = [i for i in range(len(HEADINGS)) if any(line[i] for line in found)]
    return [HEADINGS[i] for i in shown], [[line[i] for i in shown] for line in found]


def winners(board: Board, name: str, limit: int = 2) -> str:
    """Who is best on a class, the first few: "wmb.numba 5, pt.numba 2"."""
    return ", ".join(f"{solver} {count}" for solver, count in board.wins().get(name, [])[:limit]) or "nobody"


def best_by_class(boards: Sequence[Board], limit: int = 2) -> tuple[list[str], list[list[str]]]:
    """Names of the boards, and of each class its name, how many models it has, and who is best on each board."""
    heads = [" ".join(filter(None, [board.quantity.short, board.budget])) for board in boards]
    names = dict.fromkeys(name for board in boards for name in board.classes)
    sizes = {name: max(board.classes.count(name) for board in boards) for name in names}
    return heads, [[name, str(sizes[name]), *(winners(board, name, limit) for board in boards)] for name in names]


def _ranking(board: Board, limit: int | None) -> Table:
    heads, lines = table_of(board)
    table = new_table(title(board), heads, numbers=heads[1:], **STYLE)
    for line in lines[:limit]:
        table.add_row(*line)
    return table


def _classes(boards: Sequence[Board]) -> Table:
    heads, rows = best_by_class(boards, limit=1)
    heading = "best by class: first or tied, and on how many of its models"
    table = new_table(heading, ["class", "models", *heads], numbers=("models",), **STYLE)
    for row in rows:
        table.add_row(*row)
    return table


def section(records: Sequence[Record]) -> dict[str, Any] | None:
    """For a report's page; None where there are few models, or no errors."""
    if len({record.axes.model for record in records}) < MIN_MODELS:
        return None
    found = profile(records)
    if not found.boards:
        return None
    looks = pictures.looks(found.boards)
    boards = []
    for number, board in enumerate(found.boards):
        heads, lines = table_of(board)
        chart = drawing.inline(pictures.panel(board, looks), f"across{number}", title(board), {})
        unfolded = board in found.last
        boards.append({"title": title(board), "unfolded": unfolded, "chart": chart, "heads": heads, "lines": lines})
    columns, classes = best_by_class(found.boards)
    floors = [f"{what.floor:g}" for what in (RMSE, LOG_Z)]
    return {"sentences": sentences(found), "columns": columns, "classes": classes, "floors": floors, "boards": boards}
