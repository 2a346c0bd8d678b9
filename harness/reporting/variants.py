"""Which settings tell records apart, and records of many models to one line for each variant of a method."""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from spinbench.foundation.trees import flatten
from spinbench.measuring.record_types import Record

# Reads a number from a record; None if it has none.
RecordValue = Callable[[Record], float | None]


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


def estimator_log_z_error(estimator: str) -> RecordValue:
    """The error of one estimator of log Z among all that ran, estimate less exact value, in nats."""

    def value(record: Record) -> float | None:
        if record.result_or_none is None or record.exact_log_z is None:
            return None
        estimate = (record.result.log_z_estimates or {}).get(estimator, [None])[0]
        if estimate is None:
            return None
        return estimate - record.exact_log_z

    return value


def method_log_z_error(record: Record) -> float | None:
    """The error of the estimator that the method was asked for, vouched for or not: papers' figures are of the
    papers' estimators. That of log Z where a method has no choice of them.
    """
    requested_estimator = record.config["method"].get("log_z")
    has_estimate = record.result_or_none is not None and requested_estimator in (record.result.log_z_estimates or {})
    if has_estimate:
        return estimator_log_z_error(requested_estimator)(record)
    return metric_value("log_z_error")(record)


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
    if not by_model:
        return None
    squares = [statistics.fmean(x * x for x in values) for values in by_model.values()]
    root = math.sqrt(statistics.fmean(squares))
    error = None
    if len(squares) > 1 and root > 0:
        error = statistics.stdev(squares) / math.sqrt(len(squares)) / (2 * root)
    middle = statistics.median(abs(x) for values in by_model.values() for x in values)
    return RootMeanSquare(root, error, middle, len(squares))


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
