"""What figures 1 to 4 of the gauging paper show, from records: how near answers are to log Z, averaged over models.

Ahn, Chertkov and Shin, "Gauging Variational Inference", NIPS 2017, section 5. Small graphs: |log Z - answer| / |log Z|
against β. Large graphs: the gain log(Z_answer / Z_MF) over mean field on the same model, against the number of factors
or β. The relative error is unstable where log Z is near 0, so the gap log Z - answer stands beside both. All answers
but BP's are lower bounds.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from spinbench.measuring.record_types import Record
from spinbench.reporting import variants

Quantity = Literal["error", "gain"]
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
        not_converged: of `models`, those whose answer is that of an iteration that did not end.
        value, value_se: the relative error, or the gain in nats; None without models.
        gap, gap_se: log Z - answer in nats, over the models whose log Z is known; negative only for an estimate.
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


def average_points(records: Iterable[Record], quantity: Quantity) -> list[Point]:
    """All points of a figure, by panel, method and x, which is β where that varies, else the number of factors."""
    usable = [r for r in records if r.status != "skipped" and r.config["model"]["name"] in GRAPHS]
    beta_varies = quantity == "error" or len({r.config["model"]["beta"] for r in usable}) > 1
    log_z, mean_field = _reference_log_z(usable)
    groups: dict[tuple[str, str, float], list[Record]] = defaultdict(list)
    for label, group in variants.group_by_variant(usable).items():
        for record in group:
            model = record.config["model"]
            x = float(model["beta"] if beta_varies else _count_factors(model))
            groups[_panel_title(model, beta=beta_varies), _curve_label(label), x].append(record)
    if quantity == "gain":
        groups |= _group_exact_records(groups, log_z)
    axis = "β" if beta_varies else "factors"
    places = sorted(groups, key=lambda place: _point_sort_key(*place))
    return [
        _average_point((panel, axis, x, method), groups[panel, method, x], quantity, log_z, mean_field)
        for panel, method, x in places
    ]


def _average_point(
    place: tuple[str, str, float, str],
    group: Sequence[Record],
    quantity: Quantity,
    log_z: Mapping[str, float],
    mean_field: Mapping[str, float],
) -> Point:
    """From the records of a point; `place` is its panel, axis, x and method."""
    values, gaps, open_ended = [], [], 0
    for record in group:
        bound = log_z.get(_model_key(record)) if place[-1] == EXACT else _log_z_estimate(record)
        true, base = log_z.get(_model_key(record)), mean_field.get(_model_key(record))
        value = _relative_error(bound, true) if quantity == "error" else _difference(bound, base)
        gap = _difference(true, bound)
        if gap is not None:
            gaps.append(gap)
        if value is not None:
            values.append(value)
            open_ended += place[-1] != EXACT and record.result.status != "ok"
    missing = len(group) - len(values)
    return Point(
        *place,
        len(values),
        missing,
        open_ended,
        *variants.mean_with_error(values),
        *variants.mean_with_error(gaps),
        len(gaps),
    )


def _reference_log_z(records: Iterable[Record]) -> tuple[dict[str, float], dict[str, float]]:
    """For each model log Z, and the best bound of mean field, as far as they are known."""
    log_z: dict[str, float] = {}
    mean_field: dict[str, float] = {}
    for record in records:
        key = _model_key(record)
        if (exact_log_z := record.exact_log_z) is not None:
            log_z[key] = float(exact_log_z)
        if record.config["method"]["name"] == BASELINE and (bound := _log_z_estimate(record)) is not None:
            mean_field[key] = max(bound, mean_field.get(key, -math.inf))
    return log_z, mean_field


def _point_sort_key(panel: str, method: str, x: float) -> tuple[list[str | int], int, str, float]:
    """Panels by their text with numbers as such, methods as in `NAMES`, the exact values last."""
    panel_parts: list[str | int] = [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", panel)]
    names = [*NAMES.values(), EXACT, ""]
    return panel_parts, names.index(method_of_label(method)), method, x


def method_of_label(method: str) -> str:
    """A curve's label without settings; empty for methods that the paper does not have."""
    names = (name for name in (*NAMES.values(), EXACT) if f"{method} ".startswith(f"{name} "))
    return max(names, key=len, default="")


def _group_exact_records(
    groups: Mapping[tuple[str, str, float], Sequence[Record]], log_z: Mapping[str, float]
) -> dict[tuple[str, str, float], list[Record]]:
    """One record of each model, for the curve that no bound can pass, where log Z is known of all models of a point:
    the mean over some of them cannot be compared with the others' means."""
    records_by_point: dict[tuple[str, str, float], dict[str, Record]] = defaultdict(dict)
    for (panel, _, x), group in groups.items():
        for record in group:
            records_by_point[panel, EXACT, x].setdefault(_model_key(record), record)
    return {place: list(models.values()) for place, models in records_by_point.items() if models.keys() <= log_z.keys()}


def _panel_title(model: Mapping[str, Any], *, beta: bool) -> str:
    """The graphs and the kind of their factors, with their number where β varies and with β where it does not."""
    name = GRAPHS[model["name"]]
    graph = name
    if name.startswith("-"):
        graph = f"{model['degree']}{name}"
    fixed = f"β = {model['beta']:g}"
    if beta:
        fixed = f"{_count_factors(model)} factors"
    return f"{graph}, {fixed}, {model['kind']}"


def _count_factors(model: Mapping[str, Any]) -> int:
    if "rows" in model:
        return int(model["rows"]) * int(model["cols"])
    return int(model["nodes"])


def _curve_label(label: str) -> str:
    method, _, settings = label.partition(" ")
    return " ".join(filter(None, [NAMES.get(method, method), settings]))


def _model_key(record: Record) -> str:
    return json.dumps(record.config["model"], sort_keys=True)


def _log_z_estimate(record: Record) -> float | None:
    if record.result_or_none is None:
        return None
    return record.result_or_none.log_z


def _relative_error(bound: float | None, true: float | None) -> float | None:
    if bound is None or not true:
        return None
    return abs(true - bound) / abs(true)


def _difference(minuend: float | None, subtrahend: float | None) -> float | None:
    if minuend is None or subtrahend is None:
        return None
    return minuend - subtrahend
