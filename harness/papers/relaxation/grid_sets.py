"""Mean square errors over (c1, c2) for figures 2 and 3 of the DHMC paper, from records.

Zhang, Sutton, Storkey and Ghahramani, "Continuous Relaxations for Discrete Hamiltonian Monte Carlo", NIPS 2012,
section 5. A record is one run. Its square error is that of this run alone: of the marginals the mean over the nodes of
(estimate - exact)², of log Z the square of the error. The MSE of a graph is the mean over its runs.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spinbench.foundation.remarks import format_count
from spinbench.measuring.record_types import Record
from spinbench.reporting import variants

# Rows of the figure: each shows the mean square of this number of the records.
MEASURES = {"marginal": variants.metric_value("marginal_rmse"), "log_z": variants.method_log_z_error}
NAMES = {"gibbs": "Gibbs", "dhmc": "DHMC", "block_gibbs": "block Gibbs", "exact": "exact"}


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
    differences = _differing_parameters(models)
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
    labels = _column_labels({key: group[0].config for key, group in groups.items()})
    return [
        Column(
            label=labels[key],
            method=key[0],
            backend=key[1],
            settings={k: v for k, v in group[0].config["method"].items() if k != "name"},
            cells={measure: _average_by_graph(group, value) for measure, value in MEASURES.items()},
        )
        for key, group in groups.items()
    ]


def _average_by_graph(records: Sequence[Record], value: variants.RecordValue) -> dict[tuple[float, float], Cell]:
    runs: dict[tuple[float, float], list[float | None]] = defaultdict(list)
    for record in records:
        model = record.config["model"]
        error = value(record)
        square = None if error is None else error**2
        runs[float(model["c1"]), float(model["c2"])].append(square)
    return {place: _average_squares(values) for place, values in runs.items()}


def _average_squares(squares: Sequence[float | None]) -> Cell:
    values = [square for square in squares if square is not None]
    if not values:
        return Cell(None, None, 0, len(squares))
    mean, spread = math.fsum(values) / len(values), None
    if len(values) > 1:
        spread = math.sqrt(math.fsum((x - mean) ** 2 for x in values) / (len(values) - 1) / len(values))
    return Cell(mean, spread, len(values), len(squares) - len(values))


def _column_labels(configs: Mapping[tuple[str, str, str], Mapping[str, Any]]) -> dict[tuple[str, str, str], str]:
    """Names, with what counts as a sample of Gibbs, and with the settings that tell columns of one method apart."""
    labels = {}
    for key, config in configs.items():
        method, settings = config["method"]["name"], _flatten_settings(config)
        rivals = [_flatten_settings(other) for name, other in configs.items() if name[0] == method and name != key]
        distinguishing = {name for name in settings if any(other.get(name) != settings[name] for other in rivals)}
        remarks = []
        if method == "gibbs" and config["budget"].get("samples") is not None and "sample" in settings:
            remarks.append(f"1 {settings['sample']} a sample")
            if "sample" in distinguishing:
                distinguishing -= {"sample", "scan"}
        remarks += [f"{name}={settings[name]}" for name in settings if name in distinguishing]
        name = NAMES.get(method, method)
        labels[key] = name
        if remarks:
            labels[key] += f" ({', '.join(remarks)})"
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


def _differing_parameters(models: Mapping[str, Mapping[str, object]]) -> dict[str, dict[str, object]]:
    return {
        key: {name: value for name, value in model.items() if any(m.get(name) != value for m in models.values())}
        for key, model in models.items()
    }


def format_settings(settings: Mapping[str, object]) -> str:
    """NAME=VALUE, with spaces between."""
    return " ".join(
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in settings.items()
    )
