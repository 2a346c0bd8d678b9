"""The report of figures 2 and 3 of the DHMC paper: heat maps, their numbers as CSV, and summaries; see `grid_sets`."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table

from spinbench.errors import SpinbenchError
from spinbench.measuring.record_types import Record
from spinbench.papers.relaxation import grid_figure
from spinbench.papers.relaxation.grid_sets import MEASURES, Column, GraphSet, format_settings, group_by_graph_set
from spinbench.reporting.display import short_path
from spinbench.reporting.leaderboard import format_number

TITLES = {"marginal": "MSE of node marginals", "log_z": "MSE of log Z (nats²)"}
FILE = "mse"


def report(records: Sequence[Record], folder: Path) -> Sequence[RenderableType]:
    """Write a figure (PNG, SVG) and its numbers (CSV) for each set of graphs into `folder`; the summaries as tables."""
    sets = group_by_graph_set(records)
    if not sets:
        return ["no heat maps: there is no good record of a model with c1 and c2"]
    parts: list[RenderableType] = []
    for graphs in sets:
        stem = folder / "_".join(filter(None, (FILE, graphs.name)))
        parts.append(build_summary_table(graphs))
        if (comparison := build_comparison_table(graphs)) is not None:
            parts.append(comparison)
        try:
            write_csv(graphs, stem.with_name(f"{stem.name}.csv"))
            for suffix in (".png", ".svg"):
                grid_figure.draw_heat_maps(graphs, TITLES, stem.with_name(stem.name + suffix))
        except OSError as error:
            raise SpinbenchError(f"the figure {stem}.png cannot be written: {error.strerror or error}") from error
        parts.append(f"heat maps: {short_path(stem.with_name(stem.name + '.png'))}, .svg and .csv beside it")
    return parts


def build_summary_table(graphs: GraphSet) -> Table:
    """Mean, median and maximum over the graphs, one line a method."""
    table = Table(
        title=graphs.title,
        title_justify="left",
        title_style="bold",
        caption_style="dim",
        box=SIMPLE_HEAD,
        padding=(0, 1),
    )
    table.add_column("method")
    table.add_column("graphs", justify="right")
    for title in ("marginal\nMSE", "median", "max", "log Z\nMSE", "median", "max"):
        table.add_column(title, justify="right", no_wrap=True)
    for column in graphs.columns:
        values = {measure: sorted(_mse_by_graph(column, measure).values()) for measure in MEASURES}
        figures = [text for measure in MEASURES for text in _format_statistics(values[measure])]
        table.add_row(column.label, str(len(values["marginal"])), *figures)
    return table


def build_comparison_table(graphs: GraphSet) -> Table | None:
    """For each pair of methods and each measure, on how many graphs the second has the smaller MSE."""
    if len(graphs.columns) < 2:
        return None
    table = Table(box=SIMPLE_HEAD, padding=(0, 1))
    table.add_column("smaller MSE")
    for title in ("marginals", "log Z"):
        table.add_column(title, justify="right")
    for first_column, second_column in combinations(graphs.columns, 2):
        counts = []
        for measure in MEASURES:
            first, second = _mse_by_graph(first_column, measure), _mse_by_graph(second_column, measure)
            both = first.keys() & second.keys()
            counts.append(f"{sum(second[place] < first[place] for place in both)} of {len(both)}")
        table.add_row(f"{second_column.label} than {first_column.label}", *counts)
    return table


def write_csv(graphs: GraphSet, path: Path) -> None:
    """One line for each measure, method and graph.

    Raises:
        OSError: the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            [
                "measure",
                "column",
                "method",
                "backend",
                "settings",
                "c1",
                "c2",
                "mse",
                "standard_error",
                "runs",
                "missing",
            ]
        )
        for measure in MEASURES:
            for column in graphs.columns:
                front = [measure, column.label, column.method, column.backend, format_settings(column.settings)]
                for (c1, c2), cell in sorted(column.cells[measure].items()):
                    writer.writerow([*front, c1, c2, cell.mse, cell.standard_error, cell.runs, cell.missing])


def _mse_by_graph(column: Column, measure: str) -> dict[tuple[float, float], float]:
    return {place: cell.mse for place, cell in column.cells[measure].items() if cell.mse is not None}


def _format_statistics(values: Sequence[float]) -> tuple[str, str, str]:
    """Of sorted values."""
    if not values:
        return "–", "–", "–"
    middle = (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2
    return format_number(math.fsum(values) / len(values)), format_number(middle), format_number(values[-1])
