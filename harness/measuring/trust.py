"""The number of a record that counts: an error, or the seconds to one; infinite where nobody vouches for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from spinbench.mathematics.statistics import time_to_error
from spinbench.measuring.record_types import Record

Number = Callable[[Record], float]

BEYOND = 3.0
"""Claimed errors from which on a number that was vouched for counts as wrong."""
ROUNDING = 1e-9
"""Errors that are smaller come from the order of sums."""
OTHER = {"marginals": "log Z", "log Z": "marginals"}


def rmse(record: Record) -> float:
    """Of the marginals; infinite where the verdict does not stand behind them."""
    return _metric(record, "marginal_rmse") if vouched(record, "marginals") else math.inf


def log_z_error(record: Record) -> float:
    """In nats; infinite where the verdict does not stand behind it."""
    return _metric(record, "log_z_error") if vouched(record, "log Z") else math.inf


def seconds(record: Record) -> float:
    """Of burn-in and sampling until the RMSE stays at or below one per cent; infinite where it never does."""
    if not vouched(record, "marginals"):
        return math.inf
    known = [(point.seconds, point.marginal_rmse) for point in record.checkpoints if point.marginal_rmse is not None]
    found = time_to_error(known)
    return math.inf if found is None else found


def vouched(record: Record, quantity: str) -> bool:
    """Whether the verdict is ok as far as it speaks of "marginals" or "log Z".

    Only a doubt that names the other one alone is none of this; any other, a plugin's own among them, is.
    """
    if record.result_or_none is None or record.status != "ok":
        return False
    doubts = record.result.status.split(", ")
    return all(doubt == "ok" or doubt.startswith(OTHER[quantity]) for doubt in doubts)


def truth(records: Sequence[Record]) -> str:
    """How many of the numbers that were vouched for are further off than their error bounds."""
    ratios: dict[str, list[float]] = {"marginals": [], "log Z": []}
    for record in records:
        result = record.result_or_none
        for name, error, claim in (
            ("marginals", rmse(record), result and result.marginals_claim),
            ("log Z", log_z_error(record), result and result.largest_log_z_error),
        ):
            if claim and math.isfinite(error):
                ratios[name].append(error / claim if error > ROUNDING else 0.0)
    parts = [
        f"{name}: {len(found)} runs, {sum(ratio > BEYOND for ratio in found)} of them more than {BEYOND:g} claimed "
        f"errors off, {sum(ratio > 2 * BEYOND for ratio in found)} more than {2 * BEYOND:g}"
        for name, found in ratios.items()
    ]
    return "vouched for: " + "; ".join(parts)


def _metric(record: Record, name: str) -> float:
    value = record.metric(name).value
    return math.inf if value is None else value
