"""Pictures of accuracy over time: error against wall-clock, one panel a model, one curve a row of the leaderboard."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spinbench.mathematics.statistics import TARGET_RMSE
from spinbench.measuring.record_types import Record
from spinbench.reporting import curves, leaderboard, plotting
from spinbench.reporting.curves import Quantity
from spinbench.reporting.leaderboard import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_COLUMNS = 3
# Largest number of panels of a picture; further models get further pictures.
MAX_PANELS = 12
# Largest number of models that are drawn: each takes a fourth of a second and 50 kB of a page.
MAX_MODELS = 24
# Stem of the pictures' file names, by quantity.
FILE_NAMES: dict[Quantity, str] = {"marginal_rmse": "accuracy", "log_z_error": "log_z"}
_LABELS = {"exact": "exact (time taken)"}


def draw_accuracy_over_time(records: Sequence[Record], path: Path) -> list[Path]:
    """Draw the RMSE of the marginals over time into files; see `save`."""
    with plotting.plot_style():
        return save_error_curves(leaderboard.rows(records), "marginal_rmse", path)


def save_error_curves(board: Sequence[Row], quantity: Quantity, *paths: Path) -> list[Path]:
    """Draw one panel a model, of the first `MODELS`, and a legend.

    A row with several seeds is the median, in a band from the least to the greatest error. An exact method, whose
    error is not of sampling, is a vertical line at the seconds that it took.

    Returns:
        The paths and, where there are many models, numbered ones beside them; none where no record has a trajectory
        with errors, so that nothing was drawn.

    Raises:
        SpinbenchError: a file cannot be written.
    """
    drawn_rows = [row for row in board if is_drawn(row, quantity)]
    models = list(dict.fromkeys(row.model for row in drawn_rows if _error_curve(row, quantity) is not None))[
        :MAX_MODELS
    ]
    styles, files = plotting.PlotStyles.from_rows(drawn_rows), []
    for number, first in enumerate(range(0, len(models), MAX_PANELS), start=1):
        page_paths = [path.with_stem(path.stem + {1: ""}.get(number, f"-{number}")) for path in paths]
        files += plotting.save_figure(
            _draw_page(drawn_rows, models[first : first + MAX_PANELS], styles, quantity), *page_paths
        )
    return files


def is_drawn(row: Row, quantity: Quantity) -> bool:
    """Whether a row has a curve, or the line of an exact method."""
    return _error_curve(row, quantity) is not None or _exact_seconds(row) is not None


def _draw_page(
    drawn_rows: Sequence[Row], models: Sequence[str], styles: plotting.PlotStyles, quantity: Quantity
) -> Figure:
    columns = min(len(models), MAX_COLUMNS)
    lines = math.ceil(len(models) / columns)
    width, height = 4.2 * columns + 1.8, 3.5 * lines
    figure = plotting.new_figure(width, height)
    plotting.freeze_layout(figure)
    margins = {"left": 0.95 / width, "right": 1 - 2.1 / width, "bottom": 0.55 / height, "top": 1 - 0.4 / height}
    panels = figure.subplots(lines, columns, squeeze=False, gridspec_kw={**margins, "wspace": 0.28, "hspace": 0.4})
    for spare in panels.flat[len(models) :]:
        spare.set_visible(False)
    for panel, model in zip(panels.flat, models, strict=False):
        _draw_error_curves(panel, {i: row for i, row in enumerate(drawn_rows) if row.model == model}, styles, quantity)
        panel.set_title(model, parse_math=False, wrap=True, y=1.0)
    for panel in panels[:, 1:].flat:
        panel.set_ylabel("")
    _add_legend(figure, styles, has_doubted=any(row.doubted for row in drawn_rows if row.model in models))
    return figure


def draw_panel(
    rows: Mapping[int, Row],
    styles: plotting.PlotStyles,
    quantity: Quantity,
    *,
    include_setup: bool = False,
    size: tuple[float, float] = (4.6, 3.2),
    place: tuple[float, float, float, float] = (0.165, 0.155, 0.77, 0.815),
) -> Figure | None:
    """The panel of one model alone, without a title or a legend; None where there is nothing to draw.

    Args:
        rows: of the model, by number, which names a curve in the SVG.
        styles: of the whole report.
        quantity: which error.
        include_setup: whether planning and compiling are among the seconds.
        size: of the figure, in inches.
        place: of the panel in it: left, bottom, width and height as shares.
    """
    if all(_error_curve(row, quantity) is None for row in rows.values()):
        return None
    figure = plotting.new_figure(*size)
    plotting.freeze_layout(figure)
    _draw_error_curves(figure.add_axes(place), rows, styles, quantity, include_setup=include_setup)
    return figure


def _draw_error_curves(
    panel: Axes,
    rows: Mapping[int, Row],
    styles: plotting.PlotStyles,
    quantity: Quantity,
    *,
    include_setup: bool = False,
) -> None:
    """The curves of one model, with their Pareto front and the error that `time_to_error` refers to."""
    label = "seconds of burn-in and sampling"
    if include_setup:
        label = "seconds, with planning and compiling"
    panel.set(xscale="log", yscale="log", xlabel=label, ylabel=curves.TITLES[quantity])
    corners = [
        corner
        for i, row in rows.items()
        for corner in _draw_row_curve(panel, i, row, styles, quantity, include_setup=include_setup)
    ]
    (left, right), (low, high) = panel.get_xlim(), _widen_to_decade(*panel.get_ylim())
    front_corners = [corners[i] for i in curves.pareto_front(corners)]
    if front_corners:
        x, y = zip(*front_corners, (right, front_corners[-1][1]), strict=True)
        front_style: dict[str, Any] = {
            "color": plotting.HIGHLIGHT,
            "linewidth": 6,
            "zorder": 0.8,
            "solid_capstyle": "round",
        }
        panel.step(x, y, where="post", gid="front", **front_style)
    if quantity == "marginal_rmse" and low < TARGET_RMSE < high:
        _draw_target(panel)
    panel.set(xlim=(left, right), ylim=(low, high))
    plotting.set_log_ticks(panel.xaxis, left, right)
    plotting.set_log_ticks(panel.yaxis, low, high)
    _place_labels(panel)
    plotting.add_grid(panel)


def _draw_row_curve(
    panel: Axes, number: int, row: Row, styles: plotting.PlotStyles, quantity: Quantity, *, include_setup: bool
) -> Iterable[tuple[float, float]]:
    """A curve, or the line of an exact method; the curve's corners, if its row is vouched for."""
    line, marker = styles.lines[row.backend]
    style: dict[str, Any] = {"color": styles.colours[row.method], "gid": f"{plotting.ROW_PREFIX}{number}"}
    curve, exact = (
        _error_curve(row, quantity, include_setup=include_setup),
        _exact_seconds(row, include_setup=include_setup),
    )
    if curve is None:
        if exact is not None:
            panel.axvline(exact, linestyle=line, linewidth=1.4, **style)
        return ()
    has_seeds = curve.seeds > 1
    marker_style: dict[str, Any] = {"marker": marker, "markersize": 3.6, "fillstyle": styles.fills[row.method]}
    marker_spacing = 4 if has_seeds else 1
    panel.plot(
        curve.seconds, curve.middle, linestyle=line, linewidth=1.4, markevery=marker_spacing, **marker_style, **style
    )
    if has_seeds:
        panel.fill_between(curve.seconds, curve.low, curve.high, alpha=0.16, lw=0, **style)
    if row.doubted:
        cross: dict[str, Any] = {"marker": "X", "markersize": 8, "markeredgecolor": plotting.INK}
        panel.plot(curve.seconds[-1:], curve.middle[-1:], linestyle="none", **cross, **style)
        return ()
    return curve.corners()


def _widen_to_decade(low: float, high: float) -> tuple[float, float]:
    """Limits at least so far apart: less would blow small differences up."""
    if high >= 10 * low:
        return low, high
    middle = math.sqrt(low * high)
    return middle / math.sqrt(10), middle * math.sqrt(10)


def _draw_target(panel: Axes) -> None:
    panel.axhline(TARGET_RMSE, color=plotting.MUTED, linewidth=0.8, linestyle=(0, (1, 3)), zorder=0.9)
    panel.annotate(
        "1 %",
        (1, TARGET_RMSE),
        xycoords=panel.get_yaxis_transform(),
        xytext=(2, 0),
        textcoords="offset points",
        va="center",
        color=plotting.MUTED,
        fontsize=8,
    )


def _place_labels(panel: Axes) -> None:
    """At a fixed distance: to look for free space takes a third of the time of drawing."""
    from matplotlib.transforms import ScaledTranslation

    figure = panel.figure
    for axis, place, inches in ((panel.xaxis, (0.5, 0.0), (0.0, -0.27)), (panel.yaxis, (0.0, 0.5), (-0.56, 0.0))):
        axis.set_label_coords(*place, panel.transAxes + ScaledTranslation(*inches, figure.dpi_scale_trans))


def _add_legend(figure: Figure, styles: plotting.PlotStyles, *, has_doubted: bool) -> None:
    from matplotlib.lines import Line2D

    entries = []
    for method, colour in styles.colours.items():
        entry = Line2D([], [], color=colour, linewidth=3, label=_LABELS.get(method, method))
        if (fill := styles.fills[method]) != "full":
            entry.set(marker="s", markersize=7, linewidth=1.4, fillstyle=fill, markerfacecoloralt="white")
            entry.set_markerfacecolor({"none": "white"}.get(fill, colour))
        entries.append(entry)
    entries += [
        Line2D([], [], color=plotting.MUTED, linestyle=line, marker=marker, markersize=4, label=backend)
        for backend, (line, marker) in styles.lines.items()
    ]
    entries.append(Line2D([], [], color=plotting.HIGHLIGHT, linewidth=6, label="Pareto front"))
    if has_doubted:
        cross: dict[str, Any] = {"marker": "X", "markersize": 8, "markeredgecolor": plotting.INK, "color": "white"}
        entries.append(Line2D([], [], linestyle="none", label="not vouched for", **cross))
    plotting.add_legend(figure, handles=entries, loc="upper right", handlelength=3.2)


def _error_curve(row: Row, quantity: Quantity, *, include_setup: bool = False) -> curves.ErrorCurve | None:
    return curves.error_curve(row.records, quantity, include_setup=include_setup)


def _exact_seconds(row: Row, *, include_setup: bool = False) -> float | None:
    exact = [record for record in row.records if record.status == "ok" and curves.is_exact(record)]
    if not exact or row.run_seconds is None:
        return None
    return row.run_seconds + (statistics.median(map(curves.setup_seconds, exact)) if include_setup else 0.0)
