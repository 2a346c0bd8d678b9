"""Min-fill elimination orders in compiled code, for machines where goatd has no wheel.

Variables of one neighbour or none, and those in series, go first, in Python: that never raises the least width
(Bodlaender, Koster, van den Eijkhof, "Preprocessing rules for triangulation of probabilistic networks", 2005). The rest
is a matrix of adjacency bits. Adding a fill edge costs a pass over two of its rows, which updates the counts of missing
edges of all that it touches, so nothing is counted anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from spinbench.reference.network import IntArray
from spinbench.reference.orders.plan import neighbours

MAX_CORE = 30_000
"""Variables after which the bits of all pairs would take more than 100 MiB; beyond, their numbering is the order."""


def min_fill_order(cardinalities: Sequence[int], pairs: IntArray, seed: int) -> list[int]:
    """An order in which each variable adds the fewest edges, of those the smallest clique, then at random.

    Args:
        cardinalities: of the variables.
        pairs: (E, 2) variables that share a table.
        seed: of the ties.
    """
    near = neighbours(len(cardinalities), pairs)
    order, core = _simplicial_first(near, cardinalities)
    if len(core) > MAX_CORE or not core:
        return order + core
    place = {v: k for k, v in enumerate(core)}
    bits = np.zeros((len(core), (len(core) + 63) // 64), dtype=np.uint64)
    for k, v in enumerate(core):
        for u in near[v]:
            bits[k, place[u] >> 6] |= np.uint64(1 << (place[u] & 63))
    weights = np.round(np.log2([cardinalities[v] for v in core]) * 2**20).astype(np.int64)
    ranks = np.empty(len(core), dtype=np.int64)
    _compiled()(bits, weights, np.uint64(2 * seed + 1), ranks)
    return order + [core[k] for k in ranks.tolist()]


def _simplicial_first(near: list[set[int]], cardinalities: Sequence[int]) -> tuple[list[int], list[int]]:
    """What can go first without loss, in order, and the rest; `near` becomes the adjacency of the rest."""
    leaves = [v for v, around in enumerate(near) if len(around) <= 1]
    series = [v for v, around in enumerate(near) if len(around) == 2]
    order: list[int] = []
    removed = [False] * len(near)
    while leaves or series:
        v = leaves.pop() if leaves else series.pop()  # leaves first, or a tree would not get width 1
        if removed[v] or len(near[v]) > 2:
            continue
        if len(near[v]) == 2:
            a, b = near[v]
            if b not in near[a] and cardinalities[v] < min(cardinalities[a], cardinalities[b]):
                continue
            near[a].add(b)
            near[b].add(a)
        removed[v] = True
        order.append(v)
        for u in near[v]:
            near[u].discard(v)
            if len(near[u]) <= 2:
                (series if len(near[u]) == 2 else leaves).append(u)
        near[v] = set()
    return order, [v for v, gone in enumerate(removed) if not gone]


class Graph(NamedTuple):
    """What is left of a graph of m vertices.

    Attributes:
        bits: (m, ⌈m / 64⌉) uint64 adjacency bits.
        weight: (m,) log2 of the numbers of states in units of 2^-20.
        degree: (m,) numbers of neighbours.
        size: (m,) log2 of the clique that elimination would meet, in the same units.
        fill: (m,) edges that elimination would add.
    """

    bits: Any
    weight: IntArray
    degree: IntArray
    size: IntArray
    fill: IntArray


@cache
def _compiled() -> Callable[..., None]:
    """The greedy elimination, compiled on first use; Numba is loaded here, where goatd is missing."""
    from numba import njit

    one = np.uint64(1)

    @njit(error_model="numpy")
    def count(word):  # type: ignore[no-untyped-def]
        """Ones of a uint64."""
        word -= (word >> one) & np.uint64(0x5555555555555555)
        word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
        word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
        return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))

    @njit(error_model="numpy")
    def members(row, near):  # type: ignore[no-untyped-def]
        """Writes the set bits of a row into `near`, and returns their number."""
        found = 0
        for word in range(row.size):
            rest = row[word]
            while rest:
                lowest = rest & (~rest + one)
                near[found] = 64 * word + count(lowest - one)
                found += 1
                rest ^= lowest
        return found

    @njit(error_model="numpy")
    def missing(bits, near):  # type: ignore[no-untyped-def]
        """Pairs of these vertices that are no edge."""
        found = np.int64(0)
        for a in range(near.size):
            for u in near[a + 1 :]:
                found += 1 - np.int64(bits[near[a], u >> 6] >> np.uint64(u & 63) & one)
        return found

    @njit(error_model="numpy")
    def choose(alive, graph, random):  # type: ignore[no-untyped-def]
        """Where in `alive` the vertex of least fill stands, and the next random state (xorshift)."""
        best, tied, chosen = np.int64(2**62), 0, 0
        for k in range(alive.size):
            score = (graph.fill[alive[k]] << 32) + graph.size[alive[k]]
            if score < best:
                best, tied, chosen = score, 1, k
            elif score == best:
                tied += 1
                random ^= random << np.uint64(13)
                random ^= random >> np.uint64(7)
                random ^= random << np.uint64(17)
                if (random >> np.uint64(11)) % np.uint64(tied) == 0:
                    chosen = k
        return chosen, random

    @njit(error_model="numpy")
    def remove(v, near, graph):  # type: ignore[no-untyped-def]
        """Takes v from its neighbours."""
        for u in near:
            graph.bits[u, v >> 6] &= ~(one << np.uint64(v & 63))
            graph.degree[u] -= 1
            graph.size[u] -= graph.weight[v]
            for word in range(graph.bits.shape[1]):  # pairs (v, t) with t near u alone
                graph.fill[u] -= count(graph.bits[u, word] & ~graph.bits[v, word])

    @njit(error_model="numpy")
    def connect(u, w, graph, shared):  # type: ignore[no-untyped-def]
        """Adds an edge; it spares each common neighbour one. `shared` is work, a row of bits and then vertices."""
        both, near = shared
        for word in range(both.size):
            both[word] = graph.bits[u, word] & graph.bits[w, word]
        common = members(both, near)
        for t in near[:common]:
            graph.fill[t] -= 1
        graph.fill[u] += graph.degree[u] - common
        graph.fill[w] += graph.degree[w] - common
        graph.bits[u, w >> 6] |= one << np.uint64(w & 63)
        graph.bits[w, u >> 6] |= one << np.uint64(u & 63)
        graph.degree[u] += 1
        graph.degree[w] += 1
        graph.size[u] += graph.weight[w]
        graph.size[w] += graph.weight[u]

    @njit(error_model="numpy")
    def eliminate(bits, weight, random, order):  # type: ignore[no-untyped-def]
        """Writes the order of m vertices; `bits` is used up."""
        m = weight.size
        near, shared = np.empty(m, np.int64), (np.empty(bits.shape[1], np.uint64), np.empty(m, np.int64))
        graph = Graph(bits, weight, np.zeros(m, np.int64), weight.copy(), np.zeros(m, np.int64))
        for v in range(m):
            graph.degree[v] = members(bits[v], near)
            graph.fill[v] = missing(bits, near[: graph.degree[v]])
            for u in near[: graph.degree[v]]:
                graph.size[v] += weight[u]
        alive = np.arange(m)
        random = random * np.uint64(0x9E3779B97F4A7C15) | one
        for step in range(m):
            chosen, random = choose(alive[: m - step], graph, random)
            v = alive[chosen]
            alive[chosen] = alive[m - step - 1]
            order[step] = v
            around = near[: members(bits[v], near)].copy()
            remove(v, around, graph)
            for a in range(around.size):
                for w in around[a + 1 :]:
                    if not bits[around[a], w >> 6] >> np.uint64(w & 63) & one:
                        connect(around[a], w, graph, shared)

    return eliminate
