"""The report of `experiment=peers`: our backends and other libraries at the same work, kernel beside whole call.

A rate is of samples of single chains a second, or of whole solutions. That of the kernel is by CPU time of the kept
samples alone; that of the whole call by the clock, with the plan, the library's model, compilation and burn-in.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import RenderableType
from rich.table import Table

from spinbench.inference import kernels, registry
from spinbench.measuring.record_types import Record
from spinbench.reporting import curves
from spinbench.reporting.display import new_table
from spinbench.reporting.leaderboard import format_number
from spinbench.reporting.variants import RecordValue, median_over_records, metric_value


def report(records: Sequence[Record], folder: Path) -> Sequence[RenderableType]:
    """A table for each method, model and number of chains, and the versions; below, a sweep says what is left out."""
    rows: dict[tuple[str, str, int], list[Record]] = defaultdict(list)
    for record in records:
        if record.status == "ok":
            rows[record.axes.method, record.axes.model, record.config["chains"]].append(record)
    tables: list[RenderableType] = [work_table(*key, group) for key, group in sorted(rows.items())]
    return [*tables, versions_line(records)]


def work_table(method: str, model: str, chains: int, group: Sequence[Record]) -> Table:
    """The backends at one piece of work, the fastest kernel first; × library is over that of the fastest library."""
    by_backend: dict[str, list[Record]] = defaultdict(list)
    for record in group:
        by_backend[record.axes.backend].append(record)
    rates = {name: median_over_records(backend_records, kernel_rate) for name, backend_records in by_backend.items()}
    peers = [
        name
        for name, backend_records in by_backend.items()
        if kernels.is_peer(str(backend_records[0].config["backend"]["name"]))
    ]
    peer_rates = [rate for name, rate in rates.items() if rate and name in peers]
    unit = "samples" if is_sampler(group[0]) else "solutions"
    chains_text = f", {chains} chain{'' if chains == 1 else 's'}" if unit == "samples" else ""
    title = f"{method}, {model}{chains_text} ({unit})"
    columns = ("kernel, /s", "× library", *NUMBER_COLUMNS)
    output = new_table(title, ("backend", *columns, "status"), number_columns=columns, padding=(0, 1))
    for name in sorted(rates, key=lambda name: -(rates[name] or 0.0)):
        backend_records, rate = by_backend[name], rates[name]
        ratio = rate / max(peer_rates) if rate and peer_rates else None
        numbers = (rate, ratio, *(median_over_records(backend_records, number) for number in NUMBER_COLUMNS.values()))
        output.add_row(name, *map(format_number, numbers), backend_records[0].result.status)
    return output


def is_sampler(record: Record) -> bool:
    """Whether a record is of chains; else it is of a solution."""
    method = registry.method_class(record.config["method"]["name"])
    return method.anytime and method.stochastic


def kernel_rate(record: Record) -> float | None:
    """Of samples of single chains, or of solutions, by CPU time of the steps."""
    result = record.result
    if result.batches is None or not result.batches.mean_cpu or not result.chains or not result.samples:
        return None
    return (result.chains if is_sampler(record) else 1 / result.samples) / result.batches.mean_cpu


def call_rate(record: Record) -> float | None:
    """The same by the clock of the whole call."""
    result = record.result
    if not result.samples or not result.chains or not result.timing.total:
        return None
    work = result.samples * result.chains if is_sampler(record) else 1
    return work / result.timing.total


def _ess_per_second(record: Record) -> float | None:
    """Effective samples a second of the run."""
    seconds_per_ess = record.metric("seconds_per_ess").value
    return 1 / seconds_per_ess if seconds_per_ess else None


NUMBER_COLUMNS: Mapping[str, RecordValue] = {
    "whole call, /s": call_rate,
    "plan,\ncompile, s": curves.setup_seconds,
    "run, s": lambda record: record.result.timing.run,
    "ESS /s": _ess_per_second,
    "RMSE": metric_value("marginal_rmse"),
    "R-hat": lambda record: record.result.r_hat_max,
}


def versions_line(records: Sequence[Record]) -> str:
    """Of everything that ran, a line."""
    version_of: dict[str, str] = {}
    for record in records:
        version_of |= record.environment.versions
    return "versions: " + ", ".join(f"{name} {version}" for name, version in sorted(version_of.items()))
