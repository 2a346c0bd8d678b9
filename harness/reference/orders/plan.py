"""The elimination tree along an order: each bucket's separator, where its message goes, and when messages are held.

Buckets are named by their positions in the order. The separator of a bucket is what its message is over; the message
goes to the bucket of the separator's least position, its parent (symbolic factorisation: Liu, "The role of elimination
trees in sparse factorization", 1990).

Orders that need no search are here, too: along the rows of a lattice, which keep the frontier of a long strip narrow;
what goes first at no loss, as variables of one neighbour or none, and those in series, never raise the least width when
they go first (Bodlaender, Koster, van den Eijkhof, "Preprocessing rules for triangulation of probabilistic networks",
2005); and min-fill in compiled code, for machines where goatd has no wheel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from spinbench.foundation.folders import numba_settings
from spinbench.reference.network import IntArray

# Largest number of rounds that remove vertices of low degree.
_ROUNDS = 100
# Largest number of variables: above it the bits of all pairs would take more than 100 MiB, and the variables' numbering
# serves as order.
MAX_CORE = 30_000


def neighbours(size: int, pairs: IntArray) -> list[set[int]]:
    """Of each of `size` variables, those that share a table with it."""
    near: list[set[int]] = [set() for _ in range(size)]
    for u, v in pairs.tolist():
        near[u].add(v)
        near[v].add(u)
    return near


def separators(order: IntArray, pairs: IntArray) -> Iterator[set[int]]:
    """The separator of each bucket, as positions.

    Args:
        order: (n,) variables; others are given.
        pairs: (E, 2) variables that share a table.
    """
    position = np.full(max(order.max(initial=-1), pairs.max(initial=-1)) + 1, -1)
    position[order] = np.arange(len(order))
    ends = np.sort(position[pairs], axis=1)
    ends = ends[ends[:, 0] >= 0]
    near: list[set[int]] = [set() for _ in range(len(order))]
    for first, second in zip(ends[:, 0].tolist(), ends[:, 1].tolist(), strict=True):
        near[first].add(second)
    for p, separator in enumerate(near):
        if separator:
            parent = min(separator)
            near[parent] |= separator
            near[parent].discard(parent)
        yield separator
        near[p] = set()


def depth_first(order: IntArray, cardinalities: Sequence[int], pairs: IntArray) -> IntArray:
    """The same buckets in the order that holds the fewest entries of messages at once, parents behind their children.

    Of two subtrees that one goes first whose peak is higher above what it leaves (Liu, "On the storage requirement in
    the out-of-core multifrontal method", 1986).
    """
    states = [float(cardinalities[v]) for v in order.tolist()]
    children: list[list[int]] = [[] for _ in states]
    message, peak = [1.0] * len(states), [0.0] * len(states)
    roots: list[int] = []
    for p, separator in enumerate(separators(order, pairs)):
        for q in separator:
            message[p] = min(message[p] * states[q], 1e300)
        (children[min(separator)] if separator else roots).append(p)
        children[p].sort(key=lambda child: message[child] - peak[child])
        stored = top = 0.0
        for child in children[p]:
            top = max(top, stored + peak[child])
            stored += message[child]
        peak[p] = max(top, stored + message[p])
    waiting = sorted(roots, key=lambda root: message[root] - peak[root])
    backwards = []
    while waiting:
        p = waiting.pop()
        backwards.append(p)
        waiting += children[p]
    return order[backwards[::-1]]


def place_messages(sizes: Sequence[int], parents: Sequence[int]) -> tuple[list[int], int]:
    """Where each message goes in one array whose places are used again, first fit, and the array's length.

    Args:
        sizes: entries of the message of each bucket.
        parents: the bucket that takes it, after which its place is free; -1: none.
    """
    free = [(0, 2**62)]  # free intervals (begin, end), ascending
    offsets, length = [0] * len(sizes), 0
    children: list[list[int]] = [[] for _ in sizes]
    for p, (size, parent) in enumerate(zip(sizes, parents, strict=True)):
        at = next(k for k, (begin, end) in enumerate(free) if end - begin >= size)
        begin, end = free[at]
        free[at : at + 1] = [(begin + size, end)] if begin + size < end else []
        offsets[p], length = begin, max(length, begin + size)
        if parent >= 0:
            children[parent].append(p)
        free = _merge_intervals(sorted([*free, *((offsets[c], offsets[c] + sizes[c]) for c in children[p])]))
    return offsets, length


def _merge_intervals(intervals: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for begin, end in intervals:
        if merged and merged[-1][1] == begin:
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((begin, end))
    return merged


def least_width(size: int, pairs: IntArray, enough: int) -> int:
    """A lower bound on the width of all elimination orders, or 0 where there is none of at least `enough`.

    It is the least degree in a subgraph, since the first variable of the subgraph that goes meets all its neighbours
    there (Koster, Wolle, Bodlaender, "Degree-based treewidth lower bounds", 2005). Linear in the edges a round.
    """
    for _ in range(_ROUNDS):
        if 2 * len(pairs) < enough * (enough + 1):
            return 0
        degree = np.bincount(pairs.ravel(), minlength=size)
        least = int(degree[degree > 0].min())
        if least >= enough:
            return least
        pairs = pairs[(degree[pairs] >= enough).all(axis=1)]
    return 0


def row_orders(size: int, pairs: IntArray) -> Iterator[list[int]]:
    """Along the numbering, and a reverse Cuthill-McKee order; SciPy's takes a fifth of a second to import.

    Args:
        size: number of variables.
        pairs: (E, 2) variables that share a table.
    """
    yield list(range(size))
    near, levels = neighbours(size, pairs), dict[int, int]()
    for v in range(size):
        if v not in levels:
            levels |= breadth_first(near, list(breadth_first(near, v))[-1])
    yield list(levels)[::-1]


def breadth_first(near: Sequence[set[int]], start: int) -> dict[int, int]:
    """Steps from `start` to each vertex in reach, of the neighbours of each first to those that have few themselves."""
    steps, waiting = {start: 0}, [start]
    for v in waiting:  # the list grows during the loop
        fresh = sorted((u for u in near[v] if u not in steps), key=lambda u: len(near[u]))
        waiting += fresh
        steps |= dict.fromkeys(fresh, steps[v] + 1)
    return steps


class Stripped(NamedTuple):
    """What went first, and the rest.

    Attributes:
        order: int64 variables that went first.
        core: int64 variables that are left, ascending.
        pairs: (E, 2) neighbours among these, by their places in `core`.
    """

    order: IntArray
    core: IntArray
    pairs: IntArray


def strip(cardinalities: Sequence[int], pairs: IntArray) -> Stripped:
    """Takes off what can go first, in time linear in the pairs; of those in series, who has no more states than a
    neighbour.

    Args:
        cardinalities: of the variables.
        pairs: (E, 2) variables that share a table, without repetitions.
    """
    near = neighbours(len(cardinalities), pairs)
    leaves = [v for v, ends in enumerate(near) if len(ends) < 2]
    series = [v for v, ends in enumerate(near) if len(ends) == 2]
    order = dict[int, None]()
    while leaves or series:
        # Leaves first: otherwise a tree would not get width 1.
        v = (leaves or series).pop()
        ends = list(near[v])
        joins = len(ends) == 2 and ends[1] not in near[ends[0]]
        if v in order or (joins and cardinalities[v] < min(cardinalities[u] for u in ends)):
            continue
        order[v] = None
        for u in ends:
            near[u].remove(v)
            if joins:
                near[u].update(set(ends) - {u})
            elif len(near[u]) <= 2:
                (series if len(near[u]) == 2 else leaves).append(u)
    core = [v for v in range(len(near)) if v not in order]
    place = {v: k for k, v in enumerate(core)}
    left = [(place[v], place[u]) for v in core for u in near[v] if v < u]
    return Stripped(
        np.array([*order], dtype=np.int64),
        np.array(core, dtype=np.int64),
        np.array(left, dtype=np.int64).reshape(-1, 2),
    )


def min_fill_order(cardinalities: Sequence[int], pairs: IntArray, seed: int) -> list[int]:
    """An order in which each variable adds the fewest edges, of those the smallest clique, then at random.

    Args:
        cardinalities: of the variables.
        pairs: (E, 2) variables that share a table, without repetitions.
        seed: of the ties.
    """
    size = len(cardinalities)
    if size > MAX_CORE:
        return list(range(size))
    numba_settings()
    from spinbench.reference.orders import kernels

    names = np.random.default_rng(seed).permutation(size)
    weights = np.round(np.log2(np.asarray(cardinalities)[names]) * 2**20).astype(np.int64)
    order = np.empty(size, dtype=np.int64)
    kernels.min_fill(np.argsort(names)[pairs], weights, order)
    return [int(v) for v in names[order]]
