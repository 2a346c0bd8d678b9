"""The plan of compiled bucket elimination: what each bucket multiplies, and the room that it needs.

Variables are named by their position in the elimination order. Bucket p has the axes (p, S): axis 0 is p itself, the
others are its separator S in ascending order. Pieces are the T tables and then the n messages; message p runs over the
separator of p in C order. All numbers of all pieces lie in one array.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from spinbench.backends.numba.exact.options import CALLED, ONCE
from spinbench.backends.numba.kernel_cache import njit
from spinbench.reference.flat import FlatNetwork
from spinbench.reference.network import FloatArray, IntArray
from spinbench.reference.orders.order import Order

BLOCK = 2048
"""Entries of the innermost block that stays in the first-level cache."""


class Plan(NamedTuple):
    """What the buckets multiply; all int64.

    Attributes:
        states: (n,) of each position.
        start: (T + n + 1,) where the scopes of the pieces start in `scope`.
        scope: positions.
        bucket: (n + 1,) where the pieces of a bucket start in `held`: those whose first position it is.
        held: pieces.
        offset: (T + n + 1,) where the entries of the pieces start; those of messages that are held at different times
            may lie in one place, for `forward` alone.
    """

    states: IntArray
    start: IntArray
    scope: IntArray
    bucket: IntArray
    held: IntArray
    offset: IntArray


class Most(NamedTuple):
    """The largest numbers that a bucket has: of axes, of larger pieces and children, of patterns that it keeps, of
    entries of a block, of a block at all states, of states, and of entries of small tables."""

    axes: int
    pieces: int
    patterns: int
    block: int
    base: int
    states: int
    small: int


def make_plan(flat: FlatNetwork, order: Order) -> tuple[Plan, Most, FloatArray]:
    """The plan, with messages one after another, what is largest in it, and the entries of the messages.

    Args:
        flat: n variables and T tables.
        order: of elimination.
    """
    n, states, over = len(order.order), flat.states[order.order], order.separators
    position = np.empty(n, dtype=np.int64)
    position[order.order] = np.arange(n)
    start = np.concatenate([flat.start, flat.start[-1] + np.cumsum([*map(len, over)], dtype=np.int64)])
    scope = np.concatenate([position[flat.scope], np.fromiter(itertools.chain.from_iterable(over), dtype=np.int64)])
    pieces = np.flatnonzero(np.diff(start))  # messages of roots are over nothing
    lowest = np.minimum.reduceat(scope, start[pieces])
    by_bucket = np.argsort(lowest, kind="stable")
    bucket, held = np.searchsorted(lowest[by_bucket], np.arange(n + 1)), pieces[by_bucket]
    message, most = np.empty(n), np.empty(len(Most._fields), dtype=np.int64)
    _measure(len(flat.start) - 1, states, start, scope, bucket, held, message, most)
    offset = np.concatenate([flat.offset, flat.offset[-1] + np.cumsum(message).astype(np.int64)])
    return Plan(states, start, scope, bucket, held, offset), Most(*map(int, most)), message


@njit(**CALLED)
def _measure(tables, states, start, scope, bucket, held, message, most):
    """What the buckets take.

    Args:
        tables, states, start, scope, bucket, held: T, and as in `Plan`.
        message: (n,) float64, gets the entries of each message.
        most: (7,) int64, gets a `Most`.
    """
    for k in range(7):
        most[k] = 1
    for p in range(states.size):
        first, last = start[tables + p], start[tables + p + 1]
        entries, small = 1.0, states[p]
        for k in range(first, last):
            entries *= states[scope[k]]
            small += states[p] * states[scope[k]]
        message[p] = entries
        block, k = 1, last - 1
        while k >= first and (block == 1 or block * states[scope[k]] <= BLOCK):
            block *= states[scope[k]]
            k -= 1
        rows, patterns = _rows(p, tables, entries > block, start, bucket, held)
        needed = (last - first + 1, rows + 1, patterns + 1, block, block * states[p], states[p], small)
        for k in range(7):
            most[k] = max(most[k], needed[k])


@njit(**ONCE)
def _rows(p, tables, several, start, bucket, held):
    """Larger pieces and children of bucket p, and patterns that it keeps, where it has one block or several."""
    rows = patterns = 0
    for k in range(bucket[p], bucket[p + 1]):
        size = start[held[k] + 1] - start[held[k]]
        rows += size > 2
        if several:
            patterns += size > 2
            if held[k] >= tables:
                rows += size > 1
                patterns += size > 1
    return rows, patterns
