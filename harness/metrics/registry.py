"""The registered metrics, and what they say of a result, as records hold it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from spinbench.api.metric import Measured, Metric
from spinbench.errors import SpinbenchError
from spinbench.foundation import plugins
from spinbench.inference.result import Result
from spinbench.metrics import METRICS, MIXING, MOST
from spinbench.models import Model

Entry = dict[str, Any]
"""{"value", perhaps "standard_error" or a "remark" on why there is none, "title", "better"}, or {"failed": why}."""


def names() -> list[str]:
    """Registered names, sorted; reads metadata only."""
    return list(plugins.entry_points("metrics"))


def load(name: str) -> Metric:
    """The metric of a name.

    Raises:
        UnknownNameError: no such metric; the closest names are offered.
        BrokenPluginError: the plugin raised on import or when it was made, is no `Metric`, or its name cannot be one.
    """
    found: Metric = plugins.made("metrics", name, lambda found: _malformed(name, found))
    return found


def broken() -> dict[str, str]:
    """Those that cannot be used, each with the reason."""
    return plugins.sorted_out("metrics", load)[1]


def working() -> dict[str, Metric]:
    """Those that can be used, by name."""
    return plugins.sorted_out("metrics", load)[0]


def went_wrong(entries: Mapping[str, Entry]) -> dict[str, str]:
    """Of a record's entries those that the plugin failed to measure, by name, with the reason; not those of which it
    says itself why there is no number."""
    told = {name: str(entries.get(name, {}).get("failed") or "") for name in names()}
    return {name: why for name, why in told.items() if why.startswith(plugins.titled("metrics", name))}


def measured(model: Model, result: Result, reference: Result | None) -> dict[str, Entry]:
    """The entries of all registered metrics; one that goes wrong costs its own entry alone."""
    return {name: _entry(name, model, result, reference) for name in names()}


def _entry(name: str, model: Model, result: Result, reference: Result | None) -> Entry:
    try:
        metric = load(name)
        found: object = metric.measure(model, result, reference)
    except SpinbenchError as error:
        return {"failed": str(error)}
    except (Exception, SystemExit) as error:
        return {"failed": f"{plugins.titled('metrics', name)} failed: {plugins.told(error)}"}
    if isinstance(found, str):
        return {"failed": " ".join(found.split()) or f"{plugins.titled('metrics', name)} gave no reason"}
    if not isinstance(found, Measured):
        kind = type(found).__name__
        return {"failed": f"{plugins.titled('metrics', name)} returned a {kind}; Measured or a sentence is needed"}
    value, spread = found
    if odd := [each for each in found if not (each is spread is None or _is_real(each))]:
        kind = type(odd[0]).__name__
        return {"failed": f"{plugins.titled('metrics', name)} measured a {kind}; real numbers are needed"}
    if not abs(value) < MOST:
        return {"failed": f"{plugins.titled('metrics', name)} came out as {value}"}
    entry: Entry = {"value": float(value), "title": metric.title, "better": metric.better}
    if spread is None:
        return entry
    if not 0 <= spread < MOST:
        what = f"{plugins.titled('metrics', name)} gave a standard error of {float(spread)}"
        return entry | {"remark": f"{what}, which is left out; a finite number, 0 or more, or None is needed"}
    return entry | {"standard_error": float(spread)}


def _is_real(number: object) -> bool:
    return isinstance(number, int | float | np.integer | np.floating)


def _malformed(name: str, found: Any) -> str:
    """Why what an entry point names is no metric; empty if it is one."""
    if name in (*METRICS, MIXING):
        return "has the name of a number that records have"
    if not name.isidentifier():
        return "has a name that is none in Python, which asv asks for"
    if not (isinstance(found, type) and issubclass(found, Metric)):
        return f"is {found!r}; a subclass of spinbench.api.Metric is needed"
    if missing := sorted(found.__abstractmethods__):
        return f"lacks {' and '.join(missing)}"
    if not isinstance(getattr(found, "title", None), str):
        return "has no title"
    if found.better not in ("lower", "higher"):
        return f"has better = {found.better!r}; 'lower' or 'higher' is needed"
    if found.judged not in ("accuracy", "no"):
        return f"has judged = {found.judged!r}; 'accuracy' or 'no' is needed"
    if not (isinstance(found.families, tuple) and all(isinstance(each, str) for each in found.families)):
        return f"has families = {found.families!r}; a tuple of names is needed"
    return next((f"has {key} = {getattr(found, key)!r}; a {what} is needed" for key, what in _wrong(found)), "")


def _wrong(found: type[Metric]) -> Iterator[tuple[str, str]]:
    """What else cannot be right, each with what is needed."""
    kinds = (("unit", str, "text"), ("version", str, "text"), ("timed", bool, "bool"))
    yield from ((key, what) for key, kind, what in kinds if not isinstance(getattr(found, key), kind))
    ranges: dict[str, tuple[str, Callable[[float], bool]]] = {
        "floor": ("positive number", lambda x: 0 < x < MOST),
        "margin": ("positive number", lambda x: 0 < x < MOST),
        "alpha": ("number between 0 and 1", lambda x: 0 < x < 1),
        "falls": ("number, 0 or more,", lambda x: 0 <= x < MOST),
    }
    for key, (what, holds) in ranges.items():
        value = getattr(found, key)
        if not _is_real(value):
            yield key, "number"
        elif not holds(value):
            yield key, what
