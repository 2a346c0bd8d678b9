"""The reports of `experiment=hard` and of `experiment=peers`.

`hard`: the best of all methods on each model after each budget. A run counts for a quantity if its verdict stands
behind it: else its error is taken to be infinite. Methods are compared by their medians over seeds. Without an exact
answer, the table says whether methods that claim a log Z agree.

`peers`: our backends and other libraries at the same work, kernel beside whole call. A rate is of samples of single
chains a second, or of whole solutions. That of the kernel is by CPU time of the kept samples alone; that of the whole
call by the clock, with the plan, the library's model, compilation and burn-in.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import RenderableType
from rich.table import Table

from spinbench.api.types import RANDOM_KINDS
from spinbench.foundation.remarks import format_count
from spinbench.inference import kernels, registry
from spinbench.measuring.record_types import Record
from spinbench.measuring.trust import (
    Number,
    format_error_calibration,
    is_trusted,
    log_z_error_or_inf,
    marginal_rmse_or_inf,
)
from spinbench.reporting import curves, leaderboard, progress_display, variants


class BestMethod(NamedTuple):
    """A method and its errors: the median over seeds, the smallest and the largest."""

    method: str
    median: float
    smallest: float
    largest: float


def report_best_methods(records: Sequence[Record], folder: Path) -> Sequence[RenderableType]:
    """A table with a line for each model and budget, and how many numbers were vouched for and wrong."""
    return [best_methods_table(records), format_error_calibration(records)]


def best_methods_table(records: Sequence[Record]) -> Table:
    """The best method and its errors, by model and seconds."""
    spread = "median (range)"
    columns = ("model", "s", "best\nRMSE", spread, "best\nlog Z error", spread)
    output = progress_display.new_table(None, columns, number_columns=("s", spread), padding=(0, 1))
    for (model, seconds), group in sorted(_group_by_model_and_budget(records).items()):
        cells = [_format_cells(best_method(group, error)) for error in (marginal_rmse_or_inf, log_z_error_or_inf)]
        if all(record.exact_log_z is None for record in group):
            cells[1] = ("no exact answer", log_z_agreement(group))
        output.add_row(model, f"{seconds:g}", *cells[0], *cells[1])
    return output


def log_z_agreement(group: Sequence[Record]) -> str:
    """Whether those that vouch for a log Z agree, method by method."""
    claims: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for record in group:
        error_bound = None
        if is_trusted(record, "log Z"):
            error_bound = record.result.largest_log_z_error
        if error_bound is not None and record.result.log_z is not None:
            claims[record.axes.method].append((record.result.log_z, error_bound))
    if not claims:
        if any(record.result_or_none is not None for record in group):
            return "unresolved"
        return "nothing ran"
    if len(claims) == 1:
        return f"{next(iter(claims))} alone claims one"
    contradictions = [
        f"{first} and {second}"
        for first, second in itertools.combinations(claims, 2)
        if any(
            abs(a - b) > math.hypot(error, joint)
            for (a, error), (b, joint) in itertools.product(claims[first], claims[second])
        )
    ]
    if contradictions:
        return f"{contradictions[0]} disagree"
    return f"{' and '.join(claims)} agree"


def best_method(group: Sequence[Record], error: Number) -> BestMethod | None:
    """Of the methods that a model's records tell of, that of the least median; None where nothing stands."""
    candidates = []
    for method, runs in variants.group_by_variant(group).items():
        errors = sorted(map(error, runs))
        candidates.append(BestMethod(method, statistics.median(errors), errors[0], errors[-1]))
    finite = (candidate for candidate in candidates if math.isfinite(candidate.median))
    return min(finite, key=lambda candidate: candidate.median, default=None)


def _group_by_model_and_budget(records: Sequence[Record]) -> dict[tuple[str, float], list[Record]]:
    groups: dict[tuple[str, float], list[Record]] = defaultdict(list)
    for record in records:
        seconds = record.config["budget"]["seconds"]
        if record.status != "skipped" and seconds is not None:
            groups[record.axes.model, float(seconds)].append(record)
    return groups


def _format_cells(best: BestMethod | None) -> tuple[str, str]:
    if best is None:
        return "none", "–"
    median, smallest, largest = map(leaderboard.format_number, best[1:])
    return best.method, f"{median} ({smallest}–{largest})"


def report_libraries(records: Sequence[Record], folder: Path) -> Sequence[RenderableType]:
    """A table for each method, model and number of chains, and the versions; below, a sweep says what is left out."""
    return [*work_tables(records), versions_line(records)]


def work_tables(records: Sequence[Record], columns: RateColumns | None = None) -> list[RenderableType]:
    """One for each method, model and number of chains, with the numbers of `report_libraries` or others."""
    rows: dict[tuple[str, str, int], list[Record]] = defaultdict(list)
    for record in records:
        if record.status == "ok":
            rows[record.axes.method, record.axes.model, record.config["chains"]].append(record)
    columns = columns or RateColumns("kernel, /s", kernel_rate, NUMBER_COLUMNS)
    return [work_table(*key, group, columns) for key, group in sorted(rows.items())]


class RateColumns(NamedTuple):
    """What stands in the columns of a piece of work.

    Attributes:
        heading: of the kernel's rate.
        kernel_rate: work of the kernel in a unit of time.
        numbers: heading and value of the further columns.
        unit: of the work; empty: samples or solutions.
    """

    heading: str
    kernel_rate: variants.RecordValue
    numbers: Mapping[str, variants.RecordValue]
    unit: str = ""


def work_table(method: str, model: str, chains: int, group: Sequence[Record], numbers: RateColumns) -> Table:
    """The backends at one piece of work, the fastest kernel first; × library is over that of the fastest library."""
    by_backend: dict[str, list[Record]] = defaultdict(list)
    for record in group:
        by_backend[record.axes.backend].append(record)
    rates = {name: variants.median_over_records(each, numbers.kernel_rate) for name, each in by_backend.items()}
    peers = [
        name
        for name, backend_records in by_backend.items()
        if kernels.is_peer(str(backend_records[0].config["backend"]["name"]))
    ]
    peer_rates = [rate for name, rate in rates.items() if rate and name in peers]
    unit, chains_text = "solutions", ""
    if is_sampler(group[0]):
        unit, chains_text = "samples", f", {format_count(chains, 'chain')}"
    title = f"{method}, {model}{chains_text} ({numbers.unit or unit})"
    columns = (numbers.heading, "× library", *numbers.numbers)
    output = progress_display.new_table(title, ("backend", *columns, "status"), number_columns=columns, padding=(0, 1))
    for name in sorted(rates, key=lambda name: -(rates[name] or 0.0)):
        backend_records, rate = by_backend[name], rates[name]
        ratio = rate / max(peer_rates) if rate and peer_rates else None
        others = (variants.median_over_records(backend_records, number) for number in numbers.numbers.values())
        cells = map(leaderboard.format_number, (rate, ratio, *others))
        output.add_row(name, *cells, backend_records[0].result.status)
    return output


def is_sampler(record: Record) -> bool:
    """Whether a record is of chains; else it is of a solution."""
    method = registry.method_class(record.config["method"]["name"])
    return method.kind in RANDOM_KINDS


def kernel_rate(record: Record) -> float | None:
    """Of samples of single chains, or of solutions, by CPU time of the steps."""
    result = record.result
    if result.batches is None or not result.batches.mean_cpu or not result.chains or not result.samples:
        return None
    if is_sampler(record):
        return result.chains / result.batches.mean_cpu
    return 1 / result.samples / result.batches.mean_cpu


def samples_per_second(record: Record) -> float | None:
    """The same by the clock of the whole call."""
    result = record.result
    if not result.samples or not result.chains or not result.timing.total:
        return None
    if is_sampler(record):
        return result.samples * result.chains / result.timing.total
    return 1 / result.timing.total


NUMBER_COLUMNS: Mapping[str, variants.RecordValue] = {
    "whole call, /s": samples_per_second,
    "plan,\ncompile, s": curves.setup_seconds,
    "run, s": lambda record: record.result.timing.run,
    "ESS /s": lambda record: variants.ess_rate(record.metric("seconds_per_ess").value),
    "RMSE": variants.metric_value("marginal_rmse"),
    "R-hat": lambda record: record.result.r_hat_max,
}


def versions_line(records: Sequence[Record]) -> str:
    """Of everything that ran, a line."""
    version_of: dict[str, str] = {}
    for record in records:
        version_of |= record.environment.versions
    return "versions: " + ", ".join(f"{name} {version}" for name, version in sorted(version_of.items()))
