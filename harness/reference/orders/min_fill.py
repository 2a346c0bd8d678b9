"""What goes first at no loss, and min-fill elimination orders for machines where goatd has no wheel.

Variables of one neighbour or none, and those in series, never raise the least width when they go first (Bodlaender,
Koster, van den Eijkhof, "Preprocessing rules for triangulation of probabilistic networks", 2005).
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spinbench.reference.network import IntArray
from spinbench.reference.orders.plan import neighbours

MAX_CORE = 30_000
"""Variables after which the bits of all pairs would take more than 100 MiB; beyond, their numbering is the order."""
MAX_CLIQUE = 150.0
"""log2 of the entries of a clique from which on the numbering does as well: all orders are out of reach."""


class Stripped(NamedTuple):
    """What went first, and the rest.

    Attributes:
        order: variables that went first.
        core: variables that are left, ascending.
        pairs: (E, 2) neighbours among these, by their places in `core`.
    """

    order: list[int]
    core: list[int]
    pairs: IntArray


def strip(cardinalities: Sequence[int], pairs: IntArray) -> Stripped:
    """Takes off what can go first, in time linear in the pairs; of those in series, who has no more states than a
    neighbour.

    Args:
        cardinalities: of the variables.
        pairs: (E, 2) variables that share a table.
    """
    near = neighbours(len(cardinalities), pairs)
    leaves = [v for v, around in enumerate(near) if len(around) < 2]
    in_series = [v for v, around in enumerate(near) if len(around) == 2]
    order: list[int] = []
    gone = bytearray(len(near))
    while leaves or in_series:
        v = (leaves or in_series).pop()  # leaves first, or a tree would not get width 1
        if gone[v]:
            continue
        around = near[v]
        if len(around) == 2:
            left, right = around
            if right not in near[left]:
                if cardinalities[v] < min(cardinalities[left], cardinalities[right]):
                    continue
                near[left].add(right)
                near[right].add(left)
        order.append(v)
        gone[v] = 1
        for u in around:
            near[u].discard(v)
            if len(near[u]) <= 2:
                (in_series if len(near[u]) == 2 else leaves).append(u)
    core = [v for v in range(len(near)) if not gone[v]]
    place = {v: k for k, v in enumerate(core)}
    left_over = [(place[u], place[v]) for u in core for v in sorted(near[u]) if u < v]
    return Stripped(order, core, np.array(left_over, dtype=np.int64).reshape(-1, 2))


def min_fill_order(cardinalities: Sequence[int], pairs: IntArray, seed: int) -> list[int]:
    """An order in which each variable adds the fewest edges, of those the smallest clique, then at random.

    Args:
        cardinalities: of the variables.
        pairs: (E, 2) variables that share a table.
        seed: of the ties.
    """
    first, ties = strip(cardinalities, pairs), random.Random(seed)
    if len(first.core) > MAX_CORE:
        return first.order + first.core
    logs = np.log2([cardinalities[v] for v in first.core]).tolist()
    near = neighbours(len(first.core), first.pairs)
    bits = [sum(1 << u for u in around) for around in near]  # which are counted faster than sets are intersected

    def score(v: int) -> tuple[int, float, float]:
        missing = sum((bits[v] & ~bits[u]).bit_count() - 1 for u in near[v])
        return missing, logs[v] + sum(logs[u] for u in near[v]), ties.random()

    scores = {v: score(v) for v in range(len(near))}
    queue = [(each, v) for v, each in scores.items()]
    heapq.heapify(queue)
    order = dict[int, None]()
    while queue:
        best, v = heapq.heappop(queue)
        if scores.get(v) != best:
            continue
        if best[1] > MAX_CLIQUE:
            break
        del scores[v]
        order[v] = None
        beyond = {t for u in near[v] for t in near[u] if t in scores and (bits[t] & bits[v]).bit_count() > 1}
        for u in near[v]:
            near[u] = (near[u] | near[v]) - {u, v}
            bits[u] = (bits[u] | bits[v]) & ~(1 << u | 1 << v)
        for u in sorted(near[v] | beyond):
            scores[u] = score(u)
            heapq.heappush(queue, (scores[u], u))
    return [*first.order, *(first.core[v] for v in [*order, *scores])]
