"""The plan of compiled bucket elimination: what each bucket multiplies, and the room that it needs.

Variables are named by their position in the elimination order. Bucket p has the axes (p, S): axis 0 is p itself, the
others are its separator S in ascending order. Pieces are the T tables and then the n messages; message p runs over the
separator of p in C order. All numbers of all pieces lie in one array.
"""

from __future__ import annotations

from typing import NamedTuple

from numba import njit

from spinbench.backends.numba.exact.options import CALLED, ONCE, SHARED
from spinbench.reference.network import IntArray

BLOCK = 2048
"""Entries of the innermost block that stays in the first-level cache."""


class Plan(NamedTuple):
    """What the buckets multiply; all int64.

    Attributes:
        states: (n,) of each position.
        start: (T + n + 1,) where the scopes of the pieces start in `scope`.
        scope: positions.
        bucket: (n + 1,) where the pieces of a bucket start in `held`: those whose first position it is.
        held: (T + n,) pieces.
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


@njit(**CALLED)
def separators(tables, start, scope, lists, following):
    """Finds the separators of the buckets.

    Args:
        tables: T.
        start: (T + n + 1,) int64, where the scopes of the pieces start in `scope`; those of messages are set here.
        scope: int64 positions, of the tables; then room for the separators.
        lists: (n,) int64 and following: (T + n,) int64, work: the pieces of each bucket as a linked list.

    Returns:
        The length of `scope` that is used; where there is less, all is to be done again with that much at least.
    """
    for p in range(lists.size):
        lists[p] = -1
    for t in range(tables):
        lowest = _lowest(t, start, scope)
        following[t] = lists[lowest]
        lists[lowest] = t
    end = start[tables]
    for p in range(lists.size):
        first = end
        piece = lists[p]
        while piece >= 0:
            end = _join(p, piece, first, end, start, scope)
            if end > scope.size:
                return end
            piece = following[piece]
        message = tables + p
        start[message + 1] = end
        if end > first:
            following[message] = lists[scope[first]]
            lists[scope[first]] = message
    return end


@njit(**SHARED)
def _lowest(piece, start, scope):
    """The first position of a piece."""
    lowest = scope[start[piece]]
    for k in range(start[piece] + 1, start[piece + 1]):
        lowest = min(lowest, scope[k])
    return lowest


@njit(**ONCE)
def _join(p, piece, first, end, start, scope):
    """Adds the positions of a piece, but for p, to the ascending scope[first:end].

    Returns its new end, or twice as much and more where it does not fit.
    """
    for k in range(start[piece], start[piece + 1]):
        u = scope[k]
        known = u == p
        place = end
        while not known and place > first and scope[place - 1] >= u:
            place -= 1
            known = scope[place] == u
        if known:
            continue
        if end == scope.size:
            return 2 * end + 64
        for later in range(end, place, -1):
            scope[later] = scope[later - 1]
        scope[place] = u
        end += 1
    return end


@njit(**CALLED)
def fill_buckets(start, scope, bucket, held):
    """Tables and messages by the first position that they hold.

    Args:
        start, scope: of all pieces.
        bucket: (n + 1,) int64, gets where the pieces of a bucket start in `held`; held: (T + n,) int64.
    """
    n, pieces = bucket.size - 1, start.size - 1
    for p in range(n + 1):
        bucket[p] = 0
    for turn in range(2):
        for i in range(pieces - 1, -1, -1):
            if start[i] == start[i + 1]:
                continue
            lowest = _lowest(i, start, scope)
            if turn == 0:
                bucket[lowest] += 1
            else:
                bucket[lowest] -= 1
                held[bucket[lowest]] = i
        if turn == 0:
            for p in range(n):
                bucket[p + 1] += bucket[p]


@njit(**CALLED)
def room(tables, states, start, scope, bucket, held, message, most):
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
