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

from spinbench.reporting import brackets, curves, drawing, figures
from spinbench.reporting.brackets import Bracket
from spinbench.reporting.curves import Quantity
from spinbench.reporting.drawing import Looks
from spinbench.reporting.leaderboard import Row, by_model, short, with_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OPEN = 6
"""Models whose charts are unfolded at once; those of others become elements of the page when they are."""
NOTICED = 0.01
"""Share of a run from which on the seconds of planning and compiling make a chart of their own."""
MARKERS = {"lower": ">", "upper": "<"}
"""Of bounds: they point to where log Z is."""


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


def panels(board: Sequence[Row], looks: Looks) -> Iterable[Panel]:
    """Of the first `figures.MODELS` with anything to draw."""
    shown = 0
    for place, (model, rows) in enumerate(by_model(board).items()):
        charts = tuple(_charts(rows, looks, place, whole=False))
        whole = tuple(_charts(rows, looks, place, whole=True)) if charts and _is_noticed(rows.values()) else ()
        bracket = _bracket_chart(rows, looks, place)
        if charts or bracket is not None:
            shown += 1
            yield Panel(model, charts, whole, bracket, unfolded=shown <= OPEN)
        if shown == figures.MODELS:
            return


def further(board: Sequence[Row], drawn: Sequence[Panel]) -> int:
    """Models behind the last that is drawn, where so many are."""
    models = list(by_model(board))
    return len(models) - models.index(drawn[-1].model) - 1 if len(drawn) == figures.MODELS else 0


def _charts(rows: Mapping[int, Row], looks: Looks, place: int, *, whole: bool) -> Iterator[Markup]:
    titles = {str(i): row.title for i, row in rows.items()}
    for quantity, title in curves.TITLES.items():
        figure = figures.panel_of(rows, looks, quantity, whole=whole)
        if figure is not None:
            label = f"{title} over seconds, {next(iter(rows.values())).model}"
            name = f"p{place}{quantity[0]}{'w' if whole else ''}"
            yield drawing.inline(figure, name, label, titles, _scales(figure, quantity, whole=whole))


def _scales(figure: Figure, quantity: Quantity, *, whole: bool) -> dict[str, str]:
    """What a script needs to find the checkpoint under the pointer: where the axes are, and their limits."""
    (panel,) = figure.axes
    width, height = (72 * inches for inches in figure.get_size_inches())
    box = panel.get_position()
    place = [box.x0 * width, box.x1 * width, (1 - box.y1) * height, (1 - box.y0) * height]
    numbers = [float(f"{number:.8g}") for number in (*place, *panel.get_xlim(), *panel.get_ylim())]
    return {"data-quantity": quantity, "data-whole": str(int(whole)), "data-axes": json.dumps(numbers)}


def _bracket_chart(rows: Mapping[int, Row], looks: Looks, place: int) -> Markup | None:
    figure = draw_log_z(rows, looks)
    if figure is None:
        return None
    titles = {str(i): f"{row.title}: log Z {answers(row)}" for i, row in rows.items()}
    return drawing.inline(figure, f"p{place}b", f"log Z and its bounds, {next(iter(rows.values())).model}", titles)


def answers(row: Row) -> str:
    """Each seed's log Z, with its standard error, in words."""
    results = [(record.config["seed"], record.result) for record in row.members if record.result_or_none is not None]
    return ", ".join(
        f"{one.log_z:.6g}{f' ± {short(one.log_z_se)}' if one.log_z_se else ''} (seed {seed})"
        for seed, one in results
        if one.log_z is not None
    )


def errors(row: Row) -> str:
    """Each seed's RMSE of the marginals, with its standard error, in words."""
    known = [(record.config["seed"], record.metric("marginal_rmse")) for record in row.members]
    return ", ".join(
        f"{with_error(one.value, one.standard_error)} (seed {seed})" for seed, one in known if one.value is not None
    )


def _is_noticed(rows: Iterable[Row]) -> bool:
    records = [record for row in rows for record in row.members if record.status == "ok"]
    return any(curves.before(record) > NOTICED * record.result.timing.run for record in records)


def draw_log_z(rows: Mapping[int, Row], looks: Looks) -> Figure | None:
    """The answers for a model's log Z on one axis, with the bracket that its bounds make.

    A line a row, by its number, that has an answer; None where there is neither a bound nor an answer to show.
    """
    known = brackets.board_bracket(rows.values())
    shown = {i: row for i, row in rows.items() if _answers(row)}
    if not shown or not (known.lower_method or known.upper_method):
        return None
    figure = drawing.new_figure(5.2, 1.0 + 0.22 * len(shown))
    panel = figure.subplots()
    low, high = _limits(list(shown.values()), known)
    panel.set(xlim=(low, high), ylim=(len(shown) - 0.4, -0.6), xlabel="log Z; bars are two standard errors, each way")
    _draw_bracket(panel, known)
    for place, (number, row) in enumerate(shown.items()):
        _draw_answers(panel, row, place, looks.colours[row.method], f"{drawing.ROW_PREFIX}{number}")
    panel.set_yticks(range(len(shown)), [row.solver for row in shown.values()], fontsize=8)
    panel.tick_params(axis="y", length=0, pad=8)  # room for markers at the margin
    panel.ticklabel_format(axis="x", useOffset=False)
    return figure


def _draw_bracket(panel: Axes, known: Bracket) -> None:
    low, high = panel.get_xlim()
    panel.axvspan(max(known.lower, low), min(known.upper, high), color=drawing.HIGHLIGHT, alpha=0.45, lw=0, zorder=0)
    for value, there in ((known.lower, known.lower_method), (known.upper, known.upper_method)):
        if there and low <= value <= high:
            panel.axvline(value, color=drawing.MUTED, linewidth=1)
    if known.exact is not None:
        panel.axvline(known.exact, color=drawing.INK, linewidth=1.2, linestyle=(0, (4, 2)))


def _draw_answers(panel: Axes, row: Row, place: int, colour: str, name: str) -> None:
    low, high = panel.get_xlim()
    style: dict[str, Any] = {"color": colour, "gid": name}
    found = _answers(row)
    for value, error, kind in found:
        within = low <= value <= high
        marker = "X" if row.doubted else MARKERS.get(kind, "o")
        at, alpha = min(max(value, low), high), 1 if within else 0.5
        panel.plot([at], [place], marker=marker, markersize=6, alpha=alpha, clip_on=False, **style)
        if within and error:
            panel.plot([value - 2 * error, value + 2 * error], [place, place], linewidth=1.4, **style)
    for sign, limit in ((-1, low), (1, high)):
        if beyond := [value for value, _, _ in found if sign * value > sign * limit]:
            text = " to ".join(dict.fromkeys(f"{value:.4g}" for value in (min(beyond), max(beyond))))
            # above the row's line, on which its other answers lie
            side: dict[str, Any] = {"ha": "left" if sign < 0 else "right", "xytext": (-4 * sign, 3.5)}
            panel.annotate(text, (limit, place), textcoords="offset points", va="bottom", fontsize=7.5, **side)


def _answers(row: Row) -> list[tuple[float, float, str]]:
    """(log Z, standard error, kind) of each of the row's records that has one."""
    results = [record.result for record in row.members if record.status == "ok"]
    found = [(one.log_z, one.log_z_se, str(one.log_z_kind)) for one in results]
    return [(value, error or 0.0, kind) for value, error, kind in found if value is not None and math.isfinite(value)]


def _limits(rows: Sequence[Row], known: Bracket) -> tuple[float, float]:
    """Around the bracket and the answers that are vouched for; those far away stand at the margin with their number."""
    vouched = [row for row in rows if not row.doubted] or rows
    shown = [(value, 2 * error) for row in vouched for value, error, kind in _answers(row) if kind not in MARKERS]
    bounds = [value for value in (known.lower, known.upper, known.exact) if value is not None and math.isfinite(value)]
    near = [*bounds, *(value - error for value, error in shown), *(value + error for value, error in shown)]
    room = 0.06 * (max(near) - min(near)) or 0.5
    return min(near) - room, max(near) + room


def save(rows: Mapping[int, Row], looks: Looks, folder: Path, place: int) -> list[Path]:
    """Write the panels of one model as PDF and SVG for papers; returns the files.

    Args:
        rows: of the model, by number.
        looks: of the whole report.
        folder: for the files; made if it is missing.
        place: of the model in the report: labels that differ may make the same name of a file.
    """
    written = []
    for quantity, what in figures.NAMES.items():
        figure = _draw_single(rows, looks, quantity)
        if figure is not None:
            label = re.sub(r"[^A-Za-z0-9]+", "-", next(iter(rows.values())).model).strip("-")[:60]
            files = [folder / f"{place + 1}-{label}-{what}.{kind}" for kind in ("pdf", "svg")]
            written += drawing.save(figure, *files)
    return written


def _draw_single(rows: Mapping[int, Row], looks: Looks, quantity: Quantity) -> Figure | None:
    """The panel of one model with a title, and a legend that names of each curve the settings."""
    from matplotlib.lines import Line2D

    drawn = {i: row for i, row in rows.items() if figures.is_drawn(row, quantity)}
    figure = figures.panel_of(drawn, looks, quantity, size=(7.6, 3.6), place=(0.1, 0.14, 0.56, 0.76))
    if figure is None:
        return None
    entries = []
    for row in drawn.values():
        line, marker = looks.lines[row.backend]
        own: dict[str, Any] = {"color": looks.colours[row.method], "fillstyle": looks.fills[row.method]}
        seeds = f"{row.replicates} seeds" if row.replicates > 1 else ""
        label = "\n".join(filter(None, [row.solver, *row.variant.split(" "), seeds]))
        entries.append(Line2D([], [], linestyle=line, marker=marker, markersize=4, label=label, **own))
    (panel,) = figure.axes
    panel.set_title(row.model, parse_math=False, wrap=True)
    drawing.add_legend(panel, handles=entries, **drawing.BESIDE)
    return figure
