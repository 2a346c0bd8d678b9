"""How many sweeps a cell's chains take to forget their starts, where a sweep asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spinbench.errors import SpinbenchError
from spinbench.inference.mixing import BACKENDS, METHODS, mixing
from spinbench.metrics import MIXING
from spinbench.models import Model

TV = 0.01
TITLE = f"sweeps to TV < {TV:g}"


def entry(model: Model, cell: Mapping[str, Any], seconds: float) -> dict[str, dict[str, Any]]:
    """Its number among a record's metrics, or why there is none; nothing of a method that is not coupled.

    Args:
        model: of the cell.
        cell: what is measured.
        seconds: that may be spent.
    """
    method, backend = cell["method"], cell["backend"]["name"]
    if method["name"] not in METHODS:
        return {}
    how = {"scan": method["scan"]} if "scan" in method else {}
    place = backend if backend in BACKENDS else None
    try:
        found = mixing(model, method["name"], f"{seconds} s", tv=TV, seed=cell["seed"], backend=place, **how)
    except SpinbenchError as refusal:
        return {MIXING: _none(str(refusal))}
    if found.sweeps is None:
        return {MIXING: _none(found.sentences()[0])}
    return {MIXING: {"value": float(found.sweeps), "title": TITLE, "better": "lower"}}


def _none(why: str) -> dict[str, Any]:
    return {"failed": why, "remark": why}
