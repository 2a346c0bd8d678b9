"""Which settings tell records apart, one line for each variant of a method, and how well its errors are known."""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from spinbench.foundation.trees import flatten
from spinbench.measuring.record_parts import Metric
from spinbench.measuring.record_types import Record

# Reads a number from a record; None if it has none.
RecordValue = Callable[[Record], float | None]
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


@dataclass(frozen=True)
class RootMeanSquare:
    """A root mean square over models.

    Attributes:
        value: sqrt(mean over models of the mean square over a model's replicates).
        error: its standard error over models; None for a single model, or where the value is 0.
        median: of the absolute values, over models and replicates.
        models: how many gave a number.
    """

    value: float
    error: float | None
    median: float
    models: int


def flat_settings(record: Record, *without: str) -> dict[str, object]:
    """A record's configuration by dotted names, without some of its parts."""
    return flatten({key: value for key, value in record.config.items() if key not in without})


def differing_settings(names: Sequence[Hashable], settings: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    """Of each of some settings, those that not all settings of the same name have with the same value."""
    count = Counter(names)
    shared = Counter(
        (name, key, str(value))
        for name, settings_of_one in zip(names, settings, strict=True)
        for key, value in settings_of_one.items()
    )
    return [
        {key: value for key, value in settings_of_one.items() if shared[name, key, str(value)] < count[name]}
        for name, settings_of_one in zip(names, settings, strict=True)
    ]


def difference_labels(
    names: Sequence[Hashable], settings: Sequence[Mapping[str, object]], between: str = " "
) -> list[str]:
    """What is `differing`, as a label: "steps=5 scan=random"."""
    return [
        between.join(f"{key.removeprefix('method.')}={value}" for key, value in differences.items())
        for differences in differing_settings(names, settings)
    ]


def group_by_variant(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Records grouped by all settings but the model and the seed, in the order of their first record.

    A label is the method's name, with those settings of the cell in which variants of the same method differ:
    "gibbs sample=update".
    """
    groups: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        groups[json.dumps(flat_settings(record, "model", "seed"), sort_keys=True)].append(record)
    settings = [flat_settings(group[0], "model", "seed") for group in groups.values()]
    names = [str(group_settings["method.name"]) for group_settings in settings]
    labelled_groups = zip(names, difference_labels(names, settings), groups.values(), strict=True)
    return {" ".join(filter(None, [name, label])): group for name, label, group in labelled_groups}


def metric_value(name: str) -> RecordValue:
    """A tracked metric, such as "marginal_rmse"."""
    return lambda record: record.metric(name).value


def estimator_log_z_error(estimator: str, record: Record) -> float | None:
    """The error of one estimator of log Z among all that ran, estimate less exact value, in nats."""
    if record.result_or_none is None or record.exact_log_z is None:
        return None
    estimate = (record.result.log_z_estimates or {}).get(estimator, [None])[0]
    if estimate is None:
        return None
    return estimate - record.exact_log_z


def method_log_z_error(record: Record) -> float | None:
    """The error of the estimator that the method was asked for, vouched for or not: papers' figures are of the
    papers' estimators. That of log Z where a method has no choice of them.
    """
    requested_estimator = record.config["method"].get("log_z")
    has_estimate = record.result_or_none is not None and requested_estimator in (record.result.log_z_estimates or {})
    if has_estimate:
        return estimator_log_z_error(requested_estimator, record)
    return record.metric("log_z_error").value


def rms_over_models(records: Iterable[Record], value: RecordValue) -> RootMeanSquare | None:
    """The root mean square of a number over models; None where no record has it.

    Its standard error is that of the mean of the models' mean squares, by the delta method: se / (2 value). Models
    count as independent draws; replicates of one model do not.
    """
    by_model: dict[str, list[float]] = defaultdict(list)
    for record in records:
        number = value(record)
        if number is not None:
            by_model[json.dumps(record.config["model"], sort_keys=True)].append(number)
    mean, spread = mean_with_error([statistics.fmean(x * x for x in values) for values in by_model.values()])
    if mean is None:
        return None
    root = math.sqrt(mean)
    error = spread / (2 * root) if spread is not None and root > 0 else None
    middle = statistics.median(abs(x) for values in by_model.values() for x in values)
    return RootMeanSquare(root, error, middle, len(by_model))


def mean_with_error(values: Sequence[float]) -> tuple[float | None, float | None]:
    """The mean, None of no values, and its standard error, None for fewer than two."""
    if len(values) < 2:
        return next(iter(values), None), None
    return statistics.fmean(values), statistics.stdev(values) / math.sqrt(len(values))


def median_over_records(records: Iterable[Record], value: RecordValue) -> float | None:
    """The median over all records that have the number."""
    return median_of_available(map(value, records))


def median_of_available(values: Iterable[float | None]) -> float | None:
    """The median of those that are not None; None where all are."""
    available = [value for value in values if value is not None]
    if not available:
        return None
    return statistics.median(available)


def ess_rate(seconds_per_ess: float | None) -> float | None:
    """Effective samples a second; None where their seconds are unknown or 0."""
    if not seconds_per_ess:
        return None
    return 1 / seconds_per_ess


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
    mean, spread = mean_with_error(values)
    error = max(propagated_error, spread or 0.0)
    return ReplicateMean(mean, error or None, NORMAL_QUANTILE * error)


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
