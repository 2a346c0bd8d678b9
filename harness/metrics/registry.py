"""The registered metrics, and what they say of a result, as records hold it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from spinbench.api.metric import Measured, Metric
from spinbench.errors import SpinbenchError
from spinbench.foundation import plugins
from spinbench.inference.result import Result
from spinbench.metrics import MAX_MAGNITUDE, METRICS, MIXING
from spinbench.models import Model

# {"value", optional "standard_error" or a "remark" why there is none, "title", "better"}, or {"failed": reason}.
Entry = dict[str, Any]


def metric_names() -> list[str]:
    """Registered names, sorted; reads metadata only."""
    return list(plugins.entry_points("metrics"))


def load_metric(name: str) -> Metric:
    """The metric of a name.

    Raises:
        UnknownNameError: no such metric; the closest names are offered.
        BrokenPluginError: the plugin raised on import or when it was made, is no `Metric`, or its name cannot be one.
    """
    metric: Metric = plugins.create("metrics", name, lambda candidate: _invalid_class_reason(name, candidate))
    return metric


def unusable_metrics() -> dict[str, str]:
    """Those that cannot be used, each with the reason."""
    return plugins.load_all("metrics", load_metric)[1]


def usable_metrics() -> dict[str, Metric]:
    """Those that can be used, by name."""
    return plugins.load_all("metrics", load_metric)[0]


def measurement_failures(entries: Mapping[str, Entry]) -> dict[str, str]:
    """Of a record's entries those that the plugin failed to measure, by name, with the reason; not those of which it
    says itself why there is no number."""
    failures = {name: str(entries.get(name, {}).get("failed") or "") for name in metric_names()}
    return {name: reason for name, reason in failures.items() if reason.startswith(plugins.label("metrics", name))}


def measure_all(model: Model, result: Result, reference: Result | None) -> dict[str, Entry]:
    """The entries of all registered metrics; one that goes wrong costs its own entry alone."""
    return {name: _measure_entry(name, model, result, reference) for name in metric_names()}


def _measure_entry(name: str, model: Model, result: Result, reference: Result | None) -> Entry:
    try:
        metric = load_metric(name)
        outcome: object = metric.measure(model, result, reference)
    except SpinbenchError as error:
        return {"failed": str(error)}
    except (Exception, SystemExit) as error:
        return {"failed": f"{plugins.label('metrics', name)} failed: {plugins.describe_error(error)}"}
    if isinstance(outcome, str):
        return {"failed": " ".join(outcome.split()) or f"{plugins.label('metrics', name)} gave no reason"}
    if not isinstance(outcome, Measured):
        kind = type(outcome).__name__
        return {"failed": f"{plugins.label('metrics', name)} returned a {kind}; Measured or a sentence is needed"}
    value, spread = outcome
    if odd := [each for each in outcome if not (each is spread is None or _is_real(each))]:
        kind = type(odd[0]).__name__
        return {"failed": f"{plugins.label('metrics', name)} measured a {kind}; real numbers are needed"}
    if not abs(value) < MAX_MAGNITUDE:
        return {"failed": f"{plugins.label('metrics', name)} came out as {value}"}
    entry: Entry = {"value": float(value), "title": metric.title, "better": metric.better}
    if spread is None:
        return entry
    if not 0 <= spread < MAX_MAGNITUDE:
        message = f"{plugins.label('metrics', name)} gave a standard error of {float(spread)}"
        return entry | {"remark": f"{message}, which is left out; a finite number, 0 or more, or None is needed"}
    return entry | {"standard_error": float(spread)}


def _is_real(number: object) -> bool:
    return isinstance(number, int | float | np.integer | np.floating)


def _invalid_class_reason(name: str, candidate: object) -> str:
    """Why what an entry point names is no metric; empty if it is one."""
    if name in (*METRICS, MIXING):
        return "has the name of a number that records have"
    if not name.isidentifier():
        return "has a name that is none in Python, which asv asks for"
    if not (isinstance(candidate, type) and issubclass(candidate, Metric)):
        return f"is {candidate!r}; a subclass of spinbench.api.Metric is needed"
    if missing := sorted(candidate.__abstractmethods__):
        return f"lacks {' and '.join(missing)}"
    if not isinstance(getattr(candidate, "title", None), str):
        return "has no title"
    if candidate.better not in ("lower", "higher"):
        return f"has better = {candidate.better!r}; 'lower' or 'higher' is needed"
    if candidate.judged not in ("accuracy", "no"):
        return f"has judged = {candidate.judged!r}; 'accuracy' or 'no' is needed"
    if not (isinstance(candidate.families, tuple) and all(isinstance(each, str) for each in candidate.families)):
        return f"has families = {candidate.families!r}; a tuple of names is needed"
    for key, requirement in _invalid_attributes(candidate):
        return f"has {key} = {getattr(candidate, key)!r}; a {requirement} is needed"
    return ""


def _invalid_attributes(candidate: type[Metric]) -> Iterator[tuple[str, str]]:
    """What else cannot be right, each with what is needed."""
    kinds = (("unit", str, "text"), ("version", str, "text"), ("timed", bool, "bool"))
    yield from ((key, requirement) for key, kind, requirement in kinds if not isinstance(getattr(candidate, key), kind))
    ranges: dict[str, tuple[str, Callable[[float], bool]]] = {
        "floor": ("positive number", lambda x: 0 < x < MAX_MAGNITUDE),
        "margin": ("positive number", lambda x: 0 < x < MAX_MAGNITUDE),
        "alpha": ("number between 0 and 1", lambda x: 0 < x < 1),
        "falls": ("number, 0 or more,", lambda x: 0 <= x < MAX_MAGNITUDE),
    }
    for key, (requirement, holds) in ranges.items():
        value = getattr(candidate, key)
        if not _is_real(value):
            yield key, "number"
        elif not holds(value):
            yield key, requirement
