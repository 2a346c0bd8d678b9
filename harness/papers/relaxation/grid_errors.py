"""The report of figures 2 and 3 of the DHMC paper: heat maps, their numbers as CSV, and summaries; see `grid_sets`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
from rich.console import RenderableType
from rich.table import Table

from spinbench.measuring.record_types import Record
from spinbench.papers.relaxation.grid_sets import MEASURES, Column, GraphSet, format_settings, group_by_graph_set
from spinbench.reporting import export, leaderboard, plotting, progress_display, settings_plots

TITLES = {"marginal": "MSE of node marginals", "log_z": "MSE of log Z (nats²)"}
FILE = "mse"
# Columns of the summary: mean, median and maximum over the graphs.
SUMMARY = ("marginal\nMSE", "median", "max", "log Z\nMSE", "median", "max")
# Position on a logarithmic axis of the errors of exact methods.
MIN_ERROR = 1e-12


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
        values = {measure: sorted(_mse_by_graph(column, measure).values()) for measure in MEASURES}
        figures = [text for measure in MEASURES for text in _format_statistics(values[measure])]
        table.add_row(column.label, str(len(values["marginal"])), *figures)
    return table


def build_comparison_table(graphs: GraphSet) -> Table | None:
    """For each pair of methods and each measure, on how many graphs the second has the smaller MSE."""
    if len(graphs.columns) < 2:
        return None
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
            "mse": cell.mse,
            "standard_error": cell.standard_error,
            "runs": cell.runs,
            "missing": cell.missing,
        }
        for measure in MEASURES
        for column in graphs.columns
        for (c1, c2), cell in sorted(column.cells[measure].items())
    ]


def _mse_by_graph(column: Column, measure: str) -> dict[tuple[float, float], float]:
    return {place: cell.mse for place, cell in column.cells[measure].items() if cell.mse is not None}


def _format_statistics(values: Sequence[float]) -> tuple[str, str, str]:
    """Of sorted values."""
    if not values:
        return "–", "–", "–"
    middle = (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2
    return (
        leaderboard.format_number(math.fsum(values) / len(values)),
        leaderboard.format_number(middle),
        leaderboard.format_number(values[-1]),
    )


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
