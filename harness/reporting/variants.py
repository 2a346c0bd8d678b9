"""Records of many models to one line for each variant of a method: errors averaged over the models."""

from __future__ import annotations

import json
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable
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


def variants(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Records grouped by all settings but the model and the seed, in the order of their first record.

    A label is the method's name, with those settings of the cell in which variants of the same method differ:
    "gibbs sample=update".
    """
    groups: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        groups[json.dumps(_settings(record), sort_keys=True)].append(record)
    flat = {key: _settings(group[0]) for key, group in groups.items()}
    found = {}
    for key, settings in flat.items():
        rivals = [other for other in flat.values() if other["method.name"] == settings["method.name"]]
        differing = [
            f"{name.removeprefix('method.')}={value}"
            for name, value in settings.items()
            if any(name not in other or other[name] != value for other in rivals)
        ]
        found[" ".join([str(settings["method.name"]), *differing])] = groups[key]
    return found


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


def _settings(record: Record) -> dict[str, Any]:
    return flattened({key: value for key, value in record.config.items() if key not in ("model", "seed")})
