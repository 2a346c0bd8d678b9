"""Records to boards: what each solver reached on each model after one budget."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spinbench.foundation.trees import flattened
from spinbench.measuring import believed
from spinbench.measuring.believed import Number
from spinbench.measuring.record_types import Record
from spinbench.reporting.profiles import measures

FloatArray = npt.NDArray[np.float64]
REFERENCE = "exact"
"""The method that errors are taken against, and which is left out: it has none, and is compared by its seconds."""

Cells = Mapping[tuple[str, str], Sequence[Record]]
"""Records by solver and model."""


@dataclass(frozen=True)
class Quantity:
    """What solvers are compared by.

    Attributes:
        name: for headings; short: for narrow ones.
        doubt: what a verdict that speaks against it speaks of.
        number: of a record.
        metric: without which a record says nothing of it.
        floor: numbers below are equal.
    """

    name: str
    short: str
    doubt: str
    number: Number
    metric: str
    floor: float


RMSE = Quantity("RMSE of the marginals", "RMSE", "marginals", believed.rmse, "marginal_rmse", 1e-4)
LOG_Z = Quantity("|error of log Z|", "log Z", "log Z", believed.log_z_error, "log_z_error", 1e-3)
SECONDS = Quantity("seconds to an RMSE of 1 %", "to 1 %", "marginals", believed.seconds, "marginal_rmse", 1e-3)


@dataclass(frozen=True, eq=False)
class Board:
    """What solvers reached.

    Attributes:
        quantity: by what they are compared.
        budget: "1 s"; empty for the seconds to an error, which are the least over all budgets.
        solvers: "gibbs.numba", with the settings that tell variants apart, in the order of their mean ranks.
        models: labels; classes: theirs, in the same order.
        values: (models, solvers) medians over seeds, infinite where the solver failed, refused, was not vouched for or
            was not run.
        counts: of each solver, how many of its cells were "ok", "doubted", "failed", "refused" or "not run".
    """

    quantity: Quantity
    budget: str
    solvers: tuple[str, ...]
    models: tuple[str, ...]
    classes: tuple[str, ...]
    values: FloatArray
    counts: tuple[Counter[str], ...]

    @property
    def ratios(self) -> FloatArray:
        """(models, solvers) of the values over the least of their model."""
        return measures.ratios(self.values, self.quantity.floor)

    @property
    def ranks(self) -> measures.MeanRanks:
        """Of each solver over the models."""
        return measures.mean_ranks(measures.places(self.ratios))

    def wins(self) -> dict[str, list[tuple[str, int]]]:
        """By class, of those that are best somewhere or tied: solver, on how many models."""
        first = self.ratios == 1
        found = {}
        for name in dict.fromkeys(self.classes):
            count = first[[one == name for one in self.classes]].sum(axis=0)
            order = sorted(np.flatnonzero(count).tolist(), key=lambda i: -count[i])
            found[name] = [(self.solvers[i], int(count[i])) for i in order]
        return found


def board(budgets: Sequence[Cells], classes: Mapping[str, str], quantity: Quantity, name: str) -> Board | None:
    """Of the records of one budget or, the best of them on each model, of several; None where none has the quantity.

    Models on which no record has it, for want of an exact answer, and solvers that never have it are left out.

    Args:
        budgets: the cells of each.
        classes: of the models, by label; in this order they stand on the board.
        quantity: to compare by.
        name: of the budget.
    """
    told = {
        key for cells in budgets for key, group in cells.items() if any(_measured(record, quantity) for record in group)
    }
    models = [model for model in classes if any(model == other for _, other in told)]
    solvers = list(dict.fromkeys(solver for solver, _ in told))
    if not models:
        return None
    values = np.array(
        [[min(_value(cells.get((s, m), ()), quantity) for cells in budgets) for s in solvers] for m in models]
    )
    mean = measures.places(measures.ratios(values, quantity.floor)).mean(axis=0)
    order = sorted(range(len(solvers)), key=lambda i: (mean[i], solvers[i]))
    return Board(
        quantity,
        name,
        tuple(solvers[i] for i in order),
        tuple(models),
        tuple(classes[model] for model in models),
        values[:, order],
        tuple(_counts(budgets, solvers[i], models, quantity) for i in order),
    )


def solver_names(records: Sequence[Record]) -> list[str]:
    """Of each record "METHOD.BACKEND", with the settings in which those of the same name differ beside budgets."""
    settings = [{"chains": record.config["chains"], **flattened(record.config["method"])} for record in records]
    short = [f"{record.axes.method}.{record.axes.backend}" for record in records]
    rivals: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for name, own in zip(short, settings, strict=True):
        for key, value in own.items():
            rivals[name][key].add(str(value))
    return [
        " ".join([name, *(f"{key}={value}" for key, value in own.items() if len(rivals[name][key]) > 1)])
        for name, own in zip(short, settings, strict=True)
    ]


def outcome(record: Record, quantity: Quantity) -> str:
    """One word for what came of a cell."""
    if record.status == "skipped":
        return "refused"
    if record.status != "ok":
        return "failed"
    return "ok" if believed.vouched(record, quantity.doubt) else "doubted"


def _measured(record: Record, quantity: Quantity) -> bool:
    """Whether it has the number; without an exact answer there is a reason in its place."""
    return record.metric(quantity.metric).value is not None


def _value(group: Sequence[Record], quantity: Quantity) -> float:
    return statistics.median([quantity.number(record) for record in group]) if group else math.inf


def _counts(budgets: Sequence[Cells], solver: str, models: Sequence[str], quantity: Quantity) -> Counter[str]:
    found: Counter[str] = Counter()
    for cells in budgets:
        groups = [cells.get((solver, model), ()) for model in models]
        found.update(outcome(record, quantity) for group in groups for record in group)
        runs = max(map(len, cells.values()), default=0)
        found["not run"] += sum(runs - len(group) for group in groups)
    return found
