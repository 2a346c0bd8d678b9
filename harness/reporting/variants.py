"""Which settings tell records apart, and records of many models to one line for each variant of a method."""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spinbench.foundation.trees import flattened
from spinbench.measuring.record_types import Record

Value = Callable[[Record], float | None]
"""A number that a record holds, or None."""


@dataclass(frozen=True)
class Average:
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


def settings_of(record: Record, *without: str) -> dict[str, Any]:
    """A record's configuration by dotted names, without some of its parts."""
    return flattened({key: value for key, value in record.config.items() if key not in without})


def differing(names: Sequence[Hashable], settings: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Of each of some settings, those that not all settings of the same name have with the same value."""
    count = Counter(names)
    shared = Counter(
        (name, key, str(value)) for name, own in zip(names, settings, strict=True) for key, value in own.items()
    )
    return [
        {key: value for key, value in own.items() if shared[name, key, str(value)] < count[name]}
        for name, own in zip(names, settings, strict=True)
    ]


def labels(names: Sequence[Hashable], settings: Sequence[Mapping[str, Any]], between: str = " ") -> list[str]:
    """What is `differing`, as a label: "steps=5 scan=random"."""
    return [
        between.join(f"{key.removeprefix('method.')}={value}" for key, value in own.items())
        for own in differing(names, settings)
    ]


def variants(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Records grouped by all settings but the model and the seed, in the order of their first record.

    A label is the method's name, with those settings of the cell in which variants of the same method differ:
    "gibbs sample=update".
    """
    groups: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        groups[json.dumps(settings_of(record, "model", "seed"), sort_keys=True)].append(record)
    settings = [settings_of(group[0], "model", "seed") for group in groups.values()]
    names = [str(own["method.name"]) for own in settings]
    found = zip(names, labels(names, settings), groups.values(), strict=True)
    return {" ".join(filter(None, [name, label])): group for name, label, group in found}


def metric(name: str) -> Value:
    """A tracked metric, such as "marginal_rmse"."""
    return lambda record: record.metric(name).value


def log_z_error(estimator: str) -> Value:
    """The error of one estimator of log Z among all that ran, estimate less exact value, in nats."""

    def value(record: Record) -> float | None:
        if record.result_or_none is None or record.exact_log_z is None:
            return None
        estimate = (record.result.log_z_estimates or {}).get(estimator, [None])[0]
        return None if estimate is None else estimate - record.exact_log_z

    return value


def asked_log_z_error(record: Record) -> float | None:
    """The error of the estimator that the method was asked for, vouched for or not: papers' figures are of the
    papers' estimators. That of log Z where a method has no choice of them.
    """
    asked = record.config["method"].get("log_z")
    ran = record.result_or_none is not None and asked in (record.result.log_z_estimates or {})
    return log_z_error(asked)(record) if ran else metric("log_z_error")(record)


def average(records: Iterable[Record], value: Value) -> Average | None:
    """The root mean square of a number over models; None where no record has it.

    Its standard error is that of the mean of the models' mean squares, by the delta method: se / (2 value). Models
    count as independent draws; replicates of one model do not.
    """
    by_model: dict[str, list[float]] = defaultdict(list)
    for record in records:
        found = value(record)
        if found is not None:
            by_model[json.dumps(record.config["model"], sort_keys=True)].append(found)
    if not by_model:
        return None
    squares = [statistics.fmean(x * x for x in values) for values in by_model.values()]
    root = math.sqrt(statistics.fmean(squares))
    error = None
    if len(squares) > 1 and root > 0:
        error = statistics.stdev(squares) / math.sqrt(len(squares)) / (2 * root)
    middle = statistics.median(abs(x) for values in by_model.values() for x in values)
    return Average(root, error, middle, len(squares))


def median(records: Iterable[Record], value: Value) -> float | None:
    """The median over all records that have the number."""
    found = [x for record in records if (x := value(record)) is not None]
    return statistics.median(found) if found else None
