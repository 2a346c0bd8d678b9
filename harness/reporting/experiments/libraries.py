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
from spinbench.reporting.leaderboard import short
from spinbench.reporting.variants import Value, median, metric


def report(records: Sequence[Record], folder: Path) -> Sequence[RenderableType]:
    """A table for each method, model and number of chains, and the versions; below, a sweep says what is left out."""
    rows: dict[tuple[str, str, int], list[Record]] = defaultdict(list)
    for record in records:
        if record.status == "ok":
            rows[record.axes.method, record.axes.model, record.config["chains"]].append(record)
    found: list[RenderableType] = [table(*key, group) for key, group in sorted(rows.items())]
    return [*found, versions(records)]


def table(method: str, model: str, chains: int, group: Sequence[Record]) -> Table:
    """The backends at one piece of work, the fastest kernel first; × library is over that of the fastest library."""
    by_backend: dict[str, list[Record]] = defaultdict(list)
    for record in group:
        by_backend[record.axes.backend].append(record)
    rates = {name: median(own, kernel_rate) for name, own in by_backend.items()}
    peers = [name for name, own in by_backend.items() if kernels.is_peer(str(own[0].config["backend"]["name"]))]
    others = [rate for name, rate in rates.items() if rate and name in peers]
    unit = "samples" if is_sampler(group[0]) else "solutions"
    shown = f", {chains} chain{'' if chains == 1 else 's'}" if unit == "samples" else ""
    title = f"{method}, {model}{shown} ({unit})"
    columns = ("kernel, /s", "× library", *NUMBERS)
    found = new_table(title, ("backend", *columns, "status"), numbers=columns, padding=(0, 1))
    for name in sorted(rates, key=lambda name: -(rates[name] or 0.0)):
        own, rate = by_backend[name], rates[name]
        ratio = rate / max(others) if rate and others else None
        numbers = (rate, ratio, *(median(own, number) for number in NUMBERS.values()))
        found.add_row(name, *map(short, numbers), own[0].result.status)
    return found


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


def _ess(record: Record) -> float | None:
    """Effective samples a second of the run."""
    needed = record.metric("seconds_per_ess").value
    return 1 / needed if needed else None


NUMBERS: Mapping[str, Value] = {
    "whole call, /s": call_rate,
    "plan,\ncompile, s": curves.before,
    "run, s": lambda record: record.result.timing.run,
    "ESS /s": _ess,
    "RMSE": metric("marginal_rmse"),
    "R-hat": lambda record: record.result.r_hat_max,
}


def versions(records: Sequence[Record]) -> str:
    """Of everything that ran, a line."""
    found: dict[str, str] = {}
    for record in records:
        found |= record.environment.versions
    return "versions: " + ", ".join(f"{name} {version}" for name, version in sorted(found.items()))
