"""Errors over settings that vary: a curve where one numeric setting alone does, a heat map where two do."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from spinbench.reporting import drawing
from spinbench.reporting.drawing import Looks
from spinbench.reporting.leaderboard import Row, short
from spinbench.reporting.variants import labels, settings_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FloatArray = npt.NDArray[np.float64]
Pick = Callable[[Row], float | None]
Settings = Mapping[str, Any]
Key = tuple[Any, ...]
"""Method, backend, and pairs of a setting and its text."""

QUANTITIES: Mapping[str, Pick] = {
    "RMSE of the marginals": lambda row: row.rmse,
    "|error of log Z|": lambda row: row.log_z_error,
}
MIN_VALUES = 3
"""Of a setting, from which on it has a curve."""
MAX_CURVES = 12
"""Of a picture; others are named beside it."""
COLUMNS = 3
"""Heat maps beside each other before the next ones go below."""
MAX_SETTINGS = 8
"""Numeric settings that may vary in one report before pairs of them are no longer looked for."""
MAX_FIELDS = 600
"""With a number in each of more, a picture takes minutes, megabytes, and nobody reads it."""


@dataclass(frozen=True)
class HeatMap:
    """Errors over two settings.

    Attributes:
        x, y: names of the settings, such as "model.c1".
        xs, ys: their values, increasing.
        columns: what else differs: method, backend, further settings.
        errors: by title of the error, (columns, ys, xs); NaN where there is none.
    """

    x: str
    y: str
    xs: tuple[float, ...]
    ys: tuple[float, ...]
    columns: tuple[str, ...]
    errors: Mapping[str, FloatArray]


@dataclass(frozen=True)
class Curve:
    """Rows that differ in one setting.

    Attributes:
        name: what else there is: method, backend, the model where several are, settings in which curves differ.
        rows: by the values of the setting, increasing.
    """

    name: str
    rows: Mapping[float, Row]


@dataclass(frozen=True)
class Over:
    """Curves over one setting, such as "method.step_size", for each choice of all other settings."""

    setting: str
    curves: tuple[Curve, ...]

    @property
    def left_out(self) -> tuple[str, ...]:
        """Names of the curves that are not drawn."""
        return tuple(curve.name for curve in self.curves[MAX_CURVES:])


def find_heat_maps(board: Sequence[Row]) -> list[HeatMap]:
    """One heat map for each pair of numeric settings that varies while all else stays the same, but no vast ones."""
    settings = [settings_of(row.members[0], "seed") for row in board]
    varied = [name for name, values in _numeric(settings).items() if len(values) > 1]
    if len(varied) > MAX_SETTINGS:
        return []
    maps = (_heat_map(board, settings, x, y) for x, y in combinations(varied, 2))
    return [found for found in maps if found is not None]


def find_curves(board: Sequence[Row]) -> list[Over]:
    """Each numeric setting with three values or more while all else stays the same; those of heat maps are left out."""
    settings = [settings_of(row.members[0], "seed") for row in board]
    mapped = {name for found in find_heat_maps(board) for name in (found.x, found.y)}
    names = [name for name, values in _numeric(settings).items() if len(values) >= MIN_VALUES and name not in mapped]
    found = (Over(name, tuple(_curves(board, settings, name))) for name in names)
    return [over for over in found if over.curves]


def _numeric(settings: Iterable[Settings]) -> dict[str, set[float]]:
    """The values of the settings that are numbers, by their names in order."""
    values: dict[str, set[float]] = defaultdict(set)
    for own in settings:
        for name, value in own.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                values[name].add(value)
    return dict(sorted(values.items()))


def _curves(board: Sequence[Row], settings: Sequence[Settings], name: str) -> Iterator[Curve]:
    groups: dict[Key, dict[float, Row]] = defaultdict(dict)
    for row, own in zip(board, settings, strict=True):
        if isinstance(own.get(name), int | float):
            groups[_key(row, own, {name})][own[name]] = row
    full = {key: cells for key, cells in sorted(groups.items()) if len(cells) >= MIN_VALUES}
    for cells, label in zip(full.values(), _names(full), strict=True):
        if any(pick(row) is not None for row in cells.values() for pick in QUANTITIES.values()):
            yield Curve(label, dict(sorted(cells.items())))


def _heat_map(board: Sequence[Row], settings: Sequence[Settings], x: str, y: str) -> HeatMap | None:
    columns: dict[Key, dict[tuple[float, float], Row]] = defaultdict(dict)
    here = [(row, own) for row, own in zip(board, settings, strict=True) if x in own and y in own]
    determined = {name for _, own in here for name in own if _follows([other for _, other in here], name, x, y)}
    for row, own in here:
        columns[_key(row, own, determined)][own[x], own[y]] = row
    full = {key: cells for key, cells in sorted(columns.items()) if _is_grid(cells)}
    xs, ys = (tuple(sorted({place[i] for cells in full.values() for place in cells})) for i in (0, 1))
    if len(full) * len(xs) * len(ys) > MAX_FIELDS:
        return None
    errors = {title: np.full((len(full), len(ys), len(xs)), np.nan) for title in QUANTITIES}
    for column, cells in enumerate(full.values()):
        for (a, b), row in cells.items():
            for title, pick in QUANTITIES.items():
                errors[title][column, ys.index(b), xs.index(a)] = pick(row)  # None becomes NaN
    if not any(np.isfinite(field).any() for field in errors.values()):
        return None
    return HeatMap(x, y, xs, ys, tuple(_names(full)), errors)


def _key(row: Row, settings: Settings, without: set[str]) -> Key:
    rest = sorted((name, str(value)) for name, value in settings.items() if name not in without)
    return row.method, row.backend, *rest


def _names(keys: Collection[Key]) -> list[str]:
    """Method and backend, with those other settings in which keys of the same method and backend differ."""
    names = [f"{method} on {backend}" for method, backend, *_ in keys]
    differences = labels(names, [dict(key[2:]) for key in keys], "\n")
    return ["\n".join(filter(None, pair)) for pair in zip(names, differences, strict=True)]


def _follows(settings: Iterable[Settings], name: str, x: str, y: str) -> bool:
    """Whether x and y determine a setting, as a model's seed that is chosen by them."""
    values: dict[tuple[float, float], Any] = {}
    return all(values.setdefault((own[x], own[y]), own[name]) == own[name] for own in settings if name in own)


def _is_grid(places: Iterable[tuple[float, float]]) -> bool:
    """Whether each setting varies while the other stays; (1, 1) and (2, 2) alone make no map."""
    xs, ys = zip(*places, strict=True)
    return max(Counter(xs).values()) > 1 and max(Counter(ys).values()) > 1


def draw_heat_map(found: HeatMap) -> Figure:
    """Values printed in the fields; one colour scale an error, logarithmic where all of its values are positive."""
    from matplotlib.colors import LogNorm, Normalize

    shown = [title for title, errors in found.errors.items() if np.isfinite(errors).any()]
    across = min(len(found.columns), COLUMNS)
    blocks = [range(i, min(i + across, len(found.columns))) for i in range(0, len(found.columns), across)]
    width = max(2.2, 0.62 * len(found.xs) + 0.9)
    height = max(1.9, 0.42 * len(found.ys) + 1.0)
    figure = drawing.new_figure(width * across + 1.2, height * len(shown) * len(blocks))
    panels = figure.subplots(len(shown) * len(blocks), across, squeeze=False)
    for line, (title, block) in zip(panels, product(shown, blocks), strict=True):
        errors = found.errors[title]
        known = errors[np.isfinite(errors)]
        scale = (LogNorm if known.min() > 0 else Normalize)(known.min(), known.max())
        for spare in line[len(block) :]:
            spare.set_visible(False)
        for panel, i in zip(line, block, strict=False):
            drawn = panel.pcolormesh(errors[i], norm=scale, cmap="cividis", edgecolors="none")
            _print(panel, errors[i], scale)
            panel.set_xticks(np.arange(len(found.xs)) + 0.5, [f"{x:g}" for x in found.xs])
            panel.set_yticks(np.arange(len(found.ys)) + 0.5, [f"{y:g}" for y in found.ys])
            panel.tick_params(length=0)
            panel.spines[:].set_visible(False)
            panel.set_xlabel(found.x, parse_math=False)
            panel.set_title(found.columns[i], parse_math=False, fontsize=9.5)
        line[0].set_ylabel(found.y, parse_math=False)
        bar = figure.colorbar(drawn, ax=list(line), label=title, aspect=14, pad=0.02)
        if isinstance(scale, LogNorm):
            drawing.mark(bar.ax.yaxis, known.min(), known.max())
    return figure


def _print(panel: Axes, field: FloatArray, scale: Any) -> None:
    for (y, x), value in np.ndenumerate(field):
        if np.isfinite(value):
            colour = "#ffffff" if scale(value) < 0.5 else "#101010"
            panel.text(x + 0.5, y + 0.5, short(value), ha="center", va="center", fontsize=7.5, color=colour)


def draw_curves(over: Over, looks: Looks) -> Figure:
    """A panel for each error that is known, and a legend; a circle is a row that its verdict does not stand behind."""
    drawn = over.curves[:MAX_CURVES]
    rows = [row for curve in drawn for row in curve.rows.values()]
    quantities = {title: pick for title, pick in QUANTITIES.items() if any(pick(row) is not None for row in rows)}
    figure = drawing.new_figure(4.3 * len(quantities) + 2.2, 3.4)
    panels = figure.subplots(1, len(quantities), squeeze=False)[0]
    for panel, (title, pick) in zip(panels, quantities.items(), strict=True):
        for place, curve in enumerate(drawn):
            _draw_curve(panel, curve, drawing.LINES[place % len(drawing.LINES)], looks, pick)
        _scale(panel, [value for curve in drawn for value in curve.rows])
        panel.set_xlabel(over.setting, parse_math=False)
        panel.set_ylabel(title)
    drawing.add_legend(panels[-1], **drawing.BESIDE)
    return figure


def _draw_curve(panel: Axes, curve: Curve, line: Any, looks: Looks, pick: Pick) -> None:
    known = [(x, y, row) for x, row in curve.rows.items() if (y := pick(row))]
    if not known:
        return
    xs, ys, rows = zip(*known, strict=True)
    own: dict[str, Any] = {"color": looks.colours[rows[0].method], "linewidth": 1.4}
    marker = looks.lines[rows[0].backend][1]
    panel.plot(xs, ys, linestyle=line, marker=marker, markersize=4, label=curve.name, **own)
    for x, y, row in known:
        if y == row.rmse and row.rmse_se:
            panel.plot([x, x], [max(y - 2 * row.rmse_se, y / 10), y + 2 * row.rmse_se], linewidth=1, color=own["color"])
        if row.doubted:
            panel.plot(x, y, "o", markersize=11, fillstyle="none", color=drawing.INK)


def _scale(panel: Axes, values: Sequence[float]) -> None:
    """Logarithmic, but for settings that are not positive or go from a number to less than its triple."""
    panel.set_yscale("log")
    if min(values) > 0 and max(values) > 3 * min(values):
        panel.set_xscale("log")
        drawing.mark(panel.xaxis, *panel.get_xlim())
    drawing.mark(panel.yaxis, *panel.get_ylim())
    drawing.add_grid(panel)
