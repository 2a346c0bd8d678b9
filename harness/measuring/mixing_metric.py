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


def mixing_entry(model: Model, cell: Mapping[str, Any], seconds: float) -> dict[str, dict[str, Any]]:
    """Its number among a record's metrics, or why there is none; nothing of a method that is not coupled.

    Args:
        model: of the cell.
        cell: what is measured.
        seconds: that may be spent.
    """
    method, backend = cell["method"], cell["backend"]["name"]
    if method["name"] not in METHODS:
        return {}
    options = {"scan": method["scan"]} if "scan" in method else {}
    mixing_backend = backend if backend in BACKENDS else None
    try:
        mixing_time = mixing(
            model, method["name"], f"{seconds} s", tv=TV, seed=cell["seed"], backend=mixing_backend, **options
        )
    except SpinbenchError as refusal:
        return {MIXING: _missing_entry(str(refusal))}
    if mixing_time.sweeps is None:
        return {MIXING: _missing_entry(mixing_time.sentences()[0])}
    return {MIXING: {"value": float(mixing_time.sweeps), "title": TITLE, "better": "lower"}}


def _missing_entry(reason: str) -> dict[str, Any]:
    return {"failed": reason, "remark": reason}
