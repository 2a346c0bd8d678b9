"""What a process that measures a cell answers."""

from __future__ import annotations

from typing import Any

from spinbench.measuring.records import METRICS
from spinbench.metrics import registry

# Parts of a record that the measuring process returns: status, error, traceback, metrics, result, reference,
# environment, stages, oversubscribed.
Answer = dict[str, Any]


# Largest number of characters of a message, and of the end of its traceback, in a record: an exception may contain an
# array.
MAX_CHARACTERS = 4000


def failure_answer(sentence: str, details: str | None = None) -> Answer:
    """The answer of a cell that gave no result."""
    if len(sentence) > MAX_CHARACTERS:
        sentence = f"{sentence[:MAX_CHARACTERS]} … ({len(sentence)} characters)"
    details = details and details[-MAX_CHARACTERS:]
    return {
        "status": "failed",
        "error": sentence,
        "traceback": details,
        "metrics": {name: {"failed": sentence} for name in (*METRICS, *registry.metric_names())},
        "result": None,
        "reference": None,
        "environment": {},
        "stages": {},
        "oversubscribed": None,
    }
