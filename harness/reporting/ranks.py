"""How well an error is known, and which errors are apart by more than that."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from spinbench.measuring.record_parts import Metric

CONFIDENCE = 0.95
# Quantile of the normal law for two-sided intervals at `CONFIDENCE`.
NORMAL_QUANTILE = 1.96
# Smaller errors count as equal.
SMALLEST_ERROR = 1e-9
# Checkpoints of a run with at least 1/64 of its samples show how its error scatters.
MAX_SAMPLE_RATIO = 64
# Smallest number of such checkpoints.
MIN_CHECKPOINTS = 4
# Relative half-width of the error of a single run with fewer checkpoints.
DEFAULT_RELATIVE_HALF_WIDTH = 0.7
# (samples, error) at the checkpoints of a run.
ErrorPath = Sequence[tuple[float, float]]


class ReplicateMean(NamedTuple):
    """An RMSE over replicates.

    Attributes:
        value: root of the mean square; None where there is none.
        standard_error: None where it is not known.
        half_width: of the 95 % interval; 0 where nothing is known, as of methods that draw nothing.
    """

    value: float | None
    standard_error: float | None
    half_width: float


def pool_rmse(metrics: Sequence[Metric], path: ErrorPath = ()) -> ReplicateMean:
    """The RMSE of replicates; of a single one that has a standard error, its path tells what replicates would.

    Each replicate's own standard error takes the errors of variables to be independent, and knows nothing of how many
    samples another run would have drawn in its seconds. Where replicates scatter more than that, their scatter counts:
    Q = ΣR² / n has the standard error s(R²) / √n, and √Q that over 2√Q.

    Errors of variables that move together scatter far more than independent ones, and a single run shows it along its
    path: R √n of n samples scatters about a constant from checkpoint to checkpoint as it does from run to run.
    """
    values = [metric.value for metric in metrics if metric.value is not None]
    if not values:
        return ReplicateMean(None, None, 0.0)
    count, value = len(values), math.sqrt(sum(value**2 for value in values) / len(values))
    if value == 0:
        return ReplicateMean(value, None, 0.0)
    errors = [metric.standard_error for metric in metrics if metric.standard_error is not None]
    propagated_error = spread = quantile = 0.0
    if len(errors) == count:
        propagated_error = math.sqrt(
            sum((replicate_value * error) ** 2 for replicate_value, error in zip(values, errors, strict=True))
        ) / (count * value)
    if count > 1:
        spread = statistics.stdev(replicate_value**2 for replicate_value in values) / (2 * value * math.sqrt(count))
        quantile = _student_quantile(count - 1)
    elif propagated_error and path:
        spread, quantile = _scatter_along_path(path, value)
    return ReplicateMean(
        value, max(propagated_error, spread) or None, max(NORMAL_QUANTILE * propagated_error, quantile * spread)
    )


def _scatter_along_path(path: ErrorPath, value: float) -> tuple[float, float]:
    """Standard error of a single run's error, and the quantile for its interval."""
    last = max((samples for samples, _ in path), default=0.0)
    # Errors fall as 1 / √n, which this removes.
    logs = [
        math.log(error) + math.log(n) / 2 for n, error in path if error > 0 and n > 0 and n * MAX_SAMPLE_RATIO >= last
    ]
    if len(logs) < MIN_CHECKPOINTS:
        return DEFAULT_RELATIVE_HALF_WIDTH * value / NORMAL_QUANTILE, NORMAL_QUANTILE
    return statistics.stdev(logs) * value, _student_quantile(len(logs) - 1)


def _student_quantile(freedom: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.5 + CONFIDENCE / 2))


def pool_mean(metrics: Sequence[Metric]) -> ReplicateMean:
    """The mean of replicates, with the standard error of the single ones or of their scatter, whichever is larger."""
    values = [float(metric.value) for metric in metrics if metric.value is not None]
    errors = [metric.standard_error for metric in metrics if metric.standard_error is not None]
    propagated_error = 0.0
    if len(errors) == len(values):
        propagated_error = math.sqrt(sum(error**2 for error in errors)) / len(values)
    spread = 0.0
    if len(values) > 1:
        spread = statistics.stdev(values) / math.sqrt(len(values))
    return ReplicateMean(
        statistics.fmean(values), max(propagated_error, spread) or None, NORMAL_QUANTILE * max(propagated_error, spread)
    )


def rank_values(values: Sequence[tuple[float, float]]) -> list[int]:
    """Of (error, half-width) in ascending order: one more than the number of those that are less beyond noise.

    Errors are compared by their ratio: the half-width of a difference of logarithms is the root of the sum of both
    squares (Zou and Donner, "Construction of confidence intervals about effect measures", Stat. Med. 27, 2008). An
    error of which little is known has a low rank.
    """
    # logarithms, not differences: noise that grows with the error would hide how far apart a large and a small error
    # are
    scaled = [
        (math.log(max(error, SMALLEST_ERROR)), half_width / max(error, SMALLEST_ERROR)) for error, half_width in values
    ]
    return [
        1 + sum(log - other > math.hypot(half_width, other_half_width) for other, other_half_width in scaled[:i])
        for i, (log, half_width) in enumerate(scaled)
    ]
