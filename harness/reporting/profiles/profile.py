"""`spinbench.profile`: solvers compared over the models of a sweep."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinbench.measuring import records as stored
from spinbench.measuring.record_types import Record, parse_record
from spinbench.measuring.records import RecordError
from spinbench.measuring.trust import format_error_calibration
from spinbench.reporting.profiles import tables
from spinbench.reporting.profiles.boards import (
    LOG_Z,
    REFERENCE_METHOD,
    RMSE,
    SECONDS,
    Board,
    Cells,
    build_board,
    cell_outcome,
    solver_names,
)
from spinbench.reporting.profiles.recommendations import recommendations
from spinbench.reporting.profiles.runtimes import FloatArray, runtime_distributions
from spinbench.reporting.profiles.tables import Table


@dataclass(frozen=True)
class Profile:
    """Solvers, which are methods on backends with their settings, compared over models.

    Attributes:
        boards: for each budget one of the marginals' RMSE and one of the error of log Z, as far as records have them,
            shorter budgets first; then one of the seconds to an RMSE of one per cent.
        models: how many have records.
        unanswered: labels of those without an exact answer, on which nothing is compared.
        counts: of cells, by what came of them ("ok", "doubted", "failed", "refused"); "doubted" are those whose verdict
            speaks against marginals or log Z or both. All but the first count as failures, for the number in doubt.
        truth: a sentence on how many of the numbers that were vouched for are further off than they claim to be.
        recommendations: what to use when, in sentences with their counts.
        tables: UAI scores, exact solvers, what solvers add to each other, PAR2, and the models.
        runtimes: of each solver that reaches any, the sorted seconds to many targets on all models.
    """

    boards: tuple[Board, ...]
    models: int
    unanswered: tuple[str, ...]
    counts: Counter[str]
    truth: str
    recommendations: tuple[str, ...]
    tables: tuple[Table, ...]
    runtimes: Mapping[str, FloatArray]

    @property
    def last(self) -> tuple[Board, ...]:
        """The boards of the longest budget, and that of the seconds."""
        budget = next((board.budget for board in reversed(self.boards) if board.budget), "")
        return tuple(board for board in self.boards if board.budget in (budget, ""))


def profile(records: Iterable[Record] | str | Path) -> Profile:
    """Compare the solvers of a sweep over all of its models.

    Performance profiles (Dolan and Moré 2002) of the error after equal times and of the time to an error, mean ranks
    with 95 % intervals of the bootstrap over models, and wins by class of models: `Profile.boards` has each. Errors are
    medians over seeds, infinite where the solver failed, refused, was not run, or where its verdict speaks against the
    number. Cells of the method `exact` are left out: errors are taken against it.

    Args:
        records: of any number of sweeps, or the folder of one. Of the same cell the newest counts.

    Raises:
        RecordError: the folder holds no records, or something else was given.
    """
    records_list = stored.read_records(Path(records)) if isinstance(records, str | Path) else _parse_records(records)
    every = stored.latest_per_cell(records_list)
    latest = [record for record in every if record.axes.method != REFERENCE_METHOD]
    classes = {record.axes.model: model_class(record) for record in latest}
    classes = {model: classes[model] for model in sorted(classes, key=lambda model: (classes[model], model))}
    budgets: dict[tuple[Any, ...], dict[tuple[str, str], list[Record]]] = defaultdict(lambda: defaultdict(list))
    named = list(zip(solver_names(latest), latest, strict=True))
    for solver, record in named:
        budget = record.config["budget"]
        budget_key = tuple(budget.get(name) for name in ("seconds", "samples", "burn_in", "cpu"))
        budgets[budget_key][solver, record.axes.model].append(record)
    ordered = sorted(budgets, key=lambda budget: [part or 0 for part in budget])
    all_boards = [
        build_board([budgets[key]], classes, quantity, budget_label(*key))
        for key in ordered
        for quantity in (RMSE, LOG_Z)
    ]
    all_boards.append(build_board(list(budgets.values()), classes, SECONDS, ""))
    boards = [board for board in all_boards if board is not None]
    answered_models = {model for board in boards for model in board.models}
    per_budget = [
        tables.uai_table(_flatten(budgets[key]), every, key[0] if key[-1] else None, budget_label(*key))
        for key in ordered
    ]
    others = [
        tables.exact_table(every),
        *(tables.contribution_table(board) for board in boards),
        tables.time_table(boards, max((key[0] or math.inf for key in ordered), default=math.inf)),
        tables.model_table(every, classes, boards),
    ]
    return Profile(
        tuple(boards),
        len(classes),
        tuple(model for model in classes if model not in answered_models),
        Counter(_combine_outcomes(record) for record in latest),
        format_error_calibration(latest),
        tuple(recommendations(boards)),
        tuple(table for table in (*per_budget, *others) if table is not None),
        runtime_distributions(named),
    )


def _flatten(cells: Cells) -> list[tuple[str, Record]]:
    return [(solver, record) for (solver, _), group in cells.items() for record in group]


def _parse_records(records: object) -> list[Record]:
    record_list: list[Any] = list(records) if isinstance(records, Iterable) else [records]
    try:
        return [record if isinstance(record, Record) else parse_record(record) for record in record_list]
    except ValueError as error:
        kind = type(records).__name__
        raise RecordError(f"{kind} was given; the folder of a sweep is needed, or a list of its records") from error


def model_class(record: Record) -> str:
    """What the sweep called the model's class; else its family, or the folder that it was shipped in or read from."""
    if record.model_class:
        return record.model_class
    spec = record.config["model"]
    if spec.get("name") == "file" and spec.get("path"):
        return Path(str(spec["path"])).parent.name or "file"
    return str(spec.get("name", record.axes.model)).partition("/")[0]


def _combine_outcomes(record: Record) -> str:
    outcomes = {cell_outcome(record, quantity) for quantity in (RMSE, LOG_Z)}
    if len(outcomes) > 1:
        return "doubted"
    return outcomes.pop()


def budget_label(seconds: float | None, samples: int | None, burn_in: float | None, cpu: bool | None) -> str:
    """For headings, "1 CPU s"."""
    length = f"{seconds:g} {'CPU s' if cpu else 's'}" if seconds is not None else f"{samples} samples"
    return length if burn_in is None else f"{length}, burn-in {burn_in:g}"
