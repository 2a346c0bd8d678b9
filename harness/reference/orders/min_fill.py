"""Min-fill elimination orders in compiled code, for machines where goatd has no wheel, and what goes first at no loss.

Variables of one neighbour or none, and those in series, never raise the least width when they go first (Bodlaender,
Koster, van den Eijkhof, "Preprocessing rules for triangulation of probabilistic networks", 2005).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spinbench.reference.network import IntArray

MAX_CORE = 30_000
"""Variables after which the bits of all pairs would take more than 100 MiB; beyond, their numbering is the order."""


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
    from spinbench.reference.orders import kernels

    states = np.asarray(cardinalities, dtype=np.int64)
    lists = kernels.adjacency_lists(states.size, np.ascontiguousarray(pairs, dtype=np.int64))
    order = np.empty(states.size, dtype=np.int64)
    count = kernels.strip(lists, states, order)
    core = np.flatnonzero(~lists.eliminated)
    place = np.full(states.size, -1, dtype=np.int64)
    place[core] = np.arange(core.size)
    ends = [place[lists.members[lists.first[v] : lists.first[v] + lists.used[v]]] for v in core.tolist()]
    heads = np.repeat(np.arange(core.size), [len(each) for each in ends])
    tails = np.concatenate([np.empty(0, dtype=np.int64), *ends])
    return Stripped(order[:count], core, np.stack([heads, tails], axis=1)[heads < tails])


def min_fill_order(cardinalities: Sequence[int], pairs: IntArray, seed: int) -> list[int]:
    """An order in which each variable adds the fewest edges, of those the smallest clique, then at random.

    Args:
        cardinalities: of the variables.
        pairs: (E, 2) variables that share a table.
        seed: of the ties.
    """
    from spinbench.reference.orders import kernels

    first = strip(cardinalities, pairs)
    size = first.core.size
    if not size or size > MAX_CORE:
        return [*first.order.tolist(), *first.core.tolist()]
    bits = np.zeros((size, (size + 63) // 64), dtype=np.uint64)
    for u, v in (first.pairs.T, first.pairs[:, ::-1].T):
        np.bitwise_or.at(bits, (u, v >> 6), np.uint64(1) << (v & 63).astype(np.uint64))
    weights = np.round(np.log2(np.asarray(cardinalities)[first.core]) * 2**20).astype(np.int64)
    order = np.empty(size, dtype=np.int64)
    kernels.min_fill(bits, weights, np.uint64(2 * seed + 1), order)
    return [*first.order.tolist(), *first.core[order].tolist()]
