"""Tables of what is possible alone: their product, and their sum over one variable.

Where most states of a table are ruled out by hard zeros, those that are left take little room, however wide it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.reference.network import FloatArray, Scope

_DENSE = 8
"""Times as many places as rows that an index by place may have; else keys are sorted."""
_SMALL = 2**16
"""Places of an index that is never too large."""
AnyInts = npt.NDArray[np.integer]
"""As narrow as will do."""
RANGE = 600.0
"""Nats between entries that may be summed relative to the largest of all."""


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
    states: AnyInts
    logs: FloatArray
    links: tuple[tuple[int, AnyInts], ...] = ()


class Summed(NamedTuple):
    """A table over all variables but one.

    Attributes:
        message: the sum.
        above: (N,) of each row that was summed the row of the message.
        conditional: (N,) its share of that.
    """

    message: Table
    above: AnyInts
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


class Loops(NamedTuple):
    """What runs over rows, on arrays or in compiled code.

    Attributes:
        keys: (states, axes, cards) -> (N,) int64, the states of these axes as one number.
        pairs: (mine, theirs, size, most) -> rows of both whose keys, below a size, are alike; None where
            there are more pairs than that.
        taken: (states, axes, rows) -> the states of these axes in these rows.
        numbered: (keys, size) -> (N,) numbers of the different keys, and one row of each.
        shares: (logs, numbers, count) -> log sums over the rows of each number, and each row's share.
    """

    keys: Callable[..., AnyInts]
    pairs: Callable[..., tuple[AnyInts, AnyInts] | None]
    taken: Callable[..., AnyInts]
    numbered: Callable[..., tuple[AnyInts, AnyInts]]
    shares: Callable[..., tuple[FloatArray, FloatArray]]


def product(table: Table, other: Table, cards: Sequence[int], most: float, loops: Loops) -> Table:
    """Of two tables.

    Raises:
        TooManyError: more than `most` rows.
    """
    shared = [v for v in table.scope if v in other.scope]
    extra = [v for v in other.scope if v not in table.scope]
    keys = _keys(table, shared, cards, loops), _keys(other, shared, cards, loops)
    found = loops.pairs(*_matched(*keys, _size(shared, cards)), most)
    if found is None:
        raise TooManyError
    here, there = found
    if not extra and len(here) == len(table.logs):
        states, mine = table.states, table.links
    else:
        own = loops.taken(table.states, np.arange(len(table.scope)), here)
        states = np.concatenate([own, loops.taken(other.states, _axes(other, extra), there)]) if extra else own
        mine = tuple((bucket, rows[here]) for bucket, rows in table.links)
    theirs = tuple((bucket, rows[there]) for bucket, rows in other.links)
    return Table(table.scope + tuple(extra), states, table.logs[here] + other.logs[there], mine + theirs)


def summed(table: Table, v: int, bucket: int, cards: Sequence[int], loops: Loops) -> Summed:
    """Over variable v; the message says that it is this bucket's."""
    rest = [u for u in table.scope if u != v]
    keys, size = _keys(table, rest, cards, loops), _size(rest, cards)
    if size > max(_SMALL, _DENSE * len(keys)):
        known, keys = np.unique(keys, return_inverse=True)
        size = len(known)
    above, one = loops.numbered(keys, size)
    logs, conditional = loops.shares(table.logs, above, len(one))
    links = ((bucket, np.arange(len(one), dtype=np.int32)),)
    message = Table(tuple(rest), loops.taken(table.states, _axes(table, rest), one), logs, links)
    return Summed(message, above.astype(np.int32, copy=False), conditional)


def _size(scope: Sequence[int], cards: Sequence[int]) -> int:
    """Joint states.

    Raises:
        TooManyError: int64 cannot number them.
    """
    found = math.prod(cards[v] for v in scope)
    if found >= 2**62:
        raise TooManyError
    return found


def _axes(table: Table, scope: Sequence[int]) -> AnyInts:
    return np.array([table.scope.index(v) for v in scope], dtype=np.int64)


def _keys(table: Table, scope: Sequence[int], cards: Sequence[int], loops: Loops) -> AnyInts:
    return loops.keys(table.states, _axes(table, scope), np.array([cards[v] for v in scope], dtype=np.int64))


def _matched(mine: AnyInts, theirs: AnyInts, size: int) -> tuple[AnyInts, AnyInts, int]:
    """Keys below a size that is in proportion to their number."""
    if size <= max(_SMALL, _DENSE * (len(mine) + len(theirs))):
        return mine, theirs, size
    known, numbers = np.unique(theirs, return_inverse=True)
    place = np.minimum(np.searchsorted(known, mine), len(known) - 1)
    return np.where(known[place] == mine, place, len(known)), numbers, len(known) + 1


def _join_states(states: AnyInts, axes: AnyInts, cards: AnyInts) -> AnyInts:
    found = np.zeros(states.shape[1], dtype=np.int64)
    for axis, card in zip(axes.tolist(), cards.tolist(), strict=True):
        found *= card
        found += states[axis]
    return found


def _pairs(mine: AnyInts, theirs: AnyInts, size: int, most: float) -> tuple[AnyInts, AnyInts] | None:
    counts = np.bincount(theirs, minlength=size)
    times = counts[mine]
    if times.sum() > most:
        return None
    starts = np.cumsum(counts) - counts
    here = np.repeat(np.arange(len(mine)), times)
    step = np.arange(len(here)) - np.repeat(np.cumsum(times) - times, times)
    return here, np.argsort(theirs, kind="stable")[starts[mine[here]] + step]


def _take_states(states: AnyInts, axes: AnyInts, rows: AnyInts) -> AnyInts:
    return np.asarray(states[axes][:, rows])


def _number_keys(keys: AnyInts, size: int) -> tuple[AnyInts, AnyInts]:
    row = np.full(size, -1, dtype=np.int64)
    row[keys] = np.arange(len(keys))
    present = row >= 0
    return (np.cumsum(present) - 1)[keys], row[present]


def _shares(logs: FloatArray, numbers: AnyInts, count: int) -> tuple[FloatArray, FloatArray]:
    peak = np.full(count, logs.max())
    if logs.max() - logs.min() > RANGE:
        order = np.argsort(numbers, kind="stable")
        peak = np.maximum.reduceat(logs[order], np.searchsorted(numbers[order], np.arange(count)))
    weights = np.exp(logs - peak[numbers])
    total = np.bincount(numbers, weights, minlength=count)
    return np.log(total) + peak, weights / total[numbers]


ON_ARRAYS = Loops(_join_states, _pairs, _take_states, _number_keys, _shares)
