"""Loops over rows, on arrays."""

from __future__ import annotations

import numpy as np

from spinbench.reference.network import FloatArray
from spinbench.reference.sparse.tables import IntArray, Loops

RANGE = 600.0
"""Nats between entries that may be summed relative to the largest of all."""


def _keys(states: IntArray, axes: IntArray, cards: IntArray) -> IntArray:
    found = np.zeros(states.shape[1], dtype=np.int64)
    for axis, card in zip(axes.tolist(), cards.tolist(), strict=True):
        found *= card
        found += states[axis]
    return found


def _pairs(mine: IntArray, theirs: IntArray, size: int, most: float) -> tuple[IntArray, IntArray] | None:
    counts = np.bincount(theirs, minlength=size)
    times = counts[mine]
    if times.sum() > most:
        return None
    starts = np.cumsum(counts) - counts
    here = np.repeat(np.arange(len(mine)), times)
    step = np.arange(len(here)) - np.repeat(np.cumsum(times) - times, times)
    return here, np.argsort(theirs, kind="stable")[starts[mine[here]] + step]


def _take_states(states: IntArray, axes: IntArray, rows: IntArray) -> IntArray:
    return np.asarray(states[axes][:, rows])


def _number_keys(keys: IntArray, size: int) -> tuple[IntArray, IntArray]:
    row = np.full(size, -1, dtype=np.int64)
    row[keys] = np.arange(len(keys))
    present = row >= 0
    return (np.cumsum(present) - 1)[keys], row[present]


def _shares(logs: FloatArray, numbers: IntArray, count: int) -> tuple[FloatArray, FloatArray]:
    peak = np.full(count, logs.max())
    if logs.max() - logs.min() > RANGE:
        order = np.argsort(numbers, kind="stable")
        peak = np.maximum.reduceat(logs[order], np.searchsorted(numbers[order], np.arange(count)))
    weights = np.exp(logs - peak[numbers])
    total = np.bincount(numbers, weights, minlength=count)
    return np.log(total) + peak, weights / total[numbers]


ON_ARRAYS = Loops(_keys, _pairs, _take_states, _number_keys, _shares)
