"""Performance profiles as pictures: a panel for each board, a step line for each of the best solvers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spinbench.reporting import drawing
from spinbench.reporting.profiles.boards import Board, performance

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SOLVERS = 8
"""Of a board that are drawn, those of the best mean ranks."""
WORST = 1e3
"""Factor at which the axis ends."""
Looks = dict[str, tuple[str, Any]]
"""Colour and line by solver, the same in all panels."""


def looks(boards: Iterable[Board]) -> Looks:
    """For the solvers that are drawn."""
    names = sorted({solver for board in boards for solver in board.solvers[:SOLVERS]})
    colours = {name: drawing.method_colour(re.split(r"[.(]", name, maxsplit=1)[0]) for name in names}
    lines: dict[str, int] = Counter()
    found = {}
    for name, own in colours.items():  # solvers of one colour differ in their lines
        found[name] = own, drawing.LINES[lines[own] % len(drawing.LINES)]
        lines[own] += 1
    return found


def panel(board: Board, known: Looks) -> Figure:
    """One board with a legend."""
    figure = drawing.new_figure(5.6, 3.3)
    _draw(figure.subplots(), board, known)
    return figure


def figure(boards: Sequence[Board]) -> Figure:
    """All boards side by side, two in a row."""
    known = looks(boards)
    rows = -(-len(boards) // 2)
    found = drawing.new_figure(11.2, 3.5 * rows)
    panels = found.subplots(rows, 2, squeeze=False)
    for spare in panels.flat[len(boards) :]:
        spare.set_visible(False)
    for axes, board in zip(panels.flat, boards, strict=False):
        _draw(axes, board, known)
        axes.set_title(f"{board.quantity.name}{f' after {board.budget}' if board.budget else ''}", parse_math=False)
    return found


def save(boards: Sequence[Board], *paths: Path) -> list[Path]:
    """Draw all boards into files; returns them, none where there is nothing to draw. Errors as of `drawing.save`."""
    if not boards:
        return []
    with drawing.style():
        return drawing.save(figure(boards), *paths)


def _draw(axes: Axes, board: Board, known: Looks) -> None:
    ratios = board.ratios
    factors = np.unique(np.concatenate([[1.0, WORST], ratios[np.isfinite(ratios) & (ratios < WORST)]]))
    shares = performance(ratios, factors)
    axes.set(xscale="log", xlabel="factor of the best", ylabel="share of the models", xlim=(1, WORST), ylim=(0, 1.02))
    for i, solver in enumerate(board.solvers[:SOLVERS]):
        colour, line = known[solver]
        axes.step(factors, shares[:, i], where="post", color=colour, linestyle=line, linewidth=1.5, label=solver)
    drawing.mark(axes.xaxis, 1, WORST)
    drawing.add_grid(axes)
    drawing.add_legend(axes, **{**drawing.BESIDE, "bbox_to_anchor": (1.0, 1.02), "fontsize": 8.5})
