"""The pictures of one model: its errors over time, the answers for log Z in their bracket, and files of their own."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from spinbench.reporting import accuracy_plots, brackets, curves, plotting
from spinbench.reporting.leaderboard import Row, format_number, format_with_error, rows_by_model

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Largest number of models whose charts are expanded at first; the charts of others are created when they are expanded.
MAX_UNFOLDED = 6
# Smallest share of planning and compilation in a run's time for a chart of their own.
MIN_SETUP_SHARE = 0.01
# Markers of bounds point towards log Z.
BOUND_MARKERS = {"lower": ">", "upper": "<"}


@dataclass(frozen=True)
class Panel:
    """The charts of a model.

    Attributes:
        model: its label.
        charts: of each error that its records know.
        whole: the same, with planning and compiling among the seconds; empty where they would look the same.
        bracket: the answers for log Z; None without a bound.
        unfolded: whether they are shown at once.
    """

    model: str
    charts: tuple[Markup, ...]
    whole: tuple[Markup, ...]
    bracket: Markup | None
    unfolded: bool


def build_panels(board: Sequence[Row], styles: plotting.PlotStyles) -> Iterable[Panel]:
    """Of the first `figures.MODELS` with anything to draw."""
    n_shown = 0
    for place, (model, rows) in enumerate(rows_by_model(board).items()):
        charts = tuple(_error_charts(rows, styles, place, include_setup=False))
        whole: tuple[Markup, ...] = ()
        if charts and _has_visible_setup(rows.values()):
            whole = tuple(_error_charts(rows, styles, place, include_setup=True))
        bracket = _bracket_chart(rows, styles, place)
        if charts or bracket is not None:
            n_shown += 1
            yield Panel(model, charts, whole, bracket, unfolded=n_shown <= MAX_UNFOLDED)
        if n_shown == accuracy_plots.MAX_MODELS:
            return


def count_undrawn_models(board: Sequence[Row], panels: Sequence[Panel]) -> int:
    """Models behind the last that is drawn, where so many are."""
    models = list(rows_by_model(board))
    if len(panels) == accuracy_plots.MAX_MODELS:
        return len(models) - models.index(panels[-1].model) - 1
    return 0


def _error_charts(
    rows: Mapping[int, Row], styles: plotting.PlotStyles, place: int, *, include_setup: bool
) -> Iterator[Markup]:
    titles = {str(i): row.title for i, row in rows.items()}
    for quantity, title in curves.TITLES.items():
        figure = accuracy_plots.draw_panel(rows, styles, quantity, include_setup=include_setup)
        if figure is not None:
            label = f"{title} over seconds, {next(iter(rows.values())).model}"
            name = f"p{place}{quantity[0]}{'w' if include_setup else ''}"
            yield plotting.render_inline_svg(
                figure, name, label, titles, _axis_attributes(figure, quantity, include_setup=include_setup)
            )


def _axis_attributes(figure: Figure, quantity: curves.Quantity, *, include_setup: bool) -> dict[str, str]:
    """What a script needs to find the checkpoint under the pointer: where the axes are, and their limits."""
    (panel,) = figure.axes
    width, height = (72 * inches for inches in figure.get_size_inches())
    box = panel.get_position()
    place = [box.x0 * width, box.x1 * width, (1 - box.y1) * height, (1 - box.y0) * height]
    numbers = [float(f"{number:.8g}") for number in (*place, *panel.get_xlim(), *panel.get_ylim())]
    return {"data-quantity": quantity, "data-whole": str(int(include_setup)), "data-axes": json.dumps(numbers)}


def _bracket_chart(rows: Mapping[int, Row], styles: plotting.PlotStyles, place: int) -> Markup | None:
    figure = draw_log_z_bracket(rows, styles)
    if figure is None:
        return None
    titles = {str(i): f"{row.title}: log Z {format_log_z_by_seed(row)}" for i, row in rows.items()}
    return plotting.render_inline_svg(
        figure, f"p{place}b", f"log Z and its bounds, {next(iter(rows.values())).model}", titles
    )


def format_log_z_by_seed(row: Row) -> str:
    """Each seed's log Z, with its standard error, in words."""
    results = [(record.config["seed"], record.result) for record in row.records if record.result_or_none is not None]
    return ", ".join(
        f"{result.log_z:.6g}{f' ± {format_number(result.log_z_se)}' if result.log_z_se else ''} (seed {seed})"
        for seed, result in results
        if result.log_z is not None
    )


def format_rmse_by_seed(row: Row) -> str:
    """Each seed's RMSE of the marginals, with its standard error, in words."""
    rmse_by_seed = [(record.config["seed"], record.metric("marginal_rmse")) for record in row.records]
    return ", ".join(
        f"{format_with_error(rmse.value, rmse.standard_error)} (seed {seed})"
        for seed, rmse in rmse_by_seed
        if rmse.value is not None
    )


def _has_visible_setup(rows: Iterable[Row]) -> bool:
    records = [record for row in rows for record in row.records if record.status == "ok"]
    return any(curves.setup_seconds(record) > MIN_SETUP_SHARE * record.result.timing.run for record in records)


def draw_log_z_bracket(rows: Mapping[int, Row], styles: plotting.PlotStyles) -> Figure | None:
    """The answers for a model's log Z on one axis, with the bracket that its bounds make.

    A line a row, by its number, that has an answer; None where there is neither a bound nor an answer to show.
    """
    bracket = brackets.bracket_of_rows(rows.values())
    answered_rows = {i: row for i, row in rows.items() if _log_z_answers(row)}
    if not answered_rows or not bracket.is_bounded:
        return None
    figure = plotting.new_figure(5.2, 1.0 + 0.22 * len(answered_rows))
    panel = figure.subplots()
    low, high = _log_z_limits(list(answered_rows.values()), bracket)
    panel.set(
        xlim=(low, high), ylim=(len(answered_rows) - 0.4, -0.6), xlabel="log Z; bars are two standard errors, each way"
    )
    _draw_bracket(panel, bracket)
    for place, (number, row) in enumerate(answered_rows.items()):
        _draw_answers(panel, row, place, styles.colours[row.method], f"{plotting.ROW_PREFIX}{number}")
    panel.set_yticks(range(len(answered_rows)), [row.solver for row in answered_rows.values()], fontsize=8)
    # Leaves room for markers at the margin.
    panel.tick_params(axis="y", length=0, pad=8)
    panel.ticklabel_format(axis="x", useOffset=False)
    return figure


def _draw_bracket(panel: Axes, bracket: brackets.LogZBracket) -> None:
    low, high = panel.get_xlim()
    panel.axvspan(
        max(bracket.lower, low), min(bracket.upper, high), color=plotting.HIGHLIGHT, alpha=0.45, lw=0, zorder=0
    )
    for value, method in ((bracket.lower, bracket.lower_method), (bracket.upper, bracket.upper_method)):
        if method and low <= value <= high:
            panel.axvline(value, color=plotting.MUTED, linewidth=1)
    if bracket.exact is not None:
        panel.axvline(bracket.exact, color=plotting.INK, linewidth=1.2, linestyle=(0, (4, 2)))


def _draw_answers(panel: Axes, row: Row, place: int, colour: str, name: str) -> None:
    low, high = panel.get_xlim()
    style: dict[str, Any] = {"color": colour, "gid": name}
    answers_of_row = _log_z_answers(row)
    for value, error, kind in answers_of_row:
        is_within = low <= value <= high
        marker = "X" if row.doubted else BOUND_MARKERS.get(kind, "o")
        position, alpha = min(max(value, low), high), 1 if is_within else 0.5
        panel.plot([position], [place], marker=marker, markersize=6, alpha=alpha, clip_on=False, **style)
        if is_within and error:
            panel.plot([value - 2 * error, value + 2 * error], [place, place], linewidth=1.4, **style)
    for sign, limit, alignment in ((-1, low, "left"), (1, high, "right")):
        if beyond := [value for value, _, _ in answers_of_row if sign * value > sign * limit]:
            text = " to ".join(dict.fromkeys(f"{value:.4g}" for value in (min(beyond), max(beyond))))
            # above the row's line, where it covers no other answer
            side: dict[str, Any] = {"ha": alignment, "xytext": (-4 * sign, 3.5)}
            panel.annotate(text, (limit, place), textcoords="offset points", va="bottom", fontsize=7.5, **side)


def _log_z_answers(row: Row) -> list[tuple[float, float, str]]:
    """(log Z, standard error, kind) of each of the row's records that has one."""
    results = [record.result for record in row.records if record.status == "ok"]
    answers_of_row = [(result.log_z, result.log_z_se, str(result.log_z_kind)) for result in results]
    return [
        (value, error or 0.0, kind)
        for value, error, kind in answers_of_row
        if value is not None and math.isfinite(value)
    ]


def _log_z_limits(rows: Sequence[Row], bracket: brackets.LogZBracket) -> tuple[float, float]:
    """Around the bracket and the answers that are vouched for; those far away stand at the margin with their number."""
    trusted_rows = [row for row in rows if not row.doubted] or rows
    estimates = [
        (value, 2 * error)
        for row in trusted_rows
        for value, error, kind in _log_z_answers(row)
        if kind not in BOUND_MARKERS
    ]
    bounds = [
        value for value in (bracket.lower, bracket.upper, bracket.exact) if value is not None and math.isfinite(value)
    ]
    near = [*bounds, *(value - error for value, error in estimates), *(value + error for value, error in estimates)]
    room = 0.06 * (max(near) - min(near)) or 0.5
    return min(near) - room, max(near) + room


def save_panels(rows: Mapping[int, Row], styles: plotting.PlotStyles, folder: Path, place: int) -> list[Path]:
    """Write the panels of one model as PDF and SVG for papers; returns the files.

    Args:
        rows: of the model, by number.
        styles: of the whole report.
        folder: for the files; made if it is missing.
        place: of the model in the report: labels that differ may make the same name of a file.
    """
    paths = []
    for quantity, stem in accuracy_plots.FILE_NAMES.items():
        figure = _draw_titled_panel(rows, styles, quantity)
        if figure is not None:
            label = re.sub(r"[^A-Za-z0-9]+", "-", next(iter(rows.values())).model).strip("-")[:60]
            files = [folder / f"{place + 1}-{label}-{stem}.{kind}" for kind in ("pdf", "svg")]
            paths += plotting.save_figure(figure, *files)
    return paths


def _draw_titled_panel(
    rows: Mapping[int, Row], styles: plotting.PlotStyles, quantity: curves.Quantity
) -> Figure | None:
    """The panel of one model with a title, and a legend that names of each curve the settings."""
    from matplotlib.lines import Line2D

    visible_rows = {i: row for i, row in rows.items() if accuracy_plots.is_drawn(row, quantity)}
    figure = accuracy_plots.draw_panel(visible_rows, styles, quantity, size=(7.6, 3.6), place=(0.1, 0.14, 0.56, 0.76))
    if figure is None:
        return None
    entries = []
    for row in visible_rows.values():
        line, marker = styles.lines[row.backend]
        style: dict[str, Any] = {"color": styles.colours[row.method], "fillstyle": styles.fills[row.method]}
        seeds = {1: ""}.get(row.replicates, f"{row.replicates} seeds")
        label = "\n".join(filter(None, [row.solver, *row.variant.split(" "), seeds]))
        entries.append(Line2D([], [], linestyle=line, marker=marker, markersize=4, label=label, **style))
    (panel,) = figure.axes
    panel.set_title(row.model, parse_math=False, wrap=True)
    plotting.add_legend(panel, handles=entries, **plotting.LEGEND_BESIDE)
    return figure
