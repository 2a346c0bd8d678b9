"""The registered metrics, and what they say of a result, as records hold it."""

from __future__ import annotations

import math
from typing import Any

from spinbench.api.metric import Measured, Metric
from spinbench.errors import BrokenPluginError, SpinbenchError
from spinbench.foundation import plugins
from spinbench.inference.result import Result
from spinbench.metrics import METRICS
from spinbench.models import Model

Entry = dict[str, Any]
"""{"value", perhaps "standard_error", "title", "better"}, or {"failed": why}."""


def names() -> list[str]:
    """Registered names, sorted; reads metadata only."""
    return list(plugins.entry_points("metrics"))


def load(name: str) -> Metric:
    """The metric of a name.

    Raises:
        UnknownNameError: no such metric; the closest names are offered.
        BrokenPluginError: the plugin raised on import or is no `Metric`, or its name cannot be one.
    """
    found: Metric = plugins.load("metrics", name, lambda found: _malformed(name, found))()
    return found


def broken() -> dict[str, str]:
    """Those that cannot be used, each with the reason."""
    found = {}
    for name in names():
        try:
            load(name)
        except BrokenPluginError as error:
            found[name] = str(error)
    return found


def working() -> dict[str, Metric]:
    """Those that can be used, by name."""
    failed = broken()
    return {name: load(name) for name in names() if name not in failed}


def measured(model: Model, result: Result, reference: Result | None) -> dict[str, Entry]:
    """The entries of all registered metrics; one that goes wrong costs its own entry alone."""
    return {name: _entry(name, model, result, reference) for name in names()}


def _entry(name: str, model: Model, result: Result, reference: Result | None) -> Entry:
    try:
        metric = load(name)
        found: object = metric.measure(model, result, reference)
    except SpinbenchError as error:
        return {"failed": str(error)}
    except Exception as error:
        text = " ".join(str(error).split())
        return {"failed": f"{plugins.titled('metrics', name)} failed: {type(error).__name__}: {text}"}
    if isinstance(found, str):
        return {"failed": found}
    if not isinstance(found, Measured):
        kind = type(found).__name__
        return {"failed": f"{plugins.titled('metrics', name)} returned a {kind}; Measured or a sentence is needed"}
    if not math.isfinite(found.value):
        return {"failed": f"it came out as {found.value}"}
    entry: Entry = {"value": float(found.value), "title": metric.title, "better": metric.better}
    spread = found.standard_error
    return entry | ({"standard_error": float(spread)} if spread is not None and math.isfinite(spread) else {})


def _malformed(name: str, found: Any) -> str:
    """Why what an entry point names is no metric; empty if it is one."""
    if name in METRICS:
        return "has the name of a number that every record has"
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
    return ""
