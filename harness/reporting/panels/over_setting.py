"""Errors over one numeric setting: where it alone varies, a curve for each method and whatever else differs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spinbench.foundation.trees import flattened
from spinbench.reporting import drawing, heatmaps
from spinbench.reporting.leaderboard import Row
from spinbench.reporting.looks import Looks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FEWEST = 3
"""Values from which on a setting has a curve."""
MOST = 12
"""Curves of a picture; others are named beside it."""


@dataclass(frozen=True)
class Curve:
    """Rows that differ in one setting.

    Attributes:
        name: what else there is: method, backend, the model where several are, settings in which curves differ.
        values: of the setting, increasing.
        rows: with these values.
    """

    name: str
    values: tuple[float, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Over:
    """Curves over one setting.

    Attributes:
        setting: such as "method.step_size".
        curves: one for each choice of all other settings.
    """

    setting: str
    curves: tuple[Curve, ...]

    @property
    def left_out(self) -> tuple[str, ...]:
        """Names of the curves that are not drawn."""
        return tuple(curve.name for curve in self.curves[MOST:])


def find(board: Sequence[Row]) -> list[Over]:
    """Each numeric setting with three values or more while all else stays the same; those of heat maps are left out."""
    settings = [flattened({key: v for key, v in row.members[0].config.items() if key != "seed"}) for row in board]
    values: dict[str, set[float]] = defaultdict(set)
    for one in settings:
        for name, value in one.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                values[name].add(value)
    mapped = {name for found in heatmaps.find(board) for name in (found.x, found.y)}
    names = sorted(name for name, found in values.items() if len(found) >= FEWEST and name not in mapped)
    found = (Over(name, tuple(_curves(board, settings, name))) for name in names)
    return [over for over in found if over.curves]


def _curves(board: Sequence[Row], settings: Sequence[dict[str, Any]], name: str) -> Iterable[Curve]:
    groups: dict[tuple[Any, ...], dict[float, Row]] = defaultdict(dict)
    for row, one in zip(board, settings, strict=True):
        if isinstance(one.get(name), int | float):
            rest = (row.method, row.backend, *sorted((k, str(v)) for k, v in one.items() if k != name))
            groups[rest][one[name]] = row
    full = {key: cells for key, cells in sorted(groups.items()) if len(cells) >= FEWEST}
    for key, label in zip(full, heatmaps.names(list(full)), strict=True):
        values = tuple(sorted(full[key]))
        rows = tuple(full[key][value] for value in values)
        if any(pick(row) is not None for row in rows for pick in heatmaps.QUANTITIES.values()):
            yield Curve(label, values, rows)


def picture(over: Over, looks: Looks) -> Figure:
    """A panel for each error that is known, and a legend; a circle is a row that its verdict does not stand behind."""
    drawn = over.curves[:MOST]
    quantities = {
        title: pick
        for title, pick in heatmaps.QUANTITIES.items()
        if any(pick(row) is not None for curve in drawn for row in curve.rows)
    }
    figure = drawing.new_figure(4.3 * len(quantities) + 2.2, 3.4)
    panels = figure.subplots(1, len(quantities), squeeze=False)[0]
    for panel, (title, pick) in zip(panels, quantities.items(), strict=True):
        for place, curve in enumerate(drawn):
            _draw(panel, curve, place, looks, pick)
        _scale(panel, [value for curve in drawn for value in curve.values])
        panel.set_xlabel(over.setting, parse_math=False)
        panel.set_ylabel(title)
    legend = panels[-1].legend(
        loc="upper left", bbox_to_anchor=(1.02, 1.02), frameon=False, fontsize=8, handlelength=2.6
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
    return figure


def _draw(panel: Axes, curve: Curve, place: int, looks: Looks, pick: heatmaps.Pick) -> None:
    known = [(value, row, y) for value, row in zip(curve.values, curve.rows, strict=True) if (y := pick(row))]
    if not known:
        return
    method, backend = curve.rows[0].method, curve.rows[0].backend
    line = drawing.LINES[place % len(drawing.LINES)]
    own: dict[str, Any] = {"color": looks.colours[method], "linewidth": 1.4}
    xs, ys = [value for value, _, _ in known], [y for _, _, y in known]
    panel.plot(xs, ys, linestyle=line, marker=looks.lines[backend][1], markersize=4, label=curve.name, **own)
    for x, row, y in known:
        if y == row.rmse and row.rmse_se:
            panel.plot([x, x], [max(y - 2 * row.rmse_se, y / 10), y + 2 * row.rmse_se], linewidth=1, color=own["color"])
    doubted = [(x, y) for x, row, y in known if row.doubted]
    if doubted:
        panel.plot(*zip(*doubted, strict=True), "o", markersize=11, fillstyle="none", color=drawing.INK)


def _scale(panel: Axes, values: Sequence[float]) -> None:
    """Logarithmic, but for settings that are not positive or go from a number to less than its triple."""
    panel.set_yscale("log")
    if min(values) > 0 and max(values) > 3 * min(values):
        panel.set_xscale("log")
        drawing.mark(panel.xaxis, *panel.get_xlim())
    drawing.mark(panel.yaxis, *panel.get_ylim())
    panel.grid(which="major", color=drawing.GRID, linewidth=0.7)
    panel.set_axisbelow(True)
