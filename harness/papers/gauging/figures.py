"""Figures 1 to 4 of the gauging paper: tables and pictures of `spinbench.papers.gauging.points`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table

from spinbench.measuring.record_types import Record
from spinbench.papers.gauging.points import EXACT, GRAPHS, NAMES, Point, Quantity, base_name, points, write_csv
from spinbench.reporting import drawing
from spinbench.reporting.display import shown
from spinbench.reporting.leaderboard import short

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

# BP gives no bound
TITLES: Mapping[Quantity, str] = {"error": "mean |log Z - answer| / |log Z|", "gain": "mean log(Z_answer / Z_MF)"}
GAP = "mean log Z - answer (nats)"
LOOKS: Mapping[str, tuple[str, str, Any]] = {
    name: (colour, marker, line)
    for name, colour, marker, line in zip(
        (EXACT, *NAMES.values()),
        (drawing.INK, drawing.MUTED, *drawing.COLOURS),
        ("_", "x", *drawing.MARKERS),
        ("--", "-", "-", (0, (7, 1.5)), "--", ":", "-.", "-"),
        strict=True,
    )
}
"""Colour, marker and line of a method, whatever is drawn beside it."""
WIDEST, THINNEST = 3.0, 1.1
LARGEST, SMALLEST = 8.0, 4.5
"""Points: lines and markers of the first method and of the last, which lies above it, so that equal curves show."""
DODGE = 0.2
"""Between the first and the last curve, sideways, of the least distance of two x. Where curves rise, those further to
the right seem lower: the exact one is the first."""


def report_errors(records: Sequence[Record], folder: Path) -> Sequence[RenderableType]:
    """Figures 1 and 2: tables to print; gauge_error.csv, .png and .svg into the folder."""
    return _report(records, folder, "error")


def report_gains(records: Sequence[Record], folder: Path) -> Sequence[RenderableType]:
    """Figures 3 and 4: tables to print; gauge_gain.csv, .png and .svg into the folder."""
    return _report(records, folder, "gain")


@drawing.style()
def draw(found: Sequence[Point], quantity: Quantity, path: Path) -> None:
    """Draw PATH.png and PATH.svg: one panel for each kind of graph, a curve a method, bars of one standard error.

    Curves that agree are told apart by a shift to the side, by lines and by widths; below stands what bars are.

    Raises:
        SpinbenchError: a file cannot be written.
    """
    panels = list(dict.fromkeys(point.panel for point in found))
    methods = sorted(dict.fromkeys(point.method for point in found), key=lambda method: method != EXACT)
    figure = drawing.new_figure(3.7 * len(panels) + 2.0, 3.6)
    looks = _looks(methods)
    for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False).flat, panels, strict=True):
        _draw_panel(axes, [point for point in found if point.panel == panel], looks)
        axes.set(title=panel, ylabel=TITLES[quantity], yscale="log" if quantity == "error" else "linear")
    entries: dict[str, Artist] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries[label] = handle
    figure.legend(list(entries.values()), list(entries), loc="outside right upper", frameon=False, handlelength=3.2)
    figure.supxlabel(
        f"{_means(found)}; curves are shifted sideways, so that none hides another", fontsize=8.5, color=drawing.MUTED
    )
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


def _means(found: Sequence[Point]) -> str:
    """What a point and its bar are."""
    models = {point.models + point.missing for point in found}
    count = f"{min(models)}{f' to {max(models)}' if len(models) > 1 else ''} model{'' if models == {1} else 's'}"
    return f"means over {count}; error bars: ± standard error of the mean over models"


def _remarks(found: Sequence[Point]) -> Iterator[str]:
    yield _means(found)
    for method in dict.fromkeys(point.method for point in found):
        mine = [point for point in found if point.method == method]
        late, missing = sum(p.not_converged for p in mine), sum(p.missing for p in mine)
        if late or missing:
            told = [f"{late} not converged"] * bool(late) + [f"{missing} without a value"] * bool(missing)
            yield f"{method}: {', '.join(told)}, of {sum(p.models + p.missing for p in mine)}"


def _looks(methods: Sequence[str]) -> dict[str, dict[str, Any]]:
    """By curve: the method's own, with other settings its markers filled in another way; thinner the later it is."""
    looks: dict[str, dict[str, Any]] = {}
    seen: Counter[str] = Counter()
    last = max(len(methods) - 1, 1)
    for turn, method in enumerate(methods):
        base = base_name(method)
        colour, marker, line = LOOKS.get(base, (drawing.INK, "o", "-"))
        looks[method] = {
            "color": colour,
            "marker": marker,
            "markeredgecolor": colour if marker in "x_" else "white",
            "markeredgewidth": 1.2 if marker in "x_" else 0.5,
            "linestyle": line,
            "fillstyle": drawing.FILLS[seen[base] % len(drawing.FILLS)],
            "linewidth": WIDEST + (THINNEST - WIDEST) * turn / last,
            "markersize": LARGEST + (SMALLEST - LARGEST) * turn / last,
        }
        seen[base] += 1
    return looks


def _shifts(methods: Sequence[str], across: Sequence[float]) -> dict[str, float]:
    """How far to the side a curve lies, so that equal ones do not hide each other; all within `DODGE`."""
    gap = min((right - left for left, right in pairwise(across)), default=0.0)
    last = max(len(methods) - 1, 1)
    return {method: DODGE * gap * (turn / last - 0.5) for turn, method in enumerate(methods)}


def _draw_panel(axes: Axes, found: Sequence[Point], looks: Mapping[str, Mapping[str, Any]]) -> None:
    across = sorted({point.x for point in found})
    shifts = _shifts(list(looks), across)
    for method in looks:
        curve = sorted((p.x, p.value, p.value_se or 0.0) for p in found if p.method == method and p.value is not None)
        if curve:
            x, y, spread = zip(*curve, strict=True)
            shifted = [one + shifts[method] for one in x]
            axes.errorbar(shifted, y, spread, label=method, elinewidth=0.8, **looks[method])
    axes.set_xlabel(found[0].axis if found[0].axis == "β" else "number of factors")
    axes.set_xticks(across)
    axes.grid(color=drawing.GRID, linewidth=0.6)
    axes.set_axisbelow(True)
