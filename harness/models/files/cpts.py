"""Conditional probability tables, as files of Bayesian networks hold them."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

MAX_ENTRIES = 2**26
"""Of all tables together: 512 MiB."""
TOLERANCE = 1e-2
"""By which the sum of a row may miss 1; what is written with a few digits misses it by rounding."""


def wrong_row(table: FloatArray) -> int | None:
    """The first row of a (…, K) table that is no distribution of its last variable, in C order; None where all are."""
    rows = table.reshape(-1, table.shape[-1])
    wrong = ~((rows >= 0).all(axis=1) & (abs(rows.sum(axis=1) - 1) <= TOLERANCE))
    return int(np.argmax(wrong)) if wrong.any() else None


def cycle(parents: Sequence[Sequence[int]]) -> list[int]:
    """Variables each of which is a parent of the next, the first again at the end; empty where there is no cycle."""
    try:
        TopologicalSorter(dict(enumerate(parents))).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def logarithms(table: FloatArray) -> FloatArray:
    """Read-only; -inf for 0."""
    with np.errstate(divide="ignore"):
        logs = np.ascontiguousarray(np.log(table))
    logs.setflags(write=False)
    return logs
