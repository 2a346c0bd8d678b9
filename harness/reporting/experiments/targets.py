"""The report of `experiment=hard`: the best of all methods on each model after each budget, and what was aimed at.

A run counts for a quantity if its verdict stands behind it: else its error is taken to be infinite. Methods are
compared by their medians over seeds. Without an exact answer, the aim is that whoever claims a log Z is borne out by
somebody of another method.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import RenderableType
from rich.table import Table

from spinbench.measuring.record_types import Record
from spinbench.measuring.trust import BEYOND, Number, log_z_error, rmse, truth, vouched
from spinbench.reporting.display import new_table
from spinbench.reporting.leaderboard import short
from spinbench.reporting.variants import variants

GLASS = "regular_glass(beta=2)"
FRUSTRATED = "grid(rows=20,cols=20,c2=2,kind=frustrated_minus)"
AIMS: dict[tuple[str, float], tuple[float, float]] = {
    ("uai14/Grids_12", 1): (0.01, 0.1),
    ("uai14/Grids_12", 10): (0.003, 0.03),
    ("uai14/DBN_11", 1): (0.003, 0.03),
    ("uai14/DBN_11", 10): (5e-4, 0.01),
    ("uai14/Promedus_24", 1): (1e-9, 1e-9),
    ("uai14hard/Promedus_38", 1): (0.02, 0.5),
    ("uai14hard/Promedus_38", 10): (0.005, 0.1),
    (FRUSTRATED, 1): (0.01, 0.1),
    (FRUSTRATED, 10): (0.004, 0.03),
    (GLASS, 1): (0.004, 0.05),
    (GLASS, 10): (0.001, 0.02),
    **{
        (f"uai14hard/{stem}", seconds): aim
        for stem in ("Grids_15", "linkage_16", "linkage_21", "Alchemy_11", "CSP_11", "Pedigree_11")
        for seconds, aim in ((1, (0.05, 1.0)), (10, (0.01, 0.1)))
    },
}
"""RMSE of the marginals and error of log Z (nats), by model and seconds."""


class Best(NamedTuple):
    """A method and its errors: the median over seeds, the smallest and the largest."""

    method: str
    median: float
    least: float
    most: float


def report(records: Sequence[Record], folder: Path) -> Sequence[RenderableType]:
    """A table with a line for each model and budget, and how many numbers were vouched for and wrong."""
    return [table(records), truth(records)]


def table(records: Sequence[Record]) -> Table:
    """What was reached, by model and seconds."""
    numbers = ("s", "median (range)", "aim")
    columns = ("model", "s", "best\nRMSE", *numbers[1:], "best\nlog Z error", *numbers[1:])
    found = new_table(None, columns, numbers=numbers, padding=(0, 1))
    for (model, seconds), group in sorted(_by_model(records).items()):
        aims = AIMS.get((model, seconds), (math.nan, math.nan))
        cells = [_cells(best(group, error), aim) for error, aim in zip((rmse, log_z_error), aims, strict=True)]
        if all(record.exact_log_z is None for record in group):
            cells[1] = ("no exact answer", "–", borne_out(group))
        found.add_row(model, f"{seconds:g}", *cells[0], *cells[1])
    return found


def borne_out(group: Sequence[Record]) -> str:
    """Whether those that vouch for a log Z agree, method by method, and whether that is what was aimed at."""
    claims: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for record in group:
        bound = record.result.largest_log_z_error if vouched(record, "log Z") else None
        if bound is not None and record.result.log_z is not None:
            claims[record.axes.method].append((record.result.log_z, bound))
    if not claims:
        return (
            "unresolved, reached"
            if any(record.result_or_none is not None for record in group)
            else "nothing ran, not reached"
        )
    if len(claims) == 1:
        return f"{next(iter(claims))} alone claims one, not reached"
    apart = [
        f"{one} and {other}"
        for one, other in itertools.combinations(claims, 2)
        if any(
            abs(a - b) > BEYOND * math.hypot(error, joint)
            for (a, error), (b, joint) in itertools.product(claims[one], claims[other])
        )
    ]
    return f"{apart[0]} disagree, not reached" if apart else f"{' and '.join(claims)} agree, reached"


def best(group: Sequence[Record], error: Number) -> Best | None:
    """Of the methods that a model's records tell of, that of the least median; None where nothing stands."""
    found = []
    for method, runs in variants(group).items():
        errors = sorted(map(error, runs))
        found.append(Best(method, statistics.median(errors), errors[0], errors[-1]))
    least = min(found, key=lambda one: one.median, default=None)
    return least if least is not None and math.isfinite(least.median) else None


def _by_model(records: Sequence[Record]) -> dict[tuple[str, float], list[Record]]:
    found: dict[tuple[str, float], list[Record]] = defaultdict(list)
    for record in records:
        seconds = record.config["budget"]["seconds"]
        if record.status != "skipped" and seconds is not None:
            found[record.axes.model, float(seconds)].append(record)
    return found


def _cells(found: Best | None, aim: float) -> tuple[str, str, str]:
    goal = "–" if math.isnan(aim) else f"≤ {short(aim)}"
    if found is None:
        return "none", "–", goal if math.isnan(aim) else f"{goal}, not reached"
    verdict = "" if math.isnan(aim) else ", reached" if found.median <= aim else ", not reached"
    return found.method, f"{short(found.median)} ({short(found.least)}–{short(found.most)})", goal + verdict
