"""The number of a record that counts: an error, or the seconds to one; infinite where nobody vouches for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from spinbench.mathematics.statistics import time_to_error
from spinbench.measuring.record_types import Record

Number = Callable[[Record], float]

# Smaller errors are rounding of sums in another order.
ROUNDING_ERROR = 1e-9
OTHER_QUANTITY = {"marginals": "log Z", "log Z": "marginals"}


def marginal_rmse_or_inf(record: Record) -> float:
    """Of the marginals; infinite where the verdict does not stand behind them."""
    if is_trusted(record, "marginals"):
        return _number_or_inf(record.metric("marginal_rmse").value)
    return math.inf


def log_z_error_or_inf(record: Record) -> float:
    """In nats; infinite where the verdict does not stand behind it."""
    if is_trusted(record, "log Z"):
        return _number_or_inf(record.metric("log_z_error").value)
    return math.inf


def hellinger_or_inf(record: Record) -> float:
    """Mean distance of the marginals; infinite where the verdict does not stand behind them."""
    if is_trusted(record, "marginals"):
        return _number_or_inf(record.metric("hellinger").value)
    return math.inf


def seconds_to_error_or_inf(record: Record) -> float:
    """Of burn-in and sampling until the RMSE stays at or below one per cent; infinite where it never does."""
    if not is_trusted(record, "marginals"):
        return math.inf
    checkpoints = [
        (point.seconds, point.marginal_rmse) for point in record.checkpoints if point.marginal_rmse is not None
    ]
    return _number_or_inf(time_to_error(checkpoints))


def is_trusted(record: Record, quantity: str) -> bool:
    """Whether the verdict is ok as far as it speaks of "marginals" or "log Z".

    Only a doubt that names the other one alone is none of this; any other, a plugin's own among them, is.
    """
    if record.result_or_none is None or record.status != "ok":
        return False
    doubts = record.result.status.split(", ")
    return all(doubt == "ok" or doubt.startswith(OTHER_QUANTITY[quantity]) for doubt in doubts)


def format_error_calibration(records: Sequence[Record]) -> str:
    """How many of the numbers that were vouched for are further off than their error bounds."""
    ratios: dict[str, list[float]] = {"marginals": [], "log Z": []}
    for record in records:
        result = record.result_or_none
        for name, error, bound in (
            ("marginals", marginal_rmse_or_inf(record), result and result.largest_marginal_error),
            ("log Z", log_z_error_or_inf(record), result and result.largest_log_z_error),
        ):
            if bound and math.isfinite(error):
                ratios[name].append(error / bound if error > ROUNDING_ERROR else 0.0)
    parts = []
    for name, quantity_ratios in ratios.items():
        beyond, far_beyond = (sum(ratio > times for ratio in quantity_ratios) for times in (1, 2))
        parts.append(
            f"{name}: {len(quantity_ratios)} runs, {beyond} of them outside their error bounds, {far_beyond} outside "
            "twice these"
        )
    return "vouched for: " + "; ".join(parts)


def _number_or_inf(value: float | None) -> float:
    if value is None:
        return math.inf
    return value
