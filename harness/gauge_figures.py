"""Figures 1 to 4 of the gauging paper from records: tightness of bounds on log Z, averaged over random models.

Ahn, Chertkov and Shin, "Gauging Variational Inference", NIPS 2017, section 5. Small graphs: |log Z - bound| / |log Z|
against β. Large graphs: the gain log(Z_LB / Z_MF) over mean field on the same model, against the number of factors or
β. The relative error is unstable where log Z is near 0, so the absolute gap log Z - bound stands beside both.
"""

from __future__ import annotations

import csv
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table

from spinbench import figures, tables
from spinbench.display import shown
from spinbench.errors import SpinbenchError
from spinbench.leaderboard import short
from spinbench.records import Record

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

Quantity = Literal["error", "gain"]
TITLES: Mapping[Quantity, str] = {"error": "mean |log Z - bound| / |log Z|", "gain": "mean log(Z_LB / Z_MF)"}
GAP = "mean log Z - bound (nats)"
BASELINE, EXACT = "forney_mf", "exact"
NAMES = {
    BASELINE: "MF",
    "bp": "BP",
    "g_mf": "G-MF",
    "g_bp": "G-BP",
    "g_bp_single": "G-BP-single",
    "g_bp_multiple": "G-BP-multiple",
    "g_bp_sequential": "G-BP-sequential",
}
GRAPHS = {"gauge_complete": "complete graph", "gauge_regular": "-regular graph", "gauge_grid": "grid"}


@dataclass(frozen=True)
class Point:
    """A method on the models of one point of a figure.

    Attributes:
        panel: title of the panel: the graphs, and what else is fixed.
        axis, x: "β" or "factors", and its value.
        method: label of the curve.
        models: how many gave a value.
        missing: how many did not: a cell failed, or log Z, or mean field's bound, is not known.
        not_converged: of `models`, those whose bound is that of an iteration that did not end.
        value, value_se: the relative error, or the gain in nats; None without models.
        gap, gap_se: log Z - bound in nats, over the models whose log Z is known; negative only for an estimate.
        log_z_known: how many models `gap` is over.
    """

    panel: str
    axis: str
    x: float
    method: str
    models: int
    missing: int
    not_converged: int
    value: float | None
    value_se: float | None
    gap: float | None
    gap_se: float | None
    log_z_known: int


def report_errors(records: Sequence[Record], folder: Path) -> Sequence[RenderableType]:
    """Figures 1 and 2: tables to print; gauge_error.csv, .png and .svg into the folder."""
    return _report(records, folder, "error")


def report_gains(records: Sequence[Record], folder: Path) -> Sequence[RenderableType]:
    """Figures 3 and 4: tables to print; gauge_gain.csv, .png and .svg into the folder."""
    return _report(records, folder, "gain")


def points(records: Iterable[Record], quantity: Quantity) -> list[Point]:
    """All points of a figure, in the order of their records; x is β where that varies, else the number of factors."""
    used = [r for r in records if r["status"] != "skipped" and r["config"]["model"]["name"] in GRAPHS]
    varied = quantity == "error" or len({r["config"]["model"]["beta"] for r in used}) > 1
    log_z, field = _known(used)
    groups: dict[tuple[str, str, float], list[Record]] = defaultdict(list)
    for label, group in tables.variants(used).items():
        for record in group:
            model = record["config"]["model"]
            x = float(model["beta"]) if varied else float(_factors(model))
            groups[_panel(model, beta=varied), _named(label), x].append(record)
    if quantity == "gain":
        groups |= _exact(groups, log_z)
    found = []
    for (panel, method, x), group in groups.items():
        values, gaps, open_ended = [], [], 0
        for record in group:
            bound = log_z.get(_key(record)) if method == EXACT else _log_z(record)
            true, base = log_z.get(_key(record)), field.get(_key(record))
            value = _relative(bound, true) if quantity == "error" else _difference(bound, base)
            gap = _difference(true, bound)
            if gap is not None:
                gaps.append(gap)
            if value is not None:
                values.append(value)
                open_ended += method != EXACT and record["result"]["status"] != "ok"
        found.append(
            Point(
                panel,
                "β" if varied else "factors",
                x,
                method,
                len(values),
                len(group) - len(values),
                open_ended,
                *_average(values),
                *_average(gaps),
                len(gaps),
            )
        )
    return found


def write_csv(found: Sequence[Point], path: Path) -> None:
    """One line a point, columns as in `Point`; what is not known is empty.

    Raises:
        SpinbenchError: the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([field.name for field in fields(Point)])
            writer.writerows(astuple(point) for point in found)
    except OSError as error:
        raise SpinbenchError(f"the table {path} cannot be written: {error.strerror or error}") from error


@figures.style()
def draw(found: Sequence[Point], quantity: Quantity, path: Path) -> None:
    """Draw PATH.png and PATH.svg: one panel for each kind of graph, a curve a method, bars of one standard error.

    Raises:
        SpinbenchError: a file cannot be written.
    """
    panels = list(dict.fromkeys(point.panel for point in found))
    methods = list(dict.fromkeys(point.method for point in found))
    figure = figures.new_figure(3.6 * len(panels) + 1.8, 3.4)
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
        figures.save(figure, path.with_name(path.name + suffix))


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
    rest = cycle(zip(figures.COLOURS, figures.MARKERS, strict=True))
    for method in methods:
        if method == EXACT:
            looks[method] = {"color": figures.INK, "linestyle": "--"}
        elif method == NAMES[BASELINE]:
            looks[method] = {"color": figures.MUTED, "marker": "x"}
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
    axes.grid(color=figures.GRID, linewidth=0.6)
    axes.set_axisbelow(True)


def _known(records: Iterable[Record]) -> tuple[dict[str, float], dict[str, float]]:
    """For each model log Z, and the best bound of mean field, as far as they are known."""
    log_z: dict[str, float] = {}
    field: dict[str, float] = {}
    for record in records:
        key = _key(record)
        if (known := (record["reference"] or {}).get("log_z")) is not None:
            log_z[key] = float(known)
        if record["config"]["method"]["name"] == BASELINE and (bound := _log_z(record)) is not None:
            field[key] = max(bound, field.get(key, -math.inf))
    return log_z, field


def _exact(
    groups: Mapping[tuple[str, str, float], Sequence[Record]], log_z: Mapping[str, float]
) -> dict[tuple[str, str, float], list[Record]]:
    """One record of each model whose log Z is known, for the curve that no bound can pass."""
    found: dict[tuple[str, str, float], dict[str, Record]] = defaultdict(dict)
    for (panel, _, x), group in groups.items():
        for record in group:
            if _key(record) in log_z:
                found[panel, EXACT, x].setdefault(_key(record), record)
    return {place: list(models.values()) for place, models in found.items()}


def _panel(model: Mapping[str, Any], *, beta: bool) -> str:
    """The graphs and the kind of their factors, with their number where β varies and with β where it does not."""
    name = GRAPHS[model["name"]]
    graph = f"{model['degree']}{name}" if name.startswith("-") else name
    fixed = f"{_factors(model)} factors" if beta else f"β = {model['beta']:g}"
    return f"{graph}, {fixed}, {model['kind']}"


def _factors(model: Mapping[str, Any]) -> int:
    return int(model["rows"]) * int(model["cols"]) if "rows" in model else int(model["nodes"])


def _named(label: str) -> str:
    method, _, settings = label.partition(" ")
    return " ".join(filter(None, [NAMES.get(method, method), settings]))


def _key(record: Record) -> str:
    return json.dumps(record["config"]["model"], sort_keys=True)


def _log_z(record: Record) -> float | None:
    result = record["result"]
    return None if result is None or result["log_z"] is None else float(result["log_z"])


def _relative(bound: float | None, true: float | None) -> float | None:
    return None if bound is None or not true else abs(true - bound) / abs(true)


def _difference(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other


def _average(values: Sequence[float]) -> tuple[float | None, float | None]:
    """The mean, and its standard error, which is None for fewer than two values."""
    if not values:
        return None, None
    mean, error = math.fsum(values) / len(values), None
    if len(values) > 1:
        error = math.sqrt(math.fsum((x - mean) ** 2 for x in values) / (len(values) - 1) / len(values))
    return mean, error
