"""What a process that measures a cell answers."""

from __future__ import annotations

from typing import Any

from spinbench.measuring.records import METRICS
from spinbench.metrics import registry

Answer = dict[str, Any]
"""The part of a record that the measuring process gives: status, error, traceback, metrics, result, reference,
environment, stages, oversubscribed."""


def failure(sentence: str, details: str | None = None) -> Answer:
    """The answer of a cell that gave no result."""
    return {
        "status": "failed",
        "error": sentence,
        "traceback": details,
        "metrics": {name: {"failed": sentence} for name in (*METRICS, *registry.names())},
        "result": None,
        "reference": None,
        "environment": {},
        "stages": {},
        "oversubscribed": None,
    }
