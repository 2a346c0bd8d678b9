"""Performance profiles as pictures: a panel for each board, a step line for each of the best solvers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spinbench.reporting import drawing
from spinbench.reporting.profiles.boards import Board, performance_profiles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Of a board that are drawn, those of the best mean ranks.
MAX_SOLVERS = 8
# Factor at which the axis ends.
MAX_FACTOR = 1e3
# Colour and line by solver, the same in all panels.
SolverStyles = dict[str, tuple[str, Any]]


def solver_styles(boards: Iterable[Board]) -> SolverStyles:
    """For the solvers that are drawn."""
    names = sorted({solver for board in boards for solver in board.solvers[:MAX_SOLVERS]})
    colours = {name: drawing.method_colour(re.split(r"[.(]", name, maxsplit=1)[0]) for name in names}
    n_by_colour: dict[str, int] = Counter()
    styles = {}
    for name, colour in colours.items():  # solvers of one colour differ in their lines
        styles[name] = colour, drawing.LINE_STYLES[n_by_colour[colour] % len(drawing.LINE_STYLES)]
        n_by_colour[colour] += 1
    return styles


def draw_board(board: Board, styles: SolverStyles) -> Figure:
    """One board with a legend."""
    figure = drawing.new_figure(5.6, 3.3)
    _draw_profile(figure.subplots(), board, styles)
    return figure


def draw_boards(boards: Sequence[Board]) -> Figure:
    """All boards side by side, two in a row."""
    styles = solver_styles(boards)
    rows = -(-len(boards) // 2)
    figure = drawing.new_figure(11.2, 3.5 * rows)
    panels = figure.subplots(rows, 2, squeeze=False)
    for spare in panels.flat[len(boards) :]:
        spare.set_visible(False)
    for axes, board in zip(panels.flat, boards, strict=False):
        _draw_profile(axes, board, styles)
        axes.set_title(f"{board.quantity.name}{f' after {board.budget}' if board.budget else ''}", parse_math=False)
    return figure


def save_profiles(boards: Sequence[Board], *paths: Path) -> list[Path]:
    """Draw all boards into files; returns them, none where there is nothing to draw. As `drawing.save_figure`."""
    if not boards:
        return []
    with drawing.plot_style():
        return drawing.save_figure(draw_boards(boards), *paths)


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
    drawing.set_log_ticks(axes.xaxis, 1, MAX_FACTOR)
    drawing.add_grid(axes)
    drawing.add_legend(axes, **{**drawing.LEGEND_BESIDE, "bbox_to_anchor": (1.0, 1.02), "fontsize": 8.5})
