"""Figures 1 to 4 of the gauging paper: tables and pictures of `spinbench.papers.gauging.points`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.table import Table

from spinbench.foundation.remarks import format_count
from spinbench.measuring.record_types import Record
from spinbench.papers.gauging.points import (
    EXACT,
    GRAPHS,
    NAMES,
    Point,
    Quantity,
    average_points,
    method_of_label,
)
from spinbench.reporting import export, leaderboard, plotting, progress_display

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

# BP is missing, since it gives no bound
TITLES: Mapping[Quantity, str] = {"error": "mean |log Z - answer| / |log Z|", "gain": "mean log(Z_answer / Z_MF)"}
GAP = "mean log Z - answer (nats)"
AXIS_LABELS = {"β": "β", "factors": "number of factors"}
SCALES: Mapping[Quantity, str] = {"error": "log", "gain": "linear"}
# Colour, marker and line style of each method, the same in all figures.
STYLES: Mapping[str, tuple[str, str, Any]] = {
    name: (colour, marker, line)
    for name, colour, marker, line in zip(
        (EXACT, *NAMES.values()),
        (plotting.INK, plotting.MUTED, *plotting.COLOURS),
        ("_", "x", *plotting.MARKERS),
        ("--", "-", "-", (0, (7, 1.5)), "--", ":", "-.", "-"),
        strict=True,
    )
}
MAX_LINE_WIDTH, MIN_LINE_WIDTH = 3.0, 1.1
# Marker sizes (points) of the first and of the last method, which is drawn on top: equal curves stay visible.
MAX_MARKER_SIZE, MIN_MARKER_SIZE = 8.0, 4.5
# Horizontal offset between first and last curve, in units of the smallest distance of two abscissae. Where curves rise,
# those shifted to the right seem lower, so that the exact curve comes first.
MAX_OFFSET = 0.2


def report_errors(records: Sequence[Record], folder: Path) -> Sequence[RenderableType]:
    """Figures 1 and 2: tables to print; gauge_error.csv, .png and .svg into the folder."""
    return _write_report(records, folder, "error")


def report_gains(records: Sequence[Record], folder: Path) -> Sequence[RenderableType]:
    """Figures 3 and 4: tables to print; gauge_gain.csv, .png and .svg into the folder."""
    return _write_report(records, folder, "gain")


@plotting.plot_style()
def draw_figure(points: Sequence[Point], quantity: Quantity, path: Path) -> None:
    """Draw PATH.png and PATH.svg: one panel for each kind of graph, a curve a method, bars of one standard error.

    Curves that agree are told apart by a shift to the side, by lines and by widths; below stands what bars are.

    Raises:
        SpinbenchError: a file cannot be written.
    """
    panels = list(dict.fromkeys(point.panel for point in points))
    methods = sorted(dict.fromkeys(point.method for point in points), key=lambda method: method != EXACT)
    figure = plotting.new_figure(3.7 * len(panels) + 2.0, 3.6)
    styles = _curve_styles(methods)
    for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False).flat, panels, strict=True):
        _draw_panel(axes, [point for point in points if point.panel == panel], styles)
        axes.set(title=panel, ylabel=TITLES[quantity], yscale=SCALES[quantity])
    entries: dict[str, Artist] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries[label] = handle
    figure.legend(list(entries.values()), list(entries), loc="outside right upper", frameon=False, handlelength=3.2)
    figure.supxlabel(
        f"{_describe_averages(points)}; curves are shifted sideways, so that none hides another",
        fontsize=8.5,
        color=plotting.MUTED,
    )
    for suffix in (".png", ".svg"):
        plotting.save_figure(figure, path.with_name(path.name + suffix))


def _write_report(records: Sequence[Record], folder: Path, quantity: Quantity) -> list[RenderableType]:
    figure_points = average_points(records, quantity)
    if not any(point.models for point in figure_points):
        return [f"no figure: no record of {', '.join(GRAPHS)} gives {TITLES[quantity].removeprefix('mean ')}"]
    stem = folder / f"gauge_{quantity}"
    export.write_csv([asdict(point) for point in figure_points], stem.with_name(f"{stem.name}.csv"))
    draw_figure(figure_points, quantity, stem)
    parts: list[RenderableType] = []
    for panel in dict.fromkeys(point.panel for point in figure_points):
        panel_points = [point for point in figure_points if point.panel == panel]
        parts.append(
            _build_table(panel_points, f"{panel}: {TITLES[quantity]}", [(p.value, p.value_se) for p in panel_points])
        )
        if any(point.gap is not None for point in panel_points):
            parts.append(_build_table(panel_points, f"{panel}: {GAP}", [(p.gap, p.gap_se) for p in panel_points]))
    path = stem.with_name(f"{stem.name}.png")
    return [
        *parts,
        *_describe_failures(figure_points),
        f"figure: {progress_display.short_path(path)}, .svg and .csv beside it",
    ]


def _build_table(points: Sequence[Point], title: str, values: Sequence[tuple[float | None, float | None]]) -> Table:
    """Methods down, x across."""
    across = sorted({point.x for point in points})
    numbers = [f"{x:g}" for x in across]
    columns, width = (points[0].axis, *numbers), len(title)
    place = {(point.method, point.x): value for point, value in zip(points, values, strict=True)}
    rows = [
        (method, *(leaderboard.format_with_error(*place.get((method, x), (None, None))) for x in across))
        for method in dict.fromkeys(point.method for point in points)
    ]
    return progress_display.new_table(
        title, columns, rows, number_columns=numbers, title_style="bold", padding=(0, 1), min_width=width
    )


def _describe_averages(points: Sequence[Point]) -> str:
    """What a point and its bar are."""
    models = {point.models + point.missing for point in points}
    count = format_count(min(models), "model")
    if len(models) > 1:
        count = f"{min(models)} to {max(models)} models"
    return f"means over {count}; error bars: ± standard error of the mean over models"


def _describe_failures(points: Sequence[Point]) -> Iterator[str]:
    yield _describe_averages(points)
    for method in dict.fromkeys(point.method for point in points):
        curve = [point for point in points if point.method == method]
        late, missing = sum(p.not_converged for p in curve), sum(p.missing for p in curve)
        remarks = []
        if late:
            remarks.append(f"{late} not converged")
        if missing:
            remarks.append(f"{missing} without a value")
        if remarks:
            yield f"{method}: {', '.join(remarks)}, of {sum(p.models + p.missing for p in curve)}"


def _curve_styles(methods: Sequence[str]) -> dict[str, dict[str, object]]:
    """By curve: the method's own, with other settings its markers filled in another way; thinner the later it is."""
    styles: dict[str, dict[str, object]] = {}
    occurrences: Counter[str] = Counter()
    last = max(len(methods) - 1, 1)
    for position, method in enumerate(methods):
        base = method_of_label(method)
        colour, marker, line = STYLES.get(base, (plotting.INK, "o", "-"))
        edge = ("white", 0.5)
        # Markers without a filling.
        if marker in "x_":
            edge = (colour, 1.2)
        styles[method] = {
            "color": colour,
            "marker": marker,
            "markeredgecolor": edge[0],
            "markeredgewidth": edge[1],
            "linestyle": line,
            "fillstyle": plotting.FILLS[occurrences[base] % len(plotting.FILLS)],
            "linewidth": MAX_LINE_WIDTH + (MIN_LINE_WIDTH - MAX_LINE_WIDTH) * position / last,
            "markersize": MAX_MARKER_SIZE + (MIN_MARKER_SIZE - MAX_MARKER_SIZE) * position / last,
        }
        occurrences[base] += 1
    return styles


def _curve_offsets(methods: Sequence[str], across: Sequence[float]) -> dict[str, float]:
    """How far to the side a curve lies, so that equal ones do not hide each other; all within `MAX_OFFSET`."""
    gap = min((right - left for left, right in pairwise(across)), default=0.0)
    last = max(len(methods) - 1, 1)
    return {method: MAX_OFFSET * gap * (position / last - 0.5) for position, method in enumerate(methods)}


def _draw_panel(axes: Axes, points: Sequence[Point], styles: Mapping[str, Mapping[str, Any]]) -> None:
    across = sorted({point.x for point in points})
    shifts = _curve_offsets(list(styles), across)
    for method in styles:
        curve = sorted((p.x, p.value, p.value_se or 0.0) for p in points if p.method == method and p.value is not None)
        if curve:
            x, y, spread = zip(*curve, strict=True)
            shifted_x = [position + shifts[method] for position in x]
            axes.errorbar(shifted_x, y, spread, label=method, elinewidth=0.8, **styles[method])
    axes.set_xlabel(AXIS_LABELS[points[0].axis])
    axes.set_xticks(across)
    axes.grid(color=plotting.GRID, linewidth=0.6)
    axes.set_axisbelow(True)
