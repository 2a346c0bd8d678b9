"""The report of figures 2 and 3 of the DHMC paper: mean square errors over (c1, c2) as heat maps, CSV and summaries.

Zhang, Sutton, Storkey and Ghahramani, "Continuous Relaxations for Discrete Hamiltonian Monte Carlo", NIPS 2012,
section 5. A record is one run. Its square error is that of this run alone: of the marginals the mean over the nodes of
(estimate - exact)², of log Z the square of the error. The MSE of a graph is the mean over its runs.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.table import Table

from spinbench.foundation.remarks import format_count
from spinbench.measuring.record_types import Record
from spinbench.reporting import export, leaderboard, plotting, progress_display, settings_plots, variants

TITLES = {"marginal": "MSE of node marginals", "log_z": "MSE of log Z (nats²)"}
FILE = "mse"
# Columns of the summary: mean, median and maximum over the graphs.
SUMMARY = ("marginal\nMSE", "median", "max", "log Z\nMSE", "median", "max")
# Position on a logarithmic axis of the errors of exact methods.
MIN_ERROR = 1e-12
# Rows of the figure: each shows the mean square of this number of the records.
MEASURES = {"marginal": variants.metric_value("marginal_rmse"), "log_z": variants.method_log_z_error}
NAMES = {"gibbs": "Gibbs", "dhmc": "DHMC", "block_gibbs": "block Gibbs", "exact": "exact"}


def report(records: Sequence[Record], folder: Path) -> Sequence[RenderableType]:
    """Write a figure (PNG, SVG) and its numbers (CSV) for each set of graphs into `folder`; the summaries as tables."""
    sets = group_by_graph_set(records)
    if not sets:
        return ["no heat maps: there is no good record of a model with c1 and c2"]
    parts: list[RenderableType] = []
    for graphs in sets:
        stem = folder / "_".join(filter(None, (FILE, graphs.name)))
        parts.append(build_summary_table(graphs))
        if len(graphs.columns) > 1:
            parts.append(build_comparison_table(graphs))
        export.write_csv(_table_lines(graphs), stem.with_name(f"{stem.name}.csv"))
        draw_heat_maps(graphs, stem)
        parts.append(
            f"heat maps: {progress_display.short_path(stem.with_name(stem.name + '.png'))}, .svg and .csv beside it"
        )
    return parts


def build_summary_table(graphs: GraphSet) -> Table:
    """Mean, median and maximum over the graphs, one line a method."""
    columns = ("method", "graphs", *SUMMARY)
    table = progress_display.new_table(
        graphs.title, columns, number_columns=columns[1:], title_style="bold", padding=(0, 1)
    )
    for column in graphs.columns:
        values = {measure: list(_mse_by_graph(column, measure).values()) for measure in MEASURES}
        figures = [text for measure in MEASURES for text in _format_statistics(values[measure])]
        table.add_row(column.label, str(len(values["marginal"])), *figures)
    return table


def build_comparison_table(graphs: GraphSet) -> Table:
    """For each pair of methods and each measure, on how many graphs the second has the smaller MSE."""
    measures = ("marginals", "log Z")
    table = progress_display.new_table(None, ("smaller MSE", *measures), number_columns=measures, padding=(0, 1))
    for first_column, second_column in combinations(graphs.columns, 2):
        counts = []
        for measure in MEASURES:
            first, second = _mse_by_graph(first_column, measure), _mse_by_graph(second_column, measure)
            both = first.keys() & second.keys()
            counts.append(f"{sum(second[place] < first[place] for place in both)} of {len(both)}")
        table.add_row(f"{second_column.label} than {first_column.label}", *counts)
    return table


def _table_lines(graphs: GraphSet) -> list[dict[str, object]]:
    """One line for each measure, method and graph."""
    return [
        {
            "measure": measure,
            "column": column.label,
            "method": column.method,
            "backend": column.backend,
            "settings": format_settings(column.settings),
            "c1": c1,
            "c2": c2,
            **asdict(cell),
        }
        for measure in MEASURES
        for column in graphs.columns
        for (c1, c2), cell in sorted(column.cells[measure].items())
    ]


def _mse_by_graph(column: Column, measure: str) -> dict[tuple[float, float], float]:
    return {place: cell.mse for place, cell in column.cells[measure].items() if cell.mse is not None}


def _format_statistics(values: Sequence[float]) -> list[str]:
    if not values:
        return ["–", "–", "–"]
    return [leaderboard.format_number(figure(values)) for figure in (statistics.fmean, statistics.median, max)]


def draw_heat_maps(graphs: GraphSet, stem: Path) -> None:
    """Rows of panels are measures, columns methods, with one colour scale a row; into `stem`.png and .svg.

    Raises:
        SpinbenchError: a file cannot be written.
    """
    errors = {
        title: np.full((len(graphs.columns), len(graphs.c1), len(graphs.c2)), np.nan) for title in TITLES.values()
    }
    for measure, title in TITLES.items():
        for number, column in enumerate(graphs.columns):
            for (c1, c2), mse in _mse_by_graph(column, measure).items():
                errors[title][number, graphs.c1.index(c1), graphs.c2.index(c2)] = max(mse, MIN_ERROR)
    if not any(np.isfinite(field).any() for field in errors.values()):
        return
    labels = tuple(column.label for column in graphs.columns)
    heat_map = settings_plots.HeatMap("c2 (couplings)", "c1 (biases)", graphs.c2, graphs.c1, labels, errors)
    with plotting.plot_style():
        figure = settings_plots.draw_heat_map(heat_map)
        figure.suptitle(graphs.title, fontsize=9.5, parse_math=False)
        plotting.save_figure(figure, *(stem.with_name(stem.name + suffix) for suffix in (".png", ".svg")))


@dataclass(frozen=True)
class Cell:
    """A method on a graph.

    Attributes:
        mse: mean over runs; None where no run has a value.
        standard_error: of that mean, from the spread over runs; None for fewer than two.
        runs: that have a value.
        missing: runs without one.
    """

    mse: float | None
    standard_error: float | None
    runs: int
    missing: int


@dataclass(frozen=True)
class Column:
    """A method with its settings on all graphs of a set.

    Attributes:
        label: short enough for a heading; different from the other columns'.
        method, backend: names.
        settings: all of the method.
        cells: by measure ("marginal", "log_z") and (c1, c2).
    """

    label: str
    method: str
    backend: str
    settings: Mapping[str, Any]
    cells: Mapping[str, Mapping[tuple[float, float], Cell]]


@dataclass(frozen=True)
class GraphSet:
    """Graphs that differ in c1, c2 and seed alone; a figure.

    Attributes:
        name: the model's parameters in which it differs from other sets of the sweep, "" for a single one.
        title: all of the model's parameters that tell what is drawn.
        columns: in the order of the records.
        c1, c2: values that occur, rising.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    c1: tuple[float, ...]
    c2: tuple[float, ...]


def group_by_graph_set(records: Iterable[Record]) -> list[GraphSet]:
    """Records of models with the parameters c1 and c2, by everything else about the model."""
    groups: dict[str, list[Record]] = defaultdict(list)
    models: dict[str, dict[str, object]] = {}
    for record in records:
        model = record.config["model"]
        if record.status == "skipped" or "c1" not in model or "c2" not in model:
            continue
        rest = {key: value for key, value in model.items() if key not in ("c1", "c2", "seed")}
        key = format_settings(rest)
        models[key] = rest
        groups[key].append(record)
    differences = dict(zip(models, variants.differing_settings([""] * len(models), list(models.values())), strict=True))
    return [
        GraphSet(
            name=format_settings(differences[key]).replace(" ", "_").replace("=", "-"),
            title=_figure_title(models[key], group),
            columns=tuple(_build_columns(group)),
            c1=tuple(sorted({float(record.config["model"]["c1"]) for record in group})),
            c2=tuple(sorted({float(record.config["model"]["c2"]) for record in group})),
        )
        for key, group in groups.items()
        if any(record.status == "ok" for record in group)
    ]


def _build_columns(records: Sequence[Record]) -> list[Column]:
    groups: dict[tuple[str, str, str], list[Record]] = defaultdict(list)
    for record in records:
        axes = record.axes
        groups[axes.method, axes.backend, record.protocol].append(record)
    labels = _column_labels([group[0].config for group in groups.values()])
    return [
        Column(
            label=label,
            method=key[0],
            backend=key[1],
            settings={k: v for k, v in group[0].config["method"].items() if k != "name"},
            cells={measure: _average_by_graph(group, value) for measure, value in MEASURES.items()},
        )
        for label, (key, group) in zip(labels, groups.items(), strict=True)
    ]


def _average_by_graph(records: Sequence[Record], value: variants.RecordValue) -> dict[tuple[float, float], Cell]:
    runs: dict[tuple[float, float], list[float | None]] = defaultdict(list)
    for record in records:
        model = record.config["model"]
        error = value(record)
        square = None if error is None else error**2
        runs[float(model["c1"]), float(model["c2"])].append(square)
    return {place: _average(squares) for place, squares in runs.items()}


def _average(squares: Sequence[float | None]) -> Cell:
    values = [square for square in squares if square is not None]
    return Cell(*variants.mean_with_error(values), len(values), len(squares) - len(values))


def _column_labels(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names, with what counts as a sample of Gibbs, and with the settings that tell columns of one method apart."""
    methods = [str(config["method"]["name"]) for config in configs]
    differences = variants.differing_settings(methods, list(map(_flatten_settings, configs)))
    labels = []
    for method, config, distinguishing in zip(methods, configs, differences, strict=True):
        remarks = [f"{name}={value}" for name, value in distinguishing.items()]
        sample = config["method"].get("sample")
        if method == "gibbs" and config["budget"].get("samples") is not None and sample is not None:
            hidden = ("sample", "scan") if "sample" in distinguishing else ()
            others = [f"{name}={value}" for name, value in distinguishing.items() if name not in hidden]
            remarks = [f"1 {sample} a sample", *others]
        label = NAMES.get(method, method)
        labels.append(f"{label} ({', '.join(remarks)})" if remarks else label)
    return labels


def _flatten_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    method = {key: value for key, value in config["method"].items() if key != "name"}
    budget = {key: value for key, value in config["budget"].items() if value is not None}
    return {**method, **budget, "chains": config["chains"], "backend": config["backend"]["name"]}


def _figure_title(model: Mapping[str, object], records: Sequence[Record]) -> str:
    runs = len({record.config["seed"] for record in records})
    size = str(model["name"])
    if "rows" in model:
        size = f"{model['rows']} × {model['cols']} {size}"
    rest = {k: v for k, v in model.items() if k not in ("name", "rows", "cols")}
    spent = " or ".join(sorted({_format_budget(record.config["budget"]) for record in records}))
    return f"{size}, {format_settings(rest)}: {format_count(runs, 'run')} of {spent}"


def _format_budget(budget: Mapping[str, object]) -> str:
    seconds = budget.get("seconds")
    amount = f"{seconds:g} s" if seconds else f"{budget['samples']:,} samples"
    if budget.get("burn_in") is not None:
        amount += f" after {budget['burn_in']:,} of burn-in"
    return amount.replace(",", " ")


def format_settings(settings: Mapping[str, object]) -> str:
    """NAME=VALUE, with spaces between."""
    return " ".join(
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in settings.items()
    )
