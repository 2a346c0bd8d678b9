"""The report of `experiment=gpu`: updates a nanosecond of our backends and of other libraries, on a page of its own.

An update is one of a variable of one chain: `pt` makes them at all rungs, `smc` at all temperatures of all particles;
one of `dhmc` is a leapfrog step of a variable, one of `bp` an iteration of a variable. The kernel's rate is by the
first decile of batches, that of the whole call by all its seconds: plan, compilation, burn-in and copies included.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, RenderableType

from spinbench.measuring.record_types import Record
from spinbench.reporting import curves, experiments, page_content, variants

PAGE = "devices.md"
# Columns of the page: wide enough for each table's own width.
PAGE_WIDTH = 160
# Diagnostics and settings that multiply the updates of a step: of tempering, of populations, of trajectories.
FACTORS = ("rungs", "sweeps", "temperatures", "particles", "moves", "leapfrog_steps")


def report_devices(records: Sequence[Record], folder: Path) -> Sequence[RenderableType]:
    """Tables of all work; the page has cards, drivers and versions besides."""
    tables = experiments.work_tables(records, COLUMNS)
    buffer = io.StringIO()
    Console(file=buffer, width=PAGE_WIDTH).print(*tables)
    lines = (line.rstrip() for line in buffer.getvalue().splitlines())
    parts = ["# Updates a nanosecond", "\n".join(["```text", *lines, "```"])]
    for environment in page_content.group_environments(records):
        parts.append("\n".join(f"- {name}: {value}" for name, value in environment["facts"].items()))
    page = folder / PAGE
    page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    cards = sorted({card for record in records for card in record.environment.gpus or ()})
    return [*tables, f"{', '.join(cards) or 'no GPU'}; {experiments.versions_line(records)}", f"page: {page}"]


def updates_per_step(record: Record) -> float | None:
    """Of all chains."""
    result, settings = record.result, record.config["method"]
    if not result.variables or not result.chains:
        return None
    updates = float(result.variables * result.chains)
    for name in FACTORS:
        updates *= float((result.diagnostics or {}).get(name) or settings.get(name) or 1)
    return updates


def kernel_rate(record: Record) -> float | None:
    """Updates a nanosecond of the steps alone."""
    updates, batches = updates_per_step(record), record.result.batches
    if updates is None or batches is None or not batches.wall or not batches.wall[0]:
        return None
    return updates / batches.wall[0] / 1e9


def call_rate(record: Record) -> float | None:
    """Updates a nanosecond of the whole call; those of burn-in do not count."""
    updates, result = updates_per_step(record), record.result
    if updates is None or not result.samples or not result.timing.total:
        return None
    return updates * result.samples / result.timing.total / 1e9


COLUMNS = experiments.RateColumns(
    "kernel, /ns",
    kernel_rate,
    {
        "whole call, /ns": call_rate,
        "plan,\ncompile, s": curves.setup_seconds,
        "run, s": lambda record: record.result.timing.run,
        "RMSE": variants.metric_value("marginal_rmse"),
        "R-hat": lambda record: record.result.r_hat_max,
    },
    "updates",
)
