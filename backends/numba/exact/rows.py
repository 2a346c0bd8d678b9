"""Loops over rows of possible states, compiled; what they do stands in `spinbench.reference.sparse.tables`."""

from __future__ import annotations

import math

import numpy as np

from spinbench.backends.numba.kernel_cache import njit
from spinbench.reference.sparse.tables import AnyInts, Loops

_BLOCK = 2048
"""Rows at a time, whose keys stay in the first-level cache."""


@njit(cache=True)
def _keys(states, axes, cards):
    rows = states.shape[1]
    found = np.zeros(rows, np.int64)
    for begin in range(0, rows, _BLOCK):
        end = min(begin + _BLOCK, rows)
        for a in range(axes.size):
            own, card = states[axes[a]], cards[a]
            for i in range(begin, end):
                found[i] = found[i] * card + own[i]
    return found


@njit(cache=True)
def _starts_of(theirs, size):
    """Where rows of each key begin, once they are sorted, and the sorted rows."""
    starts, order = np.zeros(size + 1, np.int32), np.empty(theirs.size, np.int32)
    for key in theirs:
        starts[key] += 1
    total = 0
    for k in range(size + 1):
        total += starts[k]
        starts[k] = total
    for j in range(theirs.size - 1, -1, -1):
        starts[theirs[j]] -= 1
        order[starts[theirs[j]]] = j
    return starts, order


@njit(cache=True)
def _pairs_of(mine, theirs, size, most):
    starts, order = _starts_of(theirs, size)
    total = 0
    for key in mine:
        total += starts[key + 1] - starts[key]
    if total > most:
        return total, np.empty(0, np.int32), np.empty(0, np.int32)
    here, there = np.empty(total, np.int32), np.empty(total, np.int32)
    at = 0
    for i in range(mine.size):
        for k in range(starts[mine[i]], starts[mine[i] + 1]):
            here[at], there[at] = i, order[k]
            at += 1
    return total, here, there


def _pairs(mine: AnyInts, theirs: AnyInts, size: int, most: float) -> tuple[AnyInts, AnyInts] | None:
    total, here, there = _pairs_of(mine, theirs, size, float(most))
    return None if total > most else (here, there)


@njit(cache=True)
def _take_states(states, axes, rows):
    found = np.empty((axes.size, rows.size), states.dtype)
    for begin in range(0, rows.size, _BLOCK):
        end = min(begin + _BLOCK, rows.size)
        for a in range(axes.size):
            own = states[axes[a]]
            for i in range(begin, end):
                found[a, i] = own[rows[i]]
    return found


@njit(cache=True)
def _number_keys(keys, size):
    index, count = np.full(size, -1, np.int32), 0
    numbers, one = np.empty(keys.size, np.int32), np.empty(keys.size, np.int32)
    for i in range(keys.size):
        if index[keys[i]] < 0:
            index[keys[i]] = count
            one[count] = i
            count += 1
        numbers[i] = index[keys[i]]
    return numbers, one[:count]


@njit(cache=True)
def _shares(logs, numbers, count):
    peak, shares, total = np.full(count, -np.inf), np.empty(logs.size), np.zeros(count)
    for i in range(logs.size):
        peak[numbers[i]] = max(peak[numbers[i]], logs[i])
    for i in range(logs.size):
        shares[i] = math.exp(logs[i] - peak[numbers[i]])
        total[numbers[i]] += shares[i]
    for i in range(logs.size):
        shares[i] /= total[numbers[i]]
    for k in range(count):
        peak[k] += math.log(total[k])
    return peak, shares


COMPILED = Loops(_keys, _pairs, _take_states, _number_keys, _shares)
