"""Tables of what is possible alone: their product, and their sum over one variable.

Where most states of a table are ruled out by hard zeros, those that are left take little room, however wide it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.reference.network import FloatArray, Scope

_DENSE = 8
"""Times as many places as rows that an index by place may have; else keys are sorted."""
_SMALL = 2**16
"""Places of an index that is never too large."""
_RANGE = 600.0
"""Nats between entries that may be summed relative to the largest of all."""


IntArray = npt.NDArray[np.integer]
"""As narrow as will do."""


class TooManyError(Exception):
    """More rows than are allowed."""


class Table(NamedTuple):
    """Rows of positive weight.

    Attributes:
        scope: variables.
        states: (k, N) of the variables.
        logs: (N,) finite.
        links: of messages that it was multiplied from: the bucket, and of each row (N,) that one's row.
    """

    scope: Scope
    states: IntArray
    logs: FloatArray
    links: tuple[tuple[int, IntArray], ...] = ()


class Summed(NamedTuple):
    """A table over all variables but one.

    Attributes:
        message: the sum.
        above: (N,) of each row that was summed the row of the message.
        conditional: (N,) its share of that.
    """

    message: Table
    above: IntArray
    conditional: FloatArray


def table_of(scope: Scope, log_table: FloatArray) -> Table:
    """Without the zeros of a log table."""
    at = np.nonzero(log_table > -np.inf)
    kind = np.min_scalar_type(max(log_table.shape, default=1))
    states = np.array(at, dtype=kind).reshape(len(scope), -1)
    return Table(scope, states, np.asarray(log_table[at], dtype=np.float64).reshape(-1))


def growth(table: Table, other: Table, cards: Sequence[int]) -> float:
    """By how much the product has more rows than the table, if all rows were alike."""
    return len(other.logs) / math.prod(cards[v] for v in other.scope if v in table.scope)


def product(table: Table, other: Table, cards: Sequence[int], most: float) -> Table:
    """Of two tables.

    Raises:
        TooManyError: more than `most` rows.
    """
    shared = [v for v in table.scope if v in other.scope]
    extra = [k for k, v in enumerate(other.scope) if v not in table.scope]
    mine, theirs, size = _matched(_keys(table, shared, cards), _keys(other, shared, cards), _size(shared, cards))
    counts = np.bincount(theirs, minlength=size + 1)
    times = counts[mine]
    if times.sum() > most:
        raise TooManyError
    if extra:
        starts = np.cumsum(counts) - counts
        here = np.repeat(np.arange(len(mine)), times)
        step = np.arange(len(here)) - np.repeat(np.cumsum(times) - times, times)
        there = np.argsort(theirs, kind="stable")[starts[mine[here]] + step]
    else:
        row = np.empty(size + 1, dtype=np.int64)
        row[theirs] = np.arange(len(theirs))
        here = np.flatnonzero(times)
        there = row[mine[here]]
    return Table(
        table.scope + tuple(other.scope[k] for k in extra),
        np.concatenate([table.states[:, here], other.states[np.array(extra, dtype=np.int64)][:, there]]),
        table.logs[here] + other.logs[there],
        tuple((bucket, rows[here]) for bucket, rows in table.links)
        + tuple((bucket, rows[there]) for bucket, rows in other.links),
    )


def summed(table: Table, v: int, bucket: int, cards: Sequence[int]) -> Summed:
    """Over variable v; the message says that it is this bucket's."""
    rest = [u for u in table.scope if u != v]
    place, count = _numbered(_keys(table, rest, cards), _size(rest, cards))
    if table.logs.max() - table.logs.min() <= _RANGE:
        peak = np.full(count, table.logs.max())
    else:
        order = np.argsort(place, kind="stable")
        peak = np.maximum.reduceat(table.logs[order], np.searchsorted(place[order], np.arange(count)))
    weights = np.exp(table.logs - peak[place])
    total = np.bincount(place, weights, minlength=count)
    one = np.empty(count, dtype=np.int64)
    one[place] = np.arange(len(place))
    axes = np.array([table.scope.index(u) for u in rest], dtype=np.int64)
    links = ((bucket, np.arange(count, dtype=np.int32)),)
    message = Table(tuple(rest), table.states[axes][:, one], np.log(total) + peak, links)
    return Summed(message, place.astype(np.int32), weights / total[place])


def _size(scope: Sequence[int], cards: Sequence[int]) -> int:
    """Joint states.

    Raises:
        TooManyError: int64 cannot number them.
    """
    found = math.prod(cards[v] for v in scope)
    if found >= 2**62:
        raise TooManyError
    return found


def _keys(table: Table, scope: Sequence[int], cards: Sequence[int]) -> IntArray:
    found = np.zeros(len(table.logs), dtype=np.int64)
    for v in scope:
        found *= cards[v]
        found += table.states[table.scope.index(v)]
    return found


def _matched(mine: IntArray, theirs: IntArray, size: int) -> tuple[IntArray, IntArray, int]:
    """Keys below a size that is in proportion to their number; `size` itself is what nobody else has."""
    if size <= max(_SMALL, _DENSE * (len(mine) + len(theirs))):
        return mine, theirs, size
    known, numbers = np.unique(theirs, return_inverse=True)
    place = np.minimum(np.searchsorted(known, mine), len(known) - 1)
    return np.where(known[place] == mine, place, len(known)), numbers, len(known)


def _numbered(keys: IntArray, size: int) -> tuple[IntArray, int]:
    """The different keys' numbers, and how many there are."""
    if size > max(_SMALL, _DENSE * len(keys)):
        known, numbers = np.unique(keys, return_inverse=True)
        return numbers, len(known)
    present = np.zeros(size, dtype=bool)
    present[keys] = True
    numbers = np.cumsum(present) - 1
    return numbers[keys], int(numbers[-1]) + 1
