"""Compiled loops of the search for elimination orders; Numba is loaded with this module, and only where it is needed.

`strip` eliminates variables of one neighbour or none, and those in series, in time linear in the edges.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from spinbench.reference.network import IntArray

COMPILED: dict[str, Any] = {"cache": True, "error_model": "numpy"}


class Lists(NamedTuple):
    """Adjacency lists of n variables, cleaned only when they are read or full: so a hub of many leaves costs no more
    than its edges.

    Attributes:
        first: (n + 1,) where they start in `members`, with room for twice as many.
        used: (n,) their lengths.
        members: neighbours, and some of those that are eliminated.
        eliminated: (n,) bool.
    """

    first: IntArray
    used: IntArray
    members: IntArray
    eliminated: npt.NDArray[np.bool_]


@njit(**COMPILED)
def adjacency_lists(size, pairs):  # type: ignore[no-untyped-def]
    """Of n variables, from pairs (E, 2) without repetitions."""
    degree = np.zeros(size, dtype=np.int64)
    for k in range(len(pairs)):
        degree[pairs[k, 0]] += 1
        degree[pairs[k, 1]] += 1
    first = np.zeros(size + 1, dtype=np.int64)
    for v in range(size):
        first[v + 1] = first[v] + 2 * degree[v] + 2
    lists = Lists(
        first, np.zeros(size, dtype=np.int64), np.empty(first[size], dtype=np.int64), np.zeros(size, np.bool_)
    )
    for k in range(len(pairs)):
        append(pairs[k, 0], pairs[k, 1], lists)
        append(pairs[k, 1], pairs[k, 0], lists)
    return lists


@njit(**COMPILED)
def clean(v, lists):  # type: ignore[no-untyped-def]
    """Takes eliminated variables out of the list of v."""
    kept, first = 0, lists.first[v]
    for k in range(first, first + lists.used[v]):
        if not lists.eliminated[lists.members[k]]:
            lists.members[first + kept] = lists.members[k]
            kept += 1
    lists.used[v] = kept


@njit(**COMPILED)
def append(u, neighbour, lists):  # type: ignore[no-untyped-def]
    """Enters a new neighbour of u."""
    if lists.first[u] + lists.used[u] == lists.first[u + 1]:
        clean(u, lists)
    lists.members[lists.first[u] + lists.used[u]] = neighbour
    lists.used[u] += 1


@njit(**COMPILED)
def are_neighbours(u, v, lists):  # type: ignore[no-untyped-def]
    if lists.used[u] > lists.used[v]:
        u, v = v, u
    clean(u, lists)
    return v in lists.members[lists.first[u] : lists.first[u] + lists.used[u]]


@njit(**COMPILED)
def strip(lists, states, order):  # type: ignore[no-untyped-def]
    """Eliminates variables of one neighbour or none, and those in series that have no more states than a neighbour.

    Args:
        lists: of all variables; left as those of the rest.
        states: (n,) numbers of states.
        order: (n,) int64, gets the variables as they are eliminated.

    Returns:
        how many are eliminated.
    """
    n = states.size
    degree, waiting = lists.used.copy(), np.empty((2, n), dtype=np.int64)
    height = np.zeros(2, dtype=np.int64)  # of two stacks: leaves, and variables of two neighbours
    for v in range(n):
        if degree[v] <= 2:
            push(v, degree[v], waiting, height)
    count = 0
    while height[0] or height[1]:
        stack = 0 if height[0] else 1  # leaves first, or a tree would not get width 1
        height[stack] -= 1
        v = waiting[stack, height[stack]]
        if lists.eliminated[v]:
            continue
        clean(v, lists)
        near = lists.members[lists.first[v] : lists.first[v] + lists.used[v]]
        joins = near.size == 2 and not are_neighbours(near[0], near[1], lists)
        if joins and states[v] < min(states[near[0]], states[near[1]]):
            continue
        lists.eliminated[v] = True
        order[count] = v
        count += 1
        for k in range(near.size):
            if joins:
                append(near[k], near[1 - k], lists)
                continue
            degree[near[k]] -= 1
            if 0 < degree[near[k]] <= 2:
                push(near[k], degree[near[k]], waiting, height)
    for v in range(n):
        if not lists.eliminated[v]:
            clean(v, lists)
    return count


@njit(**COMPILED)
def push(v, degree, waiting, height):  # type: ignore[no-untyped-def]
    """Onto the stack of its degree, which each variable enters once: degrees only fall. One without neighbours is on
    that of leaves already, unless it had none to begin with."""
    stack = 1 if degree == 2 else 0
    waiting[stack, height[stack]] = v
    height[stack] += 1
