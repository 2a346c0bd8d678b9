"""Records to boards: what each solver reached on each model after one budget, and how solvers compare over models."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.foundation.trees import flatten
from spinbench.measuring import record_types, trust
from spinbench.reporting.variants import difference_labels

FloatArray = npt.NDArray[np.float64]
# Bootstrap resamples of the models, for the intervals of mean ranks.
RESAMPLES = 2000
CONFIDENCE = 0.95


class MeanOverModels(NamedTuple):
    """Of each solver, (S,): the mean over models, and the ends of its interval."""

    mean: FloatArray
    low: FloatArray
    high: FloatArray


def performance_ratios(values: FloatArray, floor: float) -> FloatArray:
    """Each value over the least of its model, (M, S), 1 or more; infinite where unsolved.

    These are the performance ratios of Dolan and Moré, "Benchmarking optimization software with performance profiles",
    Math. Program. 91 (2002), equation (1.1). Values below `floor` are equal: who needs one that small has no use for
    a smaller one, and an exact answer would be infinitely better than any other.
    """
    floored = np.maximum(values, floor)
    best = floored.min(axis=1, keepdims=True)
    return np.where(np.isfinite(floored), floored / np.where(np.isfinite(best), best, 1.0), np.inf)


def performance_profiles(ratio: FloatArray, factors: FloatArray) -> FloatArray:
    """The profiles ρ, (F, S): on which share of the models a solver is within each factor of the best (the same)."""
    within: FloatArray = (ratio[None] <= factors[:, None, None]).mean(axis=1)
    return within


def rank_solvers(ratio: FloatArray) -> FloatArray:
    """The rank of each solver on each model, (M, S), from 1; equals, and all that solve nothing, share their mean."""
    less = (ratio[:, None, :] < ratio[:, :, None]).sum(axis=2)
    equal = (ratio[:, None, :] == ratio[:, :, None]).sum(axis=2)
    shared: FloatArray = less + (equal + 1) / 2
    return shared


def mean_over_models(values: FloatArray, *, resamples: int = RESAMPLES, seed: int = 0) -> MeanOverModels:
    """Of (M, S) values, with percentile intervals of the bootstrap over models (Efron and Tibshirani 1993, chapter 13).

    The interval says how much the mean hangs on which models were asked; noise within a model is no part of it.
    """
    models = len(values)
    resampled = np.random.default_rng(seed).integers(models, size=(resamples, models))
    counts = np.stack([np.bincount(row, minlength=models) for row in resampled])
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(counts @ values / models, (tail, 1 - tail), axis=0)
    return MeanOverModels(values.mean(axis=0), low, high)


# Method whose answers define the errors; it has none itself and is compared by time only.
REFERENCE_METHOD = "exact"

# {(solver, model): records}.
Cells = Mapping[tuple[str, str], Sequence[record_types.Record]]


@dataclass(frozen=True)
class Quantity:
    """What solvers are compared by.

    Attributes:
        name: for headings; short: for narrow ones.
        doubt: what a verdict that speaks against it speaks of.
        number: of a record.
        metric: without which a record says nothing of it.
        floor: numbers below are equal.
        tolerance: error that most people can live with; None of what is no error.
    """

    name: str
    short: str
    doubt: str
    number: trust.Number
    metric: str
    floor: float
    tolerance: float | None = None


RMSE = Quantity("RMSE of the marginals", "RMSE", "marginals", trust.marginal_rmse_or_inf, "marginal_rmse", 1e-4, 0.01)
LOG_Z = Quantity("|error of log Z|", "log Z", "log Z", trust.log_z_error_or_inf, "log_z_error", 1e-3, 0.05)
HELLINGER = Quantity(
    "mean Hellinger distance", "Hellinger", "marginals", trust.hellinger_or_inf, "hellinger", 1e-4, 0.01
)
SECONDS = Quantity(
    "seconds to an RMSE of 1 %", "to 1 %", "marginals", trust.seconds_to_error_or_inf, "marginal_rmse", 1e-3
)


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
        return performance_ratios(self.values, self.quantity.floor)

    @property
    def model_ranks(self) -> FloatArray:
        """(models, solvers) ranks on each model."""
        return rank_solvers(self.ratios)

    @property
    def ranks(self) -> MeanOverModels:
        """Of each solver over the models."""
        return mean_over_models(self.model_ranks)

    def wins(self) -> dict[str, list[tuple[str, int]]]:
        """By class, of those that are best somewhere or tied: solver, on how many models."""
        first = self.ratios == 1
        winners = {}
        for name in dict.fromkeys(self.classes):
            count = first[[model_class == name for model_class in self.classes]].sum(axis=0)
            order = sorted(np.flatnonzero(count).tolist(), key=lambda i: -count[i])
            winners[name] = [(self.solvers[i], int(count[i])) for i in order]
        return winners


def build_board(budgets: Sequence[Cells], classes: Mapping[str, str], quantity: Quantity, name: str) -> Board | None:
    """Of the records of one budget or, the best of them on each model, of several; None where none has the quantity.

    Models on which no record has it, for want of an exact answer, and solvers that never have it are left out.

    Args:
        budgets: the cells of each.
        classes: of the models, by label; in this order they stand on the board.
        quantity: to compare by.
        name: of the budget.
    """
    measured = {
        key
        for cells in budgets
        for key, group in cells.items()
        if any(record.metric(quantity.metric).value is not None for record in group)
    }
    models = [model for model in classes if any(model == other for _, other in measured)]
    solvers = sorted({solver for solver, _ in measured})
    if not models:
        return None
    values = np.array(
        [[min(_median_error(cells.get((s, m), ()), quantity) for cells in budgets) for s in solvers] for m in models]
    )
    order = np.argsort(rank_solvers(performance_ratios(values, quantity.floor)).mean(axis=0), kind="stable")
    ordered = [solvers[i] for i in order]
    counts = tuple(_count_outcomes(budgets, solver, models, quantity) for solver in ordered)
    names = tuple(classes[model] for model in models)
    return Board(quantity, name, tuple(ordered), tuple(models), names, values[:, order], counts)


def solver_names(records: Sequence[record_types.Record]) -> list[str]:
    """Of each record "METHOD.BACKEND", with the settings in which those of the same name differ beside budgets."""
    settings = [{"chains": record.config["chains"], **flatten(record.config["method"])} for record in records]
    short = [f"{record.axes.method}.{record.axes.backend}" for record in records]
    return [" ".join(filter(None, pair)) for pair in zip(short, difference_labels(short, settings), strict=True)]


def cell_outcome(record: record_types.Record, quantity: Quantity) -> str:
    """One word for what came of a cell."""
    if record.status == "skipped":
        return "refused"
    if record.status != "ok":
        return "failed"
    return "ok" if trust.is_trusted(record, quantity.doubt) else "doubted"


def _median_error(group: Sequence[record_types.Record], quantity: Quantity) -> float:
    if group:
        return statistics.median([quantity.number(record) for record in group])
    return math.inf


def _count_outcomes(budgets: Sequence[Cells], solver: str, models: Sequence[str], quantity: Quantity) -> Counter[str]:
    outcomes: Counter[str] = Counter()
    for cells in budgets:
        groups = [cells.get((solver, model), ()) for model in models]
        outcomes.update(cell_outcome(record, quantity) for group in groups for record in group)
        runs = max(map(len, cells.values()), default=0)
        outcomes["not run"] += sum(runs - len(group) for group in groups)
    return outcomes
