"""The report of `experiment=peers`: our backends and other libraries at the same work, kernel beside whole call.

A rate is of samples of single chains a second, or of whole solutions. That of the kernel is by CPU time of the kept
samples alone; that of the whole call by the clock, with the plan, the library's model, compilation and burn-in.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table

from spinbench.inference import kernels, registry
from spinbench.measuring.record_types import Record
from spinbench.reporting.leaderboard import short

COLUMNS = ("kernel, /s", "× library", "whole call, /s", "plan,\ncompile, s", "run, s", "ESS /s", "RMSE", "R-hat")
Number = Callable[[Record], float | None]


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
    rates = {name: _median(own, kernel_rate) for name, own in by_backend.items()}
    others = [rate for name, rate in rates.items() if rate and kernels.is_peer(_plain(by_backend[name]))]
    unit = "samples" if is_sampler(group[0]) else "solutions"
    shown = f", {chains} chain{'' if chains == 1 else 's'}" if unit == "samples" else ""
    found = Table(title=f"{method}, {model}{shown} ({unit})", title_justify="left", box=SIMPLE_HEAD, padding=(0, 1))
    found.add_column("backend")
    for column in COLUMNS:
        found.add_column(column, justify="right")
    found.add_column("status")
    for name in sorted(rates, key=lambda name: -(rates[name] or 0.0)):
        own, rate = by_backend[name], rates[name]
        ratio = rate / max(others) if rate and others else None
        numbers = (rate, ratio, *(_median(own, number) for number in (call_rate, first, run, ess, rmse, r_hat)))
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


def first(record: Record) -> float | None:
    """Seconds before the first step."""
    return record.result.timing.plan + record.result.timing.compile


def run(record: Record) -> float | None:
    """Seconds of the kept samples."""
    return record.result.timing.run


def ess(record: Record) -> float | None:
    """Effective samples a second of the run."""
    needed = record.metric("seconds_per_ess").value
    return 1 / needed if needed else None


def rmse(record: Record) -> float | None:
    """Of the marginals."""
    return record.metric("marginal_rmse").value


def r_hat(record: Record) -> float | None:
    """The largest."""
    return record.result.r_hat_max


def versions(records: Sequence[Record]) -> str:
    """Of everything that ran, a line."""
    found: dict[str, str] = {}
    for record in records:
        found |= record.environment.versions
    return "versions: " + ", ".join(f"{name} {version}" for name, version in sorted(found.items()))


def _median(records: Sequence[Record], number: Number) -> float | None:
    known = [value for value in map(number, records) if value is not None]
    return statistics.median(known) if known else None


def _plain(records: Sequence[Record]) -> str:
    return str(records[0].config["backend"]["name"])
