"""Tables across models beside the boards: UAI scores, exact solvers, what solvers add to each other, the models."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from spinbench.foundation.remarks import format_count
from spinbench.measuring.record_model import ModelFeatures
from spinbench.measuring.record_types import Record
from spinbench.reporting.profiles import contributions
from spinbench.reporting.profiles.boards import REFERENCE_METHOD, Board, mean_over_models

# Errors below count as none where scores are normalised, in nats and as a distance.
NO_ERROR = 1e-9
# CPU seconds after which exact answers are counted.
EXACT_SECONDS = (1.0, 10.0)


class Table(NamedTuple):
    """Texts for people: a title, headings, and lines of as many texts."""

    title: str
    heads: Sequence[str]
    lines: Sequence[Sequence[str]]


class Score(NamedTuple):
    """A score of the UAI competitions: its name, a record's error, and that of the trivial answer."""

    task: str
    error: Callable[[Record], float | None]
    trivial: Callable[[ModelFeatures], float | None]


SCORES = (
    Score("PR", lambda record: record.metric("log_z_error").value, lambda features: features.trivial_log_z_error),
    Score("MAR", lambda record: record.metric("hellinger").value, lambda features: features.trivial_hellinger),
)


def uai_score(error: float | None, trivial_error: float) -> float:
    """max(0, 100 (1 - error / trivial error)), 0 without an answer, as in the competition of 2022.

    PR takes |log (Z / exact Z)|, MAR the mean Hellinger distance of the marginals
    (uaicompetition.github.io/uci-2022/results/evaluation-criteria). Verdicts do not matter.
    """
    if error is None:
        return 0.0
    if trivial_error <= NO_ERROR:
        return 100.0 * (error <= NO_ERROR)
    return max(0.0, 100.0 * (1.0 - error / trivial_error))


def uai_table(
    records: Sequence[tuple[str, Record]], every: Iterable[Record], cpu_seconds: float | None, budget: str
) -> Table | None:
    """Mean scores of each solver over the models whose exact answers are known; means over seeds count for a model.

    Args:
        records: of one budget, each with its solver's name.
        every: records of any budget, of which exact solvers' count where they took no more CPU seconds.
        cpu_seconds: the budget, if it is one of the CPU.
        budget: for the title.
    """
    exact = [record for record in every if record.axes.method == REFERENCE_METHOD]
    if cpu_seconds is not None:
        in_time = [record for record in exact if (_cpu_seconds(record) or math.inf) <= cpu_seconds]
        records = [*records, *((f"exact.{record.axes.backend}", record) for record in in_time)]
    features = model_features(record for _, record in records)
    solvers = list(dict.fromkeys(solver for solver, _ in records))
    runs: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for solver, record in records:
        runs[solver, record.axes.model].append(record)
    columns = {}
    for task, error, trivial in SCORES:
        trivials = {model: value for model in features if (value := trivial(features[model])) is not None}
        if trivials:
            scores = [
                [_mean_score(runs[solver, model], error, trivials[model]) for solver in solvers] for model in trivials
            ]
            columns[f"{task}, {format_count(len(trivials), 'model')}"] = mean_over_models(np.array(scores))
    if not columns:
        return None
    order = sorted(range(len(solvers)), key=lambda i: -sum(column.mean[i] for column in columns.values()))
    lines = [
        [solvers[i]]
        + [text for c in columns.values() for text in (f"{c.mean[i]:.1f}", f"{c.low[i]:.0f}–{c.high[i]:.0f}")]
        for i in order
    ]
    heads = ["solver", *(head for name in columns for head in (name, "95 %"))]
    return Table(f"Scores of the UAI competitions after {budget}, of 100", heads, lines)


def _mean_score(group: Sequence[Record], error: Callable[[Record], float | None], trivial: float) -> float:
    return statistics.fmean([uai_score(error(record), trivial) for record in group]) if group else 0.0


def model_features(records: Iterable[Record]) -> dict[str, ModelFeatures]:
    """By the models' labels, of those that have them."""
    return {record.axes.model: record.features for record in records if record.features is not None}


def exact_table(records: Iterable[Record]) -> Table | None:
    """How many models the exact solvers answer within how many CPU seconds of the run; None without such records."""
    groups: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        if record.axes.method == REFERENCE_METHOD:
            groups[record.axes.backend].append(record)
    lines = []
    for backend, group in groups.items():
        seconds = sorted(filter(None, map(_cpu_seconds, group)))
        within = [sum(used <= limit for used in seconds) for limit in EXACT_SECONDS]
        status = Counter(record.status for record in group)
        median = f"{statistics.median(seconds):.2g}" if seconds else "–"
        outcomes = [str(status[name] or "") for name in ("failed", "skipped")]
        lines.append([f"exact.{backend}", *map(str, (len(group), *within, len(seconds))), median, *outcomes])
    lines.sort(key=lambda line: [-int(text) for text in line[2:5]])
    limits = [f"≤ {limit:g} CPU s" for limit in EXACT_SECONDS]
    heads = ["solver", "models", *limits, "answered", "median CPU s", "failed or too slow", "refused"]
    return Table("Exact solvers", heads, lines) if lines else None


def _cpu_seconds(record: Record) -> float | None:
    """Of a run that has an answer, be it marginals alone."""
    if record.status != "ok" or record.result.load is None:
        return None
    return record.result.load.cpu_seconds


def contribution_table(board: Board) -> Table | None:
    """Right decimals of each solver and what it adds to the others; which mean ranks are not told apart.

    None for a board of seconds, which have no decimals, and for one without models that anybody solves.
    """
    test = contributions.compare_ranks(board.model_ranks)
    if board.quantity.tolerance is None or test is None:
        return None
    scores = contributions.right_decimals(board.values, board.quantity.floor)
    shapley = mean_over_models(contributions.shapley_values(scores))
    lost = contributions.marginal_contributions(scores).mean(axis=0)
    groups = contributions.rank_groups(board.ranks.mean, test.critical_difference)
    best = ["virtual best", f"{scores.max(axis=1).mean():.2f}", f"{scores.max(axis=1).mean():.2f}", "", "", ""]
    lines = [
        [
            solver,
            *(f"{scores[:, i].mean():.2f}", f"{shapley.mean[i]:.3f}"),
            *(f"{shapley.low[i]:.3f}–{shapley.high[i]:.3f}", f"{lost[i]:.3f}", groups[i]),
        ]
        for i, solver in enumerate(board.solvers)
    ]
    heads = ["solver", "right decimals", "Shapley value", "95 %", "without it", "alike"]
    title = f"What each solver adds, {board.quantity.name} after {board.budget}"
    alike = f"mean ranks less than {test.critical_difference:.1f} apart are alike (Nemenyi, 5 %)"
    return Table(f"{title}; {alike}, Friedman p = {test.p_value:.1g}", heads, [best, *lines])


def time_table(boards: Sequence[Board], limit: float) -> Table | None:
    """PAR2 of the seconds to an error; None where no board has seconds or a budget no limit.

    Args:
        boards: of all quantities.
        limit: the longest budget in seconds.
    """
    board = next((board for board in boards if not board.budget), None)
    if board is None or not math.isfinite(limit):
        return None
    means = contributions.penalised_mean(board.values, limit)
    solved = (board.values <= limit).sum(axis=0)
    order = np.argsort(means, kind="stable").tolist()
    lines = [[board.solvers[i], f"{solved[i]} of {len(board.models)}", f"{means[i]:.3g}"] for i in order]
    return Table(f"{board.quantity.name} within {limit:g} s", ["solver", "models", "PAR2, s"], lines)


def model_table(records: Sequence[Record], classes: Mapping[str, str], boards: Sequence[Board]) -> Table | None:
    """A line a model: its class, size, zeros, exact log Z and its solver, and how many solvers come near it.

    Args:
        records: of all cells.
        classes: of the models, by label.
        boards: what solvers reached.
    """
    features = model_features(records)
    if not features:
        return None
    references = {record.axes.model: record.reference for record in records if record.reference is not None}
    rated = [(board, board.quantity.tolerance) for board in boards if board.quantity.tolerance is not None]
    solved: dict[str, list[str]] = defaultdict(list)
    for board, tolerance in rated:
        near = (board.values <= tolerance).sum(axis=1)
        for model, count in zip(board.models, near, strict=True):
            solved[model].append(f"{count}/{len(board.solvers)}")
    lines = []
    for model in filter(features.__contains__, classes):
        each, exact = features[model], references.get(model)
        size = [f"{number:g}" for number in (each.variables, each.factors, each.states, each.order)]
        log_z = "–" if exact is None or exact.log_z is None else f"{exact.log_z:.6f}"
        solver = "–" if exact is None or exact.method is None else exact.method
        lines.append(
            [model, classes[model], *size, f"{100 * each.zeros:.0f} %", log_z, solver, ", ".join(solved[model])]
        )
    limits = ", ".join(f"{board.quantity.short} {board.budget} {tolerance:g}" for board, tolerance in rated)
    heads = ["model", "class", "variables", "factors", "states", "order", "zeros", "exact log Z", "solver"]
    return Table("Models", [*heads, f"solvers within {limits}"], lines)
