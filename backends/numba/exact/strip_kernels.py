"""What can be eliminated first without loss, before any search: degrees 0, 1 and, in series, 2; linear in the edges.

Nodes of these degrees never raise the width of the best order (Bodlaender, Koster, van den Eijkhof, "Preprocessing
rules for triangulation of probabilistic networks", 2005).
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, error_model="numpy")
def neighbours(size, start, scope):
    """Variables that share a table.

    Args:
        size: number of variables.
        start: (T + 1,) int64, where the scopes of the tables start in `scope`.
        scope: int64 variables.

    Returns:
        first (n + 1,): where the lists start, with room for twice as many; degree (n,); lists, without repetitions.
    """
    room = np.zeros(size + 1, dtype=np.int64)
    for t in range(start.size - 1):
        for k in range(start[t], start[t + 1]):
            room[scope[k] + 1] += start[t + 1] - start[t] - 1
    first = np.zeros(size + 1, dtype=np.int64)
    for v in range(size):
        first[v + 1] = first[v] + 2 * room[v + 1] + 2
    lists = np.empty(first[size], dtype=np.int64)
    degree = np.zeros(size, dtype=np.int64)
    for t in range(start.size - 1):
        for k in range(start[t], start[t + 1]):
            v = scope[k]
            for other in range(start[t], start[t + 1]):
                if other != k:
                    lists[first[v] + degree[v]] = scope[other]
                    degree[v] += 1
    seen = np.full(size, -1, dtype=np.int64)
    for v in range(size):
        kept = 0
        for k in range(first[v], first[v] + degree[v]):
            u = lists[k]
            if seen[u] != v:
                seen[u] = v
                lists[first[v] + kept] = u
                kept += 1
        degree[v] = kept
    return first, degree, lists


@njit(cache=True, error_model="numpy")
def _compact(v, first, used, lists, gone):
    """Takes those who are gone out of the list of v."""
    kept = 0
    for k in range(first[v], first[v] + used[v]):
        if not gone[lists[k]]:
            lists[first[v] + kept] = lists[k]
            kept += 1
    used[v] = kept


@njit(cache=True, error_model="numpy")
def strip(first, degree, lists, states, order):
    """Eliminates variables with one neighbour, and those with two that have no more states than a neighbour.

    Lists are cleaned only when they are read or full, so that a hub of many leaves costs no more than its edges.

    Args:
        first, degree, lists: of `neighbours`; left as those of the core.
        states: (n,) int64.
        order: (n,) int64, gets what was eliminated.

    Returns:
        count of those eliminated, which are gone (n,), width, log2 of the largest clique, entries in all (float).
    """
    n = states.size
    gone = np.zeros(n, dtype=np.bool_)
    used = degree.copy()
    leaves, pairs = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    waiting_leaves = waiting_pairs = count = width = 0
    largest = total = 0.0
    for v in range(n):
        if degree[v] <= 1:
            leaves[waiting_leaves] = v
            waiting_leaves += 1
        elif degree[v] == 2:
            pairs[waiting_pairs] = v
            waiting_pairs += 1
    while waiting_leaves or waiting_pairs:
        if waiting_leaves:
            waiting_leaves -= 1
            v = leaves[waiting_leaves]
        else:
            waiting_pairs -= 1
            v = pairs[waiting_pairs]
        if gone[v]:
            continue
        _compact(v, first, used, lists, gone)
        nearby = lists[first[v] : first[v] + used[v]]
        entries = float(states[v])
        for u in nearby:
            entries *= states[u]
        closes = False  # whether the two neighbours are neighbours already
        if nearby.size == 2:
            a, b = nearby[0], nearby[1]
            if used[a] > used[b]:
                a, b = b, a
            _compact(a, first, used, lists, gone)
            for k in range(first[a], first[a] + used[a]):
                if lists[k] == b:
                    closes = True
                    break
            if not closes and states[v] < min(states[a], states[b]):
                continue
        gone[v] = True
        order[count] = v
        count += 1
        width = max(width, nearby.size)
        largest = max(largest, np.log2(entries))
        total += entries
        for k in range(nearby.size):
            u = nearby[k]
            if nearby.size == 2 and not closes:
                if first[u] + used[u] == first[u + 1]:
                    _compact(u, first, used, lists, gone)
                lists[first[u] + used[u]] = nearby[1 - k]
                used[u] += 1
                continue
            degree[u] -= 1
            if degree[u] == 1:
                leaves[waiting_leaves] = u
                waiting_leaves += 1
            elif degree[u] == 2:
                pairs[waiting_pairs] = u
                waiting_pairs += 1
    for v in range(n):
        if not gone[v]:
            _compact(v, first, used, lists, gone)
    return count, gone, width, largest, total
