"""What can be eliminated first without loss, before any search: degrees 0, 1 and, in series, 2; linear in the edges.

Nodes of these degrees never raise the width of the best order (Bodlaender, Koster, van den Eijkhof, "Preprocessing
rules for triangulation of probabilistic networks", 2005).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from spinbench.backends.numba.exact.options import ALLOCATES, ONCE, SHARED
from spinbench.reference.network import IntArray


class Lists(NamedTuple):
    """Adjacency lists of n variables, cleaned only when they are read or full: so a hub of many leaves costs no more
    than its edges.

    Attributes:
        first: (n + 1,) where they start in `members`.
        used: (n,) their lengths.
        members: neighbours, and some of those that are gone.
        gone: (n,) bool.
    """

    first: IntArray
    used: IntArray
    members: IntArray
    gone: npt.NDArray[np.bool_]


class Waiting(NamedTuple):
    """Variables of one neighbour or none, and of two, as stacks (n,) with their heights (2,)."""

    leaves: IntArray
    pairs: IntArray
    height: IntArray


@njit(**ALLOCATES)
def neighbours(size, start, scope):
    """Variables that share a table.

    Args:
        size: number of variables.
        start: (T + 1,) int64, where the scopes of the tables start in `scope`.
        scope: int64 variables.

    Returns:
        first (n + 1,): where the lists start, with room for twice as many; degree (n,); lists, without repetitions.
    """
    first = np.zeros(size + 1, dtype=np.int64)
    for t in range(start.size - 1):
        for k in range(start[t], start[t + 1]):
            first[scope[k] + 1] += 2 * (start[t + 1] - start[t] - 1)
    for v in range(size):
        first[v + 1] += first[v] + 2
    lists = np.empty(first[size], dtype=np.int64)
    degree = np.zeros(size, dtype=np.int64)
    for t in range(start.size - 1):
        for k in range(start[t], start[t + 1]):
            v = scope[k]
            for other in range(start[t], start[t + 1]):
                if other != k:
                    lists[first[v] + degree[v]] = scope[other]
                    degree[v] += 1
    _drop_repetitions(first, degree, lists)
    return first, degree, lists


@njit(**ONCE)
def _drop_repetitions(first, degree, lists):
    seen = np.full(degree.size, -1, dtype=np.int64)
    for v in range(degree.size):
        kept = 0
        for k in range(first[v], first[v] + degree[v]):
            u = lists[k]
            if seen[u] != v:
                seen[u] = v
                lists[first[v] + kept] = u
                kept += 1
        degree[v] = kept


@njit(**SHARED)
def _clean(v, around):
    """Takes those who are gone out of the list of v."""
    first, members = around.first[v], around.members
    kept = 0
    for k in range(first, first + around.used[v]):
        if not around.gone[members[k]]:
            members[first + kept] = members[k]
            kept += 1
    around.used[v] = kept


@njit(**ONCE)
def _joined(a, b, around):
    """Whether two variables are neighbours."""
    if around.used[a] > around.used[b]:
        a, b = b, a
    _clean(a, around)
    return b in around.members[around.first[a] : around.first[a] + around.used[a]]


@njit(**ONCE)
def _append(u, other, around):
    """Enters a new neighbour of u."""
    if around.first[u] + around.used[u] == around.first[u + 1]:
        _clean(u, around)
    around.members[around.first[u] + around.used[u]] = other
    around.used[u] += 1


@njit(**SHARED)
def _push(v, degree, waiting):
    if degree == 2:
        waiting.pairs[waiting.height[1]] = v
        waiting.height[1] += 1
    elif degree == 1:
        waiting.leaves[waiting.height[0]] = v
        waiting.height[0] += 1


@njit(**ONCE)
def _pop(waiting):
    """Leaves first, or a tree would not get width 1."""
    if waiting.height[0]:
        waiting.height[0] -= 1
        return waiting.leaves[waiting.height[0]]
    waiting.height[1] -= 1
    return waiting.pairs[waiting.height[1]]


@njit(**ALLOCATES)
def strip(first, degree, lists, states, order):
    """Eliminates variables with one neighbour, and those with two that have no more states than a neighbour.

    Args:
        first, degree, lists: of `neighbours`; left as those of the core.
        states: (n,) int64.
        order: (n,) int64, gets what was eliminated.

    Returns:
        count of those eliminated, which are gone (n,), width, log2 of the largest clique, entries in all (float).
    """
    n = states.size
    around = Lists(first, degree.copy(), lists, np.zeros(n, dtype=np.bool_))
    waiting = Waiting(np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.zeros(2, dtype=np.int64))
    for v in range(n):
        _push(v, max(degree[v], 1), waiting)
    count = width = 0
    largest = total = 0.0
    while waiting.height[0] or waiting.height[1]:
        v = _pop(waiting)
        if around.gone[v]:
            continue
        _clean(v, around)
        nearby = lists[first[v] : first[v] + around.used[v]]
        joins = nearby.size == 2 and not _joined(nearby[0], nearby[1], around)
        if joins and states[v] < min(states[nearby[0]], states[nearby[1]]):
            continue
        around.gone[v] = True
        order[count] = v
        count += 1
        entries = float(states[v])
        for u in nearby:
            entries *= states[u]
        width, largest, total = max(width, nearby.size), max(largest, np.log2(entries)), total + entries
        for k in range(nearby.size):
            u = nearby[k]
            if joins:
                _append(u, nearby[1 - k], around)
            else:
                degree[u] -= 1
                _push(u, degree[u], waiting)
    for v in range(n):
        if not around.gone[v]:
            _clean(v, around)
    return count, around.gone, width, largest, total
