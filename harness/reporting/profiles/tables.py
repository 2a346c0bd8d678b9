"""What a terminal shows of many models: one page, whatever their number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table

from spinbench.reporting.profiles.boards import Board
from spinbench.reporting.profiles.measures import performance
from spinbench.reporting.profiles.profile import Profile

MANY = 8
"""Models from which on a sweep ends with a page on all of them, instead of a table for each."""
LINES = 8
"""Solvers that are shown of a board, unless all are asked for."""
FACTORS = np.array([2.0, 10.0])
"""How far behind the best a solver may be to count as near it."""

WORDS = ("doubted", "failed", "refused", "not run")
HEADINGS = ("solver", "mean rank", "95 %", "best", "≤ 2 ×", "≤ 10 ×", *WORDS)


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


def lines(board: Board) -> list[tuple[str, ...]]:
    """Of each solver the texts for `HEADINGS`."""
    ratios, ranks = board.ratios, board.ranks
    near = performance(ratios, FACTORS)
    found = []
    for i, solver in enumerate(board.solvers):
        best, count = int((ratios[:, i] == 1).sum()), board.counts[i]
        found.append(
            (
                solver,
                f"{ranks.mean[i]:.1f}",
                f"{ranks.low[i]:.1f}–{ranks.high[i]:.1f}",
                str(best),
                *(f"{100 * share:.0f} %" for share in near[:, i]),
                *(str(count[word] or "") for word in WORDS),
            )
        )
    return found


def shown_columns(found: Sequence[tuple[str, ...]]) -> list[int]:
    """Of `HEADINGS`, those with anything in them."""
    return [i for i in range(len(HEADINGS)) if any(line[i] for line in found)]


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
    found = lines(board)
    columns = shown_columns(found)
    table = _table(title(board))
    for i in columns:
        table.add_column(HEADINGS[i], justify="right" if i else "left", no_wrap=i > 0, overflow="fold")
    for line in found[:limit]:
        table.add_row(*(line[i] for i in columns))
    return table


def _classes(boards: Sequence[Board]) -> Table:
    table = _table("best by class: first or tied, and on how many of its models")
    table.add_column("class", overflow="fold")
    table.add_column("models", justify="right")
    heads, rows = best_by_class(boards, limit=1)
    for head in heads:
        table.add_column(head, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def _table(heading: str) -> Table:
    return Table(title=heading, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=(0, 1))
