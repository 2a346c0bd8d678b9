"""The charts of a report's page: for each model its errors over time, and the answers for log Z in their bracket."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from spinbench.reporting import content, curves, figures, leaderboard, svg
from spinbench.reporting.curves import Quantity
from spinbench.reporting.leaderboard import Row
from spinbench.reporting.looks import Looks
from spinbench.reporting.panels import log_z

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OPEN = 6
"""Models whose charts are unfolded at once; those of others become elements of the page when they are."""
NOTICED = 0.01
"""Share of a run from which on the seconds of planning and compiling make a chart of their own."""


@dataclass(frozen=True)
class Panel:
    """The charts of a model.

    Attributes:
        model: its label.
        charts: of each error that its records know.
        whole: the same, with planning and compiling among the seconds; None where they would look the same.
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
    for place, (model, numbers) in enumerate(content.by_model(board).items()):
        rows = {i: board[i] for i in numbers}
        charts = tuple(_charts(rows, looks, place, whole=False))
        whole = tuple(_charts(rows, looks, place, whole=True)) if charts and _is_noticed(rows.values()) else ()
        bracket = _bracket(rows, looks, place)
        if charts or bracket is not None:
            shown += 1
            yield Panel(model, charts, whole, bracket, unfolded=shown <= OPEN)
        if shown == figures.MODELS:
            return


def further(board: Sequence[Row], drawn: Sequence[Panel]) -> int:
    """Models behind the last that is drawn, where so many are."""
    models = list(content.by_model(board))
    return len(models) - models.index(drawn[-1].model) - 1 if len(drawn) == figures.MODELS else 0


def _charts(rows: Mapping[int, Row], looks: Looks, place: int, *, whole: bool) -> Iterable[Markup]:
    titles = {str(i): _name(row) for i, row in rows.items()}
    for quantity, title in curves.TITLES.items():
        figure = figures.panel_of(list(rows.values()), looks, quantity, _ids(rows), whole=whole)
        if figure is not None:
            label = f"{title} over seconds, {next(iter(rows.values())).model}"
            name = f"p{place}{quantity[0]}{'w' * whole}"
            yield Markup(svg.inline(figure, name, label, titles, _scales(figure, quantity, whole=whole)))


def _scales(figure: Figure, quantity: Quantity, *, whole: bool) -> dict[str, str]:
    """What a script needs to find the checkpoint under the pointer: where the axes are, and their limits."""
    (panel,) = figure.axes
    width, height = (72 * inches for inches in figure.get_size_inches())
    box = panel.get_position()
    place = [box.x0 * width, box.x1 * width, (1 - box.y1) * height, (1 - box.y0) * height]
    limits = [float(limit) for limit in (*panel.get_xlim(), *panel.get_ylim())]
    numbers = [float(f"{number:.8g}") for number in (*place, *limits)]
    return {"data-quantity": quantity, "data-whole": str(int(whole)), "data-axes": json.dumps(numbers)}


def _bracket(rows: Mapping[int, Row], looks: Looks, place: int) -> Markup | None:
    figure = log_z.figure(list(rows.values()), looks, _ids(rows))
    if figure is None:
        return None
    titles = {str(i): f"{_name(row)}: log Z {answers(row)}" for i, row in rows.items()}
    label = f"log Z and its bounds, {next(iter(rows.values())).model}"
    return Markup(svg.inline(figure, f"p{place}b", label, titles))


def answers(row: Row) -> str:
    """Each seed's log Z, with its standard error, in words."""
    found = []
    for record in row.members:
        result = record.result_or_none
        if result is not None and result.log_z is not None:
            error = f" ± {leaderboard.short(result.log_z_se)}" if result.log_z_se else ""
            found.append(f"{result.log_z:.6g}{error} (seed {record.config['seed']})")
    return ", ".join(found)


def errors(row: Row) -> str:
    """Each seed's RMSE of the marginals, with its standard error, in words."""
    found = []
    for record in row.members:
        metric = record.metric("marginal_rmse")
        if metric.value is not None:
            text = leaderboard.with_error(metric.value, metric.standard_error)
            found.append(f"{text} (seed {record.config['seed']})")
    return ", ".join(found)


def _is_noticed(rows: Iterable[Row]) -> bool:
    records = [record for row in rows for record in row.members if record.status == "ok"]
    return any(curves.before(record) > NOTICED * record.result.timing.run for record in records)


def _ids(rows: Mapping[int, Row]) -> list[str]:
    return [f"{svg.PREFIX}{i}" for i in rows]


def _name(row: Row) -> str:
    return " ".join(filter(None, [f"{row.method} on {row.backend}", row.variant]))
