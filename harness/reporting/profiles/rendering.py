"""What a terminal and pages show of many models, whatever their number: sentences, tables, and performance profiles.

A picture has a panel for each board, with a step line for each of the best solvers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import RenderableType
from rich.table import Table

from spinbench.foundation.remarks import format_count
from spinbench.measuring.record_types import Record
from spinbench.reporting import plotting, progress_display
from spinbench.reporting.profiles.boards import LOG_Z, RMSE, Board, FloatArray, performance_profiles
from spinbench.reporting.profiles.profile import Profile, profile

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.typing import LineStyleType

# Number of models from which a sweep ends with one page on all of them and not with a table for each.
MAX_MODEL_TABLES = 8
# Largest number of solvers of a board that are printed and drawn, by mean rank; a table lists all on request.
MAX_SOLVERS = 8
# Ratios to the best error within which a solver counts as near it.
NEAR_FACTORS = np.array([2.0, 10.0])

# Number of models from which a report has a page across models.
MIN_MODELS = 5
OUTCOMES = ("doubted", "failed", "refused", "not run")
HEADINGS = ("solver", "mean rank", "95 %", "best", "≤ 2 ×", "≤ 10 ×", *OUTCOMES)
TABLE_STYLE: dict[str, Any] = {"title_style": "bold", "padding": (0, 1)}
# Ratio at which the axis ends.
MAX_FACTOR = 1e3
# Seconds at which the axis of runtimes begins.
MIN_SECONDS = 1e-4
# {solver: (colour, line style)}, the same in all panels.
SolverStyles = dict[str, tuple[str, "LineStyleType"]]


def render_profile(profile: Profile, *, all_solvers: bool = False) -> Iterator[RenderableType]:
    """Sentences, a table for each board, solvers from the best mean rank on, and who is best on which class.

    Args:
        profile: what to show.
        all_solvers: whether to show all solvers after all budgets, and not only the first few after the longest.
    """
    boards = profile.last
    max_solvers: int | None = MAX_SOLVERS
    if all_solvers:
        boards, max_solvers = profile.boards, None
    yield "\n".join(summary_sentences(profile))
    for board in boards:
        yield _ranking_table(board, max_solvers)
    if boards:
        yield _class_table(boards)
    for table in profile.tables if all_solvers else ():
        yield progress_display.new_table(*table, number_columns=table.heads[1:], **TABLE_STYLE)
    if not all_solvers and (
        len(boards) < len(profile.boards) or any(len(board.solvers) > MAX_SOLVERS for board in boards)
    ):
        yield "all solvers, after each budget: spinbench profile FOLDER --all"


def summary_sentences(profile: Profile) -> list[str]:
    """What was compared, what counts as a failure, and what the columns are."""
    cells = sum(profile.counts.values())
    failures = ", ".join(
        f"{profile.counts[outcome]} {text}" for outcome, text in _FAILURE_PHRASES.items() if profile.counts[outcome]
    )
    not_run = max((sum(count["not run"] for count in board.counts) for board in profile.boards), default=0)
    first = (
        f"{format_count(profile.models, 'model')}, {format_count(cells, 'cell')}: {profile.counts['ok']} vouched for"
    )
    if failures:
        first += f"; {failures}"
    if not_run:
        first += f"; {not_run} were not run"
    if failures or not_run:
        first += ". All others count as not solved, those in doubt for the number in doubt"
    lines = [f"{first}."]
    if profile.unanswered:
        lines.append(f"No exact answer, so nothing to compare, on {', '.join(profile.unanswered)}.")
    lines.append(f"{profile.truth[0].upper()}{profile.truth[1:]}.")
    lines.append(
        "best: on how many models first or tied; ≤ 2 ×, ≤ 10 ×: on which share of the models within that factor of the "
        "best; 95 %: of the mean rank, by the bootstrap over models."
    )
    return lines


_FAILURE_PHRASES = {
    "doubted": "with a verdict that doubts marginals or log Z",
    "failed": "failed",
    "refused": "refused",
}


def board_title(board: Board) -> str:
    """What a board compares."""
    return f"{_number_title(board)}, {format_count(len(board.models), 'model')}"


def _number_title(board: Board) -> str:
    return " after ".join(filter(None, (board.quantity.name, board.budget)))


def board_table(board: Board) -> tuple[list[str], list[list[str]]]:
    """Headings, and of each solver the texts below them; columns without any text are left out."""
    ratios, ranks = board.ratios, board.ranks
    near_shares = performance_profiles(ratios, NEAR_FACTORS)
    lines = []
    for i, solver in enumerate(board.solvers):
        n_best, count = int((ratios[:, i] == 1).sum()), board.counts[i]
        interval = f"{ranks.low[i]:.1f}–{ranks.high[i]:.1f}"
        shares = [f"{100 * share:.0f} %" for share in near_shares[:, i]]
        outcomes = [str(count[outcome] or "") for outcome in OUTCOMES]
        lines.append([solver, f"{ranks.mean[i]:.1f}", interval, str(n_best), *shares, *outcomes])
    shown_columns = [i for i in range(len(HEADINGS)) if any(line[i] for line in lines)]
    return [HEADINGS[i] for i in shown_columns], [[line[i] for i in shown_columns] for line in lines]


def format_winners(board: Board, name: str, limit: int = 2) -> str:
    """Who is best on a class, the first few: "wmb.numba 5, pt.numba 2"."""
    return ", ".join(f"{solver} {count}" for solver, count in board.wins().get(name, [])[:limit]) or "nobody"


def best_by_class(boards: Sequence[Board], limit: int = 2) -> tuple[list[str], list[list[str]]]:
    """Names of the boards, and of each class its name, how many models it has, and who is best on each board."""
    heads = [" ".join(filter(None, [board.quantity.short, board.budget])) for board in boards]
    names = dict.fromkeys(name for board in boards for name in board.classes)
    sizes = {name: max(board.classes.count(name) for board in boards) for name in names}
    return heads, [
        [name, str(sizes[name]), *(format_winners(board, name, limit) for board in boards)] for name in names
    ]


def _ranking_table(board: Board, limit: int | None) -> Table:
    heads, lines = board_table(board)
    return progress_display.new_table(board_title(board), heads, lines[:limit], number_columns=heads[1:], **TABLE_STYLE)


def _class_table(boards: Sequence[Board]) -> Table:
    heads, rows = best_by_class(boards, limit=1)
    heading = "best by class: first or tied, and on how many of its models"
    columns = ["class", "models", *heads]
    return progress_display.new_table(heading, columns, rows, number_columns=("models",), **TABLE_STYLE)


def report_section(records: Sequence[Record]) -> dict[str, Any] | None:
    """For a report's page; None where there are few models, or no errors."""
    if len({record.axes.model for record in records}) < MIN_MODELS:
        return None
    profiles = profile(records)
    if not profiles.boards:
        return None
    looks = solver_styles(profiles.boards)
    boards = []
    for number, board in enumerate(profiles.boards):
        heads, lines = board_table(board)
        chart = plotting.render_inline_svg(draw_board(board, looks), f"across{number}", board_title(board), {})
        unfolded = board in profiles.last
        boards.append(
            {"title": board_title(board), "unfolded": unfolded, "chart": chart, "heads": heads, "lines": lines}
        )
    columns, classes = best_by_class(profiles.boards)
    floors = [f"{quantity.floor:g}" for quantity in (RMSE, LOG_Z)]
    return {
        "sentences": summary_sentences(profiles),
        "columns": columns,
        "classes": classes,
        "floors": floors,
        "boards": boards,
    }


def solver_styles(boards: Iterable[Board]) -> SolverStyles:
    """For the solvers that are drawn."""
    names = sorted({solver for board in boards for solver in board.solvers[:MAX_SOLVERS]})
    colours = {name: plotting.method_colour(re.split(r"[.(]", name, maxsplit=1)[0]) for name in names}
    n_by_colour: dict[str, int] = Counter()
    styles = {}
    # Solvers that share a colour differ in line style.
    for name, colour in colours.items():
        styles[name] = colour, plotting.LINE_STYLES[n_by_colour[colour] % len(plotting.LINE_STYLES)]
        n_by_colour[colour] += 1
    return styles


def draw_board(board: Board, styles: SolverStyles) -> Figure:
    """One board with a legend."""
    figure = plotting.new_figure(5.6, 3.3)
    _draw_profile(figure.subplots(), board, styles)
    return figure


def draw_boards(boards: Sequence[Board], runtimes: Mapping[str, FloatArray]) -> Figure:
    """All boards side by side, two in a row, and the distributions of runtimes."""
    styles = solver_styles(boards)
    rows = -(-(len(boards) + 1) // 2)
    figure = plotting.new_figure(11.2, 3.5 * rows)
    panels = figure.subplots(rows, 2, squeeze=False)
    drawn = [solver for solver in boards[-1].solvers if solver in runtimes][:MAX_SOLVERS]
    _draw_runtimes(panels.flat[len(boards)], {solver: runtimes[solver] for solver in drawn}, styles)
    for spare in panels.flat[len(boards) + 1 :]:
        spare.set_visible(False)
    for axes, board in zip(panels.flat, boards, strict=False):
        _draw_profile(axes, board, styles)
        axes.set_title(_number_title(board), parse_math=False)
    return figure


def save_profiles(profile: Profile, *paths: Path) -> list[Path]:
    """Draw all boards and the runtimes into files; returns them, none where there is nothing to draw."""
    if not profile.boards:
        return []
    with plotting.plot_style():
        return plotting.save_figure(draw_boards(profile.boards, profile.runtimes), *paths)


def _draw_runtimes(axes: Axes, runtimes: Mapping[str, FloatArray], styles: SolverStyles) -> None:
    """Step lines, with what is never reached beyond the right end."""
    reached = np.concatenate([[], *(seconds[np.isfinite(seconds)] for seconds in runtimes.values())])
    axes.set_visible(bool(reached.size))
    if not reached.size:
        return
    ends = max(float(reached.min()), MIN_SECONDS), max(float(reached.max()), 2 * MIN_SECONDS)
    axes.set(xscale="log", xlabel="seconds", ylabel="share of models and targets", xlim=ends, ylim=(0, 1.02))
    axes.set_title("seconds to each RMSE of 0.1 to 0.0001", parse_math=False)
    for solver, seconds in runtimes.items():
        colour, line = styles[solver]
        shares = np.arange(1, len(seconds) + 1) / len(seconds)
        axes.step(seconds, shares, where="post", color=colour, linestyle=line, linewidth=1.5, label=solver)
    plotting.set_log_ticks(axes.xaxis, *ends)
    plotting.add_grid(axes)
    plotting.add_legend(axes, **{**plotting.LEGEND_BESIDE, "bbox_to_anchor": (1.0, 1.02), "fontsize": 8.5})


def _draw_profile(axes: Axes, board: Board, styles: SolverStyles) -> None:
    ratios = board.ratios
    factors = np.unique(np.concatenate([[1.0, MAX_FACTOR], ratios[np.isfinite(ratios) & (ratios < MAX_FACTOR)]]))
    shares = performance_profiles(ratios, factors)
    axes.set(
        xscale="log", xlabel="factor of the best", ylabel="share of the models", xlim=(1, MAX_FACTOR), ylim=(0, 1.02)
    )
    for i, solver in enumerate(board.solvers[:MAX_SOLVERS]):
        colour, line = styles[solver]
        axes.step(factors, shares[:, i], where="post", color=colour, linestyle=line, linewidth=1.5, label=solver)
    plotting.set_log_ticks(axes.xaxis, 1, MAX_FACTOR)
    plotting.add_grid(axes)
    plotting.add_legend(axes, **{**plotting.LEGEND_BESIDE, "bbox_to_anchor": (1.0, 1.02), "fontsize": 8.5})
