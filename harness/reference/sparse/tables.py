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

# Largest ratio of places to rows for an index by place; otherwise keys are sorted.
_DENSE = 8
# An index with this many places or fewer is always used.
_SMALL = 2**16
# Integers of the narrowest type that fits.
AnyInts = npt.NDArray[np.integer]
# Largest distance in nats of entries that are summed relative to the common maximum.
RANGE = 600.0


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


def product(table: Table, other: Table, cards: Sequence[int], max_rows: float) -> Table:
    """Of two tables.

    Raises:
        TooManyError: more than `max_rows`.
    """
    shared = [v for v in table.scope if v in other.scope]
    extra = [v for v in other.scope if v not in table.scope]
    keys = _keys(table, shared, cards), _keys(other, shared, cards)
    table_rows, other_rows = _pairs(*_compress_keys(*keys, _size(shared, cards)), max_rows)
    if not extra and len(table_rows) == len(table.logs):
        states, mine = table.states, table.links
    else:
        states = _take_states(table, table.scope, table_rows)
        if extra:
            states = np.concatenate([states, _take_states(other, extra, other_rows)])
        mine = tuple((bucket, rows[table_rows]) for bucket, rows in table.links)
    theirs = tuple((bucket, rows[other_rows]) for bucket, rows in other.links)
    return Table(table.scope + tuple(extra), states, table.logs[table_rows] + other.logs[other_rows], mine + theirs)


def sum_out(table: Table, v: int, bucket: int, cards: Sequence[int]) -> Summed:
    """Over variable v; the message says that it is this bucket's."""
    support, above = project(table, v, cards)
    logs, conditional = _shares(table.logs, above, len(support.logs))
    links = ((bucket, np.arange(len(logs), dtype=np.int32)),)
    return Summed(support._replace(logs=logs, links=links), above, conditional)


def project(table: Table, v: int, cards: Sequence[int]) -> tuple[Table, AnyInts]:
    """One row of each states of the variables but v, and of each row (N,) its row there."""
    rest = [u for u in table.scope if u != v]
    keys, size = _keys(table, rest, cards), _size(rest, cards)
    if size > max(_SMALL, _DENSE * len(keys)):
        distinct, keys = np.unique(keys, return_inverse=True)
        size = len(distinct)
    above, representatives = _number_keys(keys, size)
    return Table(tuple(rest), _take_states(table, rest, representatives), table.logs[representatives]), above


def _size(scope: Sequence[int], cards: Sequence[int]) -> int:
    """Joint states.

    Raises:
        TooManyError: int64 cannot number them.
    """
    joint_states = math.prod(cards[v] for v in scope)
    if joint_states >= 2**62:
        raise TooManyError
    return joint_states


def _keys(table: Table, scope: Sequence[int], cards: Sequence[int]) -> AnyInts:
    """(N,) int64, the states of these variables as one number."""
    keys = np.zeros(len(table.logs), dtype=np.int64)
    for v in scope:
        keys *= cards[v]
        keys += table.states[table.scope.index(v)]
    return keys


def _take_states(table: Table, scope: Sequence[int], rows: AnyInts) -> AnyInts:
    """(k, rows) the states of these variables in these rows."""
    states = np.empty((len(scope), len(rows)), table.states.dtype)
    for row, v in zip(states, scope, strict=True):
        # mode="clip" writes in place, which "raise" does not.
        np.take(table.states[table.scope.index(v)], rows, out=row, mode="clip")
    return states


def _compress_keys(mine: AnyInts, theirs: AnyInts, size: int) -> tuple[AnyInts, AnyInts, int]:
    """Keys below a size that is in proportion to their number."""
    if size <= max(_SMALL, _DENSE * (len(mine) + len(theirs))):
        return mine, theirs, size
    distinct, numbers = np.unique(theirs, return_inverse=True)
    place = np.searchsorted(distinct, mine)
    # Keys that the other table lacks get an additional number, for which it has no rows; -1 is no key.
    same = np.append(distinct, -1)[place] == mine
    return np.where(same, place, len(distinct)), numbers, len(distinct) + 1


def _pairs(mine: AnyInts, theirs: AnyInts, size: int, max_pairs: float) -> tuple[AnyInts, AnyInts]:
    """Rows of both whose keys, below a size, are alike.

    Raises:
        TooManyError: more than `max_pairs`.
    """
    counts = np.bincount(theirs, minlength=size)
    times = counts[mine]
    if times.sum() > max_pairs:
        raise TooManyError
    rows = np.arange(len(mine), dtype=np.int32)
    # The common case: the other table's variables are a subset of this one's.
    if counts.max(initial=0) <= 1:
        place = np.empty(size, dtype=np.int32)
        place[theirs] = np.arange(len(theirs), dtype=np.int32)
        matching = rows if times.all() else rows[times > 0]
        return matching, place[mine[matching]]
    # NumPy sorts 16-bit integers in linear time.
    narrow = theirs.astype(np.uint16) if size <= 2**16 else theirs
    order = np.argsort(narrow, kind="stable").astype(np.int32)
    first = (np.cumsum(counts) - counts)[mine] - (np.cumsum(times) - times)
    return np.repeat(rows, times), order[np.repeat(first, times) + np.arange(times.sum())]


def _number_keys(keys: AnyInts, size: int) -> tuple[AnyInts, AnyInts]:
    """(N,) numbers of the different keys, and one row of each."""
    row = np.full(size, -1, dtype=np.int32)
    # Of rows with equal keys the last one remains; any would do.
    row[keys] = np.arange(len(keys), dtype=np.int32)
    present = np.flatnonzero(row >= 0)
    representatives = row[present]
    row[present] = np.arange(len(present), dtype=np.int32)
    return row[keys], representatives


def _shares(logs: FloatArray, numbers: AnyInts, count: int) -> tuple[FloatArray, FloatArray]:
    """Log sums over the rows of each number, and each row's share."""
    peak = np.full(count, logs.max())
    if logs.max() - logs.min() > RANGE:
        order = np.argsort(numbers, kind="stable")
        peak = np.maximum.reduceat(logs[order], np.searchsorted(numbers[order], np.arange(count)))
    shares = np.exp(logs - peak[numbers])
    total = np.bincount(numbers, shares, minlength=count)
    shares /= total[numbers]
    return np.log(total) + peak, shares
