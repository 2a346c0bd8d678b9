"""Errors over settings that vary: a curve where one numeric setting alone does, a heat map where two do."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from spinbench.reporting import plotting, variants
from spinbench.reporting.leaderboard import Row, format_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure
    from matplotlib.typing import LineStyleType

FloatArray = npt.NDArray[np.float64]
RowError = Callable[[Row], float | None]
Settings = Mapping[str, Any]
RowsWithSettings = Sequence[tuple[Row, Settings]]
# By the values of some settings.
CellRows = Mapping[tuple[float, ...], Row]

QUANTITIES: Mapping[str, RowError] = {
    "RMSE of the marginals": lambda row: row.rmse,
    "|error of log Z|": lambda row: row.log_z_error,
}
# Smallest number of values of a setting for a curve.
MIN_VALUES = 3
# Largest number of curves in a picture; further ones are listed beside it.
MAX_CURVES = 12
# Heat maps in a row.
MAX_COLUMNS = 3
# Largest number of varying numeric settings of a report for which pairs get heat maps.
MAX_SETTINGS = 8
# Largest number of fields of a heat map with numbers: more take minutes and megabytes and cannot be read.
MAX_FIELDS = 600


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
class SettingCurves:
    """Curves over one setting, such as "method.step_size", for each choice of all other settings."""

    setting: str
    curves: tuple[Curve, ...]

    @property
    def undrawn_curves(self) -> tuple[str, ...]:
        """Names of the curves that are not drawn."""
        return tuple(curve.name for curve in self.curves[MAX_CURVES:])


def find_heat_maps(board: Sequence[Row]) -> list[HeatMap]:
    """One heat map for each pair of numeric settings that varies while all else stays the same, but no vast ones."""
    rows = _rows_with_settings(board)
    varied = [name for name, values in _numeric_values(rows).items() if len(values) > 1]
    if len(varied) > MAX_SETTINGS:
        return []
    maps = (_build_heat_map(rows, x, y) for x, y in combinations(varied, 2))
    return [heat_map for heat_map in maps if heat_map is not None]


def find_curves(board: Sequence[Row]) -> list[SettingCurves]:
    """Each numeric setting with three values or more while all else stays the same; those of heat maps are left out."""
    rows, heat_maps = _rows_with_settings(board), find_heat_maps(board)
    over_each = (
        SettingCurves(name, tuple(_curves_over(rows, name)))
        for name, values in _numeric_values(rows).items()
        if len(values) >= MIN_VALUES and not any(name in (heat_map.x, heat_map.y) for heat_map in heat_maps)
    )
    return [curves for curves in over_each if curves.curves]


def _rows_with_settings(board: Sequence[Row]) -> RowsWithSettings:
    return [(row, variants.flat_settings(row.records[0], "seed")) for row in board]


def _numeric_values(rows: RowsWithSettings) -> dict[str, set[float]]:
    """The values of the settings that are numbers, by their names in order."""
    values: dict[str, set[float]] = defaultdict(set)
    for name, value in (item for _, settings in rows for item in settings.items()):
        if isinstance(value, int | float) and not isinstance(value, bool):
            values[name].add(value)
    return dict(sorted(values.items()))


def _curves_over(rows: RowsWithSettings, name: str) -> Iterator[Curve]:
    numeric = [(row, settings) for row, settings in rows if isinstance(settings.get(name), int | float)]
    for label, cells in _group_by_other_settings(numeric, (name,), {name}, lambda cells: len(cells) >= MIN_VALUES):
        if any(row_error(row) is not None for row in cells.values() for row_error in QUANTITIES.values()):
            yield Curve(label, {value: cells[value,] for (value,) in sorted(cells)})


def _build_heat_map(rows: RowsWithSettings, x: str, y: str) -> HeatMap | None:
    varied = [(row, settings) for row, settings in rows if x in settings and y in settings]
    names = {name for _, settings in varied for name in settings}
    determined = {name for name in names if _is_determined_by([settings for _, settings in varied], name, x, y)}
    grids = _group_by_other_settings(varied, (x, y), determined, _settings_vary_separately)
    xs, ys = (tuple(sorted({place[i] for _, cells in grids for place in cells})) for i in (0, 1))
    if len(grids) * len(xs) * len(ys) > MAX_FIELDS:
        return None
    errors = {title: np.full((len(grids), len(ys), len(xs)), np.nan) for title in QUANTITIES}
    for (column, (_, cells)), (title, row_error) in product(enumerate(grids), QUANTITIES.items()):
        for (a, b), row in cells.items():
            errors[title][column, ys.index(b), xs.index(a)] = row_error(row)  # float conversion: None becomes NaN
    if not any(np.isfinite(field).any() for field in errors.values()):
        return None
    return HeatMap(x, y, xs, ys, tuple(label for label, _ in grids), errors)


def _group_by_other_settings(
    rows: RowsWithSettings, names: Sequence[str], varied: set[str], is_group: Callable[[CellRows], bool]
) -> list[tuple[str, CellRows]]:
    """Groups of rows that are equal in all but the varied settings, each by the values of the named ones, under a
    label: method and backend, with those other settings in which groups of the same method and backend differ."""
    groups: dict[Any, dict[tuple[float, ...], Row]] = defaultdict(dict)
    for row, settings in rows:
        others = sorted((name, str(value)) for name, value in settings.items() if name not in varied)
        groups[row.method, row.backend, *others][tuple(settings[name] for name in names)] = row
    groups_by_key = {key: cells for key, cells in sorted(groups.items()) if is_group(cells)}
    solvers = [f"{method} on {backend}" for method, backend, *_ in groups_by_key]
    differences = variants.difference_labels(solvers, [dict(key[2:]) for key in groups_by_key], "\n")
    labels = ["\n".join(filter(None, pair)) for pair in zip(solvers, differences, strict=True)]
    return list(zip(labels, groups_by_key.values(), strict=True))


def _is_determined_by(settings: Iterable[Settings], name: str, x: str, y: str) -> bool:
    """Whether x and y determine a setting, as a model's seed that is chosen by them."""
    values: dict[tuple[float, float], object] = {}
    return all(
        values.setdefault((row_settings[x], row_settings[y]), row_settings[name]) == row_settings[name]
        for row_settings in settings
        if name in row_settings
    )


def _settings_vary_separately(places: Iterable[tuple[float, ...]]) -> bool:
    """Whether each setting varies while the other stays; (1, 1) and (2, 2) alone make no map."""
    return all(max(Counter(values).values()) > 1 for values in zip(*places, strict=True))


def draw_heat_map(heat_map: HeatMap) -> Figure:
    """Values printed in the fields; one colour scale an error, logarithmic where all of its values are positive."""
    from matplotlib.colors import LogNorm, Normalize

    titles = [title for title, errors in heat_map.errors.items() if np.isfinite(errors).any()]
    n_columns = min(len(heat_map.columns), MAX_COLUMNS)
    blocks = [range(i, min(i + n_columns, len(heat_map.columns))) for i in range(0, len(heat_map.columns), n_columns)]
    width = max(2.2, 0.62 * len(heat_map.xs) + 0.9)
    height = max(1.9, 0.42 * len(heat_map.ys) + 1.0)
    figure = plotting.new_figure(width * n_columns + 1.2, height * len(titles) * len(blocks))
    panels = figure.subplots(len(titles) * len(blocks), n_columns, squeeze=False)
    for panel_row, (title, block) in zip(panels, product(titles, blocks), strict=True):
        errors = heat_map.errors[title]
        finite_errors = errors[np.isfinite(errors)]
        scale = (LogNorm if finite_errors.min() > 0 else Normalize)(finite_errors.min(), finite_errors.max())
        for spare in panel_row[len(block) :]:
            spare.set_visible(False)
        for panel, i in zip(panel_row, block, strict=False):
            mesh = panel.pcolormesh(errors[i], norm=scale, cmap="cividis", edgecolors="none")
            _print_values(panel, errors[i], scale)
            panel.set_xticks(np.arange(len(heat_map.xs)) + 0.5, [f"{x:g}" for x in heat_map.xs])
            panel.set_yticks(np.arange(len(heat_map.ys)) + 0.5, [f"{y:g}" for y in heat_map.ys])
            panel.tick_params(length=0)
            panel.spines[:].set_visible(False)
            panel.set_xlabel(heat_map.x, parse_math=False)
            panel.set_title(heat_map.columns[i], parse_math=False, fontsize=9.5)
        panel_row[0].set_ylabel(heat_map.y, parse_math=False)
        bar = figure.colorbar(mesh, ax=list(panel_row), label=title, aspect=14, pad=0.02)
        if isinstance(scale, LogNorm):
            plotting.set_log_ticks(bar.ax.yaxis, finite_errors.min(), finite_errors.max())
    return figure


def _print_values(panel: Axes, field: FloatArray, scale: Normalize) -> None:
    for (y, x), value in np.ndenumerate(field):
        if np.isfinite(value):
            colour = "#ffffff" if scale(value) < 0.5 else "#101010"
            panel.text(x + 0.5, y + 0.5, format_number(value), ha="center", va="center", fontsize=7.5, color=colour)


def draw_curves(over: SettingCurves, styles: plotting.PlotStyles) -> Figure:
    """A panel for each error that is known, and a legend; a circle is a row that its verdict does not stand behind."""
    drawn_curves = over.curves[:MAX_CURVES]
    rows = [row for curve in drawn_curves for row in curve.rows.values()]
    quantities = {
        title: row_error for title, row_error in QUANTITIES.items() if any(row_error(row) is not None for row in rows)
    }
    figure = plotting.new_figure(4.3 * len(quantities) + 2.2, 3.4)
    panels = figure.subplots(1, len(quantities), squeeze=False)[0]
    for panel, (title, row_error) in zip(panels, quantities.items(), strict=True):
        for place, curve in enumerate(drawn_curves):
            _draw_curve(panel, curve, plotting.LINE_STYLES[place % len(plotting.LINE_STYLES)], styles, row_error)
        _scale_axes(panel, [value for curve in drawn_curves for value in curve.rows])
        panel.set_xlabel(over.setting, parse_math=False)
        panel.set_ylabel(title)
    plotting.add_legend(panels[-1], **plotting.LEGEND_BESIDE)
    return figure


def _draw_curve(
    panel: Axes, curve: Curve, line: LineStyleType, styles: plotting.PlotStyles, row_error: RowError
) -> None:
    points = [(x, y, row) for x, row in curve.rows.items() if (y := row_error(row))]
    if not points:
        return
    xs, ys, rows = zip(*points, strict=True)
    style: dict[str, Any] = {"color": styles.colours[rows[0].method], "linewidth": 1.4}
    marker = styles.lines[rows[0].backend][1]
    panel.plot(xs, ys, linestyle=line, marker=marker, markersize=4, label=curve.name, **style)
    for x, y, row in points:
        if y == row.rmse and row.rmse_se:
            panel.plot(
                [x, x], [max(y - 2 * row.rmse_se, y / 10), y + 2 * row.rmse_se], linewidth=1, color=style["color"]
            )
        if row.doubted:
            panel.plot(x, y, "o", markersize=11, fillstyle="none", color=plotting.INK)


def _scale_axes(panel: Axes, values: Sequence[float]) -> None:
    """Logarithmic, but for settings that are not positive or go from a number to less than its triple."""
    panel.set_yscale("log")
    if min(values) > 0 and max(values) > 3 * min(values):
        panel.set_xscale("log")
        plotting.set_log_ticks(panel.xaxis, *panel.get_xlim())
    plotting.set_log_ticks(panel.yaxis, *panel.get_ylim())
    plotting.add_grid(panel)
