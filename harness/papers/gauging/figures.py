"""Figures 1 to 4 of the gauging paper: tables and pictures of `spinbench.papers.gauging.points`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table

from spinbench.measuring.records import Record
from spinbench.papers.gauging.points import BASELINE, EXACT, GRAPHS, NAMES, Point, Quantity, points, write_csv
from spinbench.reporting import drawing
from spinbench.reporting.display import shown
from spinbench.reporting.leaderboard import short

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

TITLES: Mapping[Quantity, str] = {"error": "mean |log Z - bound| / |log Z|", "gain": "mean log(Z_LB / Z_MF)"}
GAP = "mean log Z - bound (nats)"


def report_errors(records: Sequence[Record], folder: Path) -> Sequence[RenderableType]:
    """Figures 1 and 2: tables to print; gauge_error.csv, .png and .svg into the folder."""
    return _report(records, folder, "error")


def report_gains(records: Sequence[Record], folder: Path) -> Sequence[RenderableType]:
    """Figures 3 and 4: tables to print; gauge_gain.csv, .png and .svg into the folder."""
    return _report(records, folder, "gain")


@drawing.style()
def draw(found: Sequence[Point], quantity: Quantity, path: Path) -> None:
    """Draw PATH.png and PATH.svg: one panel for each kind of graph, a curve a method, bars of one standard error.

    Raises:
        SpinbenchError: a file cannot be written.
    """
    panels = list(dict.fromkeys(point.panel for point in found))
    methods = list(dict.fromkeys(point.method for point in found))
    figure = drawing.new_figure(3.6 * len(panels) + 1.8, 3.4)
    looks = _looks(methods)
    for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False).flat, panels, strict=True):
        _draw_panel(axes, [point for point in found if point.panel == panel], looks)
        axes.set(title=panel, ylabel=TITLES[quantity], yscale="log" if quantity == "error" else "linear")
    entries: dict[str, Artist] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries[label] = handle
    figure.legend(list(entries.values()), list(entries), loc="outside right upper", frameon=False)
    for suffix in (".png", ".svg"):
        drawing.save(figure, path.with_name(path.name + suffix))


def _report(records: Sequence[Record], folder: Path, quantity: Quantity) -> list[RenderableType]:
    found = points(records, quantity)
    if not any(point.models for point in found):
        return [f"no figure: no record of {', '.join(GRAPHS)} gives {TITLES[quantity].removeprefix('mean ')}"]
    stem = folder / f"gauge_{quantity}"
    write_csv(found, stem.with_name(f"{stem.name}.csv"))
    draw(found, quantity, stem)
    parts: list[RenderableType] = []
    for panel in dict.fromkeys(point.panel for point in found):
        here = [point for point in found if point.panel == panel]
        parts.append(_table(here, f"{panel}: {TITLES[quantity]}", [(p.value, p.value_se) for p in here]))
        if any(point.gap is not None for point in here):
            parts.append(_table(here, f"{panel}: {GAP}", [(p.gap, p.gap_se) for p in here]))
    path = stem.with_name(f"{stem.name}.png")
    return [*parts, *_remarks(found), f"figure: {shown(path)}, .svg and .csv beside it"]


def _table(found: Sequence[Point], title: str, values: Sequence[tuple[float | None, float | None]]) -> Table:
    """Methods down, x across."""
    table = Table(
        title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=(0, 1), min_width=len(title)
    )
    across = sorted({point.x for point in found})
    table.add_column(found[0].axis)
    for x in across:
        table.add_column(f"{x:g}", justify="right", no_wrap=True)
    place = {(point.method, point.x): value for point, value in zip(found, values, strict=True)}
    for method in dict.fromkeys(point.method for point in found):
        table.add_row(method, *(_text(*place.get((method, x), (None, None))) for x in across))
    return table


def _text(value: float | None, error: float | None) -> str:
    return short(value) if error is None else f"{short(value)} ± {error:.1g}"


def _remarks(found: Sequence[Point]) -> Iterator[str]:
    models = {point.models + point.missing for point in found}
    yield f"means over {min(models)}{f' to {max(models)}' if len(models) > 1 else ''} models ± standard error"
    for method in dict.fromkeys(point.method for point in found):
        mine = [point for point in found if point.method == method]
        late, missing = sum(p.not_converged for p in mine), sum(p.missing for p in mine)
        if late or missing:
            told = [f"{late} not converged"] * bool(late) + [f"{missing} without a value"] * bool(missing)
            yield f"{method}: {', '.join(told)}, of {sum(p.models + p.missing for p in mine)}"


def _looks(methods: Sequence[str]) -> dict[str, dict[str, Any]]:
    looks: dict[str, dict[str, Any]] = {}
    rest = cycle(zip(drawing.COLOURS, drawing.MARKERS, strict=True))
    for method in methods:
        if method == EXACT:
            looks[method] = {"color": drawing.INK, "linestyle": "--"}
        elif method == NAMES[BASELINE]:
            looks[method] = {"color": drawing.MUTED, "marker": "x"}
        else:
            colour, marker = next(rest)
            looks[method] = {"color": colour, "marker": marker}
    return looks


def _draw_panel(axes: Axes, found: Sequence[Point], looks: Mapping[str, Mapping[str, Any]]) -> None:
    for method in dict.fromkeys(point.method for point in found):
        curve = sorted((p.x, p.value, p.value_se or 0.0) for p in found if p.method == method and p.value is not None)
        if curve:
            x, y, spread = zip(*curve, strict=True)
            axes.errorbar(x, y, spread, label=method, linewidth=1.3, markersize=4, elinewidth=0.8, **looks[method])
    axes.set_xlabel(found[0].axis if found[0].axis == "β" else "number of factors")
    axes.set_xticks(sorted({point.x for point in found}))
    axes.grid(color=drawing.GRID, linewidth=0.6)
    axes.set_axisbelow(True)
