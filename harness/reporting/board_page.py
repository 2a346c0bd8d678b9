"""`spinbench profile FOLDER --html FILE`: the cells of a board in one page, which filters, ranks and compares them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from spinbench.inference import kernels, registry
from spinbench.measuring import records as stored
from spinbench.measuring.record_types import Record
from spinbench.reporting import page
from spinbench.reporting.page_content import to_javascript_numbers
from spinbench.reporting.profiles.boards import HELLINGER, LOG_Z, REFERENCE_METHOD, RMSE, solver_names
from spinbench.reporting.profiles.profile import budget_label, model_class

QUANTITIES = (RMSE, LOG_Z, HELLINGER)
QUANTITY_PARTS = ("name", "doubt", "metric", "floor", "tolerance")
# Digits of measured numbers: more than the page shows.
DIGITS = 4


class Budget(NamedTuple):
    """How long a cell runs; cells are compared where all of it is equal."""

    seconds: float | None
    samples: int | None
    burn_in: float | None
    cpu: bool


class Solver(NamedTuple):
    """A method on a backend, its label with the settings that tell it from others of the same.

    `library` says whether the backend is another library.
    """

    label: str
    method: str
    backend: str
    library: bool


def write_board_page(records: Iterable[Record] | str | Path, path: str | Path, title: str = "board") -> Path:
    """Write the page of a board, which needs no network and no server.

    Args:
        records: of any number of sweeps, or the folder of one. Of the same cell the newest counts.
        path: of the HTML file.
        title: of the page.

    Raises:
        SpinbenchError: there are no records of methods other than `exact`, or the page cannot be written.
    """
    board_records = stored.read_records(Path(records)) if isinstance(records, str | Path) else records
    return page.write_page(Path(path), "board.html", {"title": title, "data": build_board_data(board_records)})


def build_board_data(records: Iterable[Record]) -> dict[str, Any]:
    """What the page's scripts read: models, solvers, budgets, and cells as columns, with numbers in the place of texts.

    A cell's numbers are null where there are none, and stand there whatever its verdict. `verdict` is why there is no
    answer where `status` is not "ok". Widths are those of exact answers among the records.

    Raises:
        RecordError: there are no records of methods other than `exact`.
    """
    latest = stored.latest_per_cell(records)
    compared = [record for record in latest if record.axes.method != REFERENCE_METHOD]
    if not compared:
        raise stored.RecordError(f"of {len(latest)} records none is of a method other than {REFERENCE_METHOD}")
    classes = {record.axes.model: model_class(record) for record in compared}
    features = _model_features(latest)
    labels = sorted(classes, key=lambda label: (classes[label], label))
    models = [{"label": label, "class": classes[label], **features[label]} for label in labels]
    cell_budgets = [_budget(record) for record in compared]
    budgets = sorted(set(cell_budgets), key=lambda budget: [part or 0 for part in budget])
    cell_solvers = _solvers(compared)
    solvers = list(dict.fromkeys(cell_solvers))
    texts = {
        "status": [record.status for record in compared],
        "verdict": [_verdict(record) for record in compared],
        "marginals_level": [_level(record, "marginals") for record in compared],
        "log_z_level": [_level(record, "log_z") for record in compared],
    }
    dictionaries = {name: list(dict.fromkeys(column)) for name, column in texts.items()}
    cells = {
        "model": _number([record.axes.model for record in compared], labels),
        "solver": _number(cell_solvers, solvers),
        "budget": _number(cell_budgets, budgets),
        **{name: _number(column, dictionaries[name]) for name, column in texts.items()},
        "seed": [record.config["seed"] for record in compared],
        "cpu_seconds": [_cpu_seconds(record) for record in compared],
        **{name: [record.metric(name).value for record in compared] for name in (q.metric for q in QUANTITIES)},
    }
    return {
        "quantities": [{name: getattr(quantity, name) for name in QUANTITY_PARTS} for quantity in QUANTITIES],
        "models": to_javascript_numbers(models, DIGITS),
        "solvers": [solver._asdict() for solver in solvers],
        "budgets": [{"label": budget_label(*budget), **budget._asdict()} for budget in budgets],
        "texts": dictionaries,
        "cells": to_javascript_numbers(cells, DIGITS),
    }


def _number(column: Sequence[Hashable], values: Sequence[Hashable]) -> list[int]:
    """Of each entry of a column its place among the values."""
    places = {value: place for place, value in enumerate(values)}
    return [places[value] for value in column]


def _budget(record: Record) -> Budget:
    budget = record.config["budget"]
    return Budget(budget.get("seconds"), budget.get("samples"), budget.get("burn_in"), bool(budget.get("cpu")))


def _solvers(records: Sequence[Record]) -> list[Solver]:
    # Records of others name backends that are not installed here.
    names = {record.config["backend"]["name"] for record in records}.intersection(registry.names("backends"))
    libraries = {name for name in names if kernels.is_peer(name)}
    return [
        Solver(name, record.axes.method, record.axes.backend, record.config["backend"]["name"] in libraries)
        for record, name in zip(records, solver_names(records), strict=True)
    ]


def _model_features(records: Sequence[Record]) -> dict[str, dict[str, float | None]]:
    """By label; of older records the number of variables alone."""
    features: dict[str, dict[str, float | None]] = defaultdict(dict)
    for record in records:
        model = features[record.axes.model]
        if record.features is not None:
            model |= {name: getattr(record.features, name) for name in ("variables", "states", "order", "zeros")}
        if (result := record.result_or_none) is None:
            continue
        model.setdefault("variables", result.variables)
        width = (result.diagnostics or {}).get("width")
        # -1 stands for unknown.
        if record.axes.method == REFERENCE_METHOD and isinstance(width, int | float) and width >= 0:
            model["width"] = width
    return features


def _verdict(record: Record) -> str:
    return record.result.status if record.status == "ok" else record.error or ""


def _level(record: Record, quantity: str) -> str:
    levels = record.result.levels if record.result_or_none else None
    return (levels or {}).get(quantity, "")


def _cpu_seconds(record: Record) -> float | None:
    load = record.result.load if record.result_or_none else None
    return load.cpu_seconds if load else None
