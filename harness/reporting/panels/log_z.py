"""The answers for a model's log Z on one axis, with the bracket that its bounds make."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from spinbench.reporting import brackets, drawing
from spinbench.reporting.brackets import Bracket
from spinbench.reporting.leaderboard import Row
from spinbench.reporting.looks import Looks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 5.2
"""Of the picture, in inches."""
MARKERS = {"lower": ">", "upper": "<"}
"""Of bounds: they point to where log Z is."""


def figure(rows: Sequence[Row], looks: Looks, names: Sequence[str]) -> Figure | None:
    """A line a row that has an answer; None where there is neither a bound nor an answer to show.

    Args:
        rows: of one model.
        looks: of the whole report.
        names: for each row, the id of its part of the SVG.
    """
    known = brackets.bracket([record for row in rows for record in row.members])
    shown = [(row, name) for row, name in zip(rows, names, strict=True) if _answers(row)]
    if not shown or not (known.lower_method or known.upper_method):
        return None
    figure = drawing.new_figure(WIDTH, 1.0 + 0.22 * len(shown))
    panel = figure.subplots()
    low, high = _limits([row for row, _ in shown], known)
    panel.set(xlim=(low, high), ylim=(len(shown) - 0.4, -0.6), xlabel="log Z; bars are two standard errors, each way")
    _draw_bracket(panel, known)
    for place, (row, name) in enumerate(shown):
        _draw_row(panel, row, place, looks, name)
    panel.set_yticks(range(len(shown)), [f"{row.method} on {row.backend}" for row, _ in shown], fontsize=8)
    panel.tick_params(axis="y", length=0, pad=8)  # room for markers at the margin
    panel.ticklabel_format(axis="x", useOffset=False)
    return figure


def _draw_bracket(panel: Axes, known: Bracket) -> None:
    low, high = panel.get_xlim()
    panel.axvspan(max(known.lower, low), min(known.upper, high), color=drawing.HIGHLIGHT, alpha=0.45, lw=0, zorder=0)
    for value, there in ((known.lower, known.lower_method), (known.upper, known.upper_method)):
        if there and low <= value <= high:
            panel.axvline(value, color=drawing.MUTED, linewidth=1)
    if known.exact is not None:
        panel.axvline(known.exact, color=drawing.INK, linewidth=1.2, linestyle=(0, (4, 2)))


def _draw_row(panel: Axes, row: Row, place: int, looks: Looks, name: str) -> None:
    low, high = panel.get_xlim()
    style: dict[str, Any] = {"color": looks.colours[row.method], "gid": name}
    found = _answers(row)
    for value, error, kind in found:
        within = low <= value <= high
        at = min(max(value, low), high)
        marker = "X" if row.doubted else MARKERS.get(kind, "o")
        panel.plot([at], [place], marker=marker, markersize=6, alpha=1 if within else 0.5, clip_on=False, **style)
        if within and error:
            panel.plot([value - 2 * error, value + 2 * error], [place, place], linewidth=1.4, **style)
    for sign, limit in ((-1, low), (1, high)):
        if beyond := [value for value, _, _ in found if sign * value > sign * limit]:
            text = " to ".join(dict.fromkeys(f"{value:.4g}" for value in (min(beyond), max(beyond))))
            # above the row's line, on which its other answers lie
            side: dict[str, Any] = {"ha": "left" if sign < 0 else "right", "xytext": (-4 * sign, 3.5)}
            panel.annotate(text, (limit, place), textcoords="offset points", va="bottom", fontsize=7.5, **side)


def _answers(row: Row) -> list[tuple[float, float, str]]:
    """(log Z, standard error, kind) of each of the row's records that has one."""
    results = [record.result for record in row.members if record.status == "ok"]
    found = [(one.log_z, one.log_z_se, str(one.log_z_kind)) for one in results]
    return [(value, error or 0.0, kind) for value, error, kind in found if value is not None and math.isfinite(value)]


def _limits(rows: Sequence[Row], known: Bracket) -> tuple[float, float]:
    """Around the bracket and the answers that are vouched for; those far away stand at the margin with their number."""
    answers = [one for row in rows for one in _answers(row) if not row.doubted] or [
        one for row in rows for one in _answers(row)
    ]
    near = [value + sign * 2 * error for value, error, kind in answers if kind not in MARKERS for sign in (-1, 1)]
    near += [value for value in (known.lower, known.upper, known.exact) if value is not None and math.isfinite(value)]
    low, high = min(near), max(near)
    room = 0.06 * (high - low) or 0.5
    return low - room, high + room
