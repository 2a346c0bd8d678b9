"""Min-fill in compiled code; Numba is loaded with this module, and only where it is needed.

`min_fill` orders vertices on a matrix of adjacency bits: adding a fill edge costs a pass over two of its rows, which
updates the counts of missing edges of all that it touches, so nothing is counted anew.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from spinbench.reference.network import IntArray

ONE = np.uint64(1)
COMPILED: dict[str, Any] = {"cache": True, "error_model": "numpy"}


class Graph(NamedTuple):
    """What is left of a graph of m vertices.

    Attributes:
        bits: (m, ⌈m / 64⌉) uint64 adjacency bits.
        weight: (m,) log2 of the numbers of states in units of 2^-20.
        degree: (m,) numbers of neighbours.
        size: (m,) log2 of the clique that elimination would meet, in the same units.
        fill: (m,) edges that elimination would add.
    """

    bits: npt.NDArray[np.uint64]
    weight: IntArray
    degree: IntArray
    size: IntArray
    fill: IntArray


@njit(**COMPILED)
def count_ones(word):  # type: ignore[no-untyped-def]
    """Of a uint64."""
    word -= (word >> ONE) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(**COMPILED)
def members(row, near):  # type: ignore[no-untyped-def]
    """Writes the set bits of a row into `near`, and returns their number."""
    found = 0
    for word in range(row.size):
        rest = row[word]
        while rest:
            lowest = rest & (~rest + ONE)
            near[found] = 64 * word + count_ones(lowest - ONE)
            found += 1
            rest ^= lowest
    return found


@njit(**COMPILED)
def is_edge(u, w, bits):  # type: ignore[no-untyped-def]
    return bits[u, w >> 6] >> np.uint64(w & 63) & ONE


@njit(**COMPILED)
def new_graph(bits, weight):  # type: ignore[no-untyped-def]
    """The whole graph; `near` is room for the neighbours of one."""
    m = weight.size
    near = np.empty(m, dtype=np.int64)
    graph = Graph(bits, weight, np.zeros(m, np.int64), weight.copy(), np.zeros(m, np.int64))
    for v in range(m):
        graph.degree[v] = members(bits[v], near)
        for a in range(graph.degree[v]):
            graph.size[v] += weight[near[a]]
            for b in range(a):
                if not is_edge(near[a], near[b], bits):
                    graph.fill[v] += 1
    return graph


@njit(**COMPILED)
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


@njit(**COMPILED)
def remove(v, near, graph):  # type: ignore[no-untyped-def]
    """Takes v from its neighbours."""
    for u in near:
        graph.bits[u, v >> 6] &= ~(ONE << np.uint64(v & 63))
        graph.degree[u] -= 1
        graph.size[u] -= graph.weight[v]
        for word in range(graph.bits.shape[1]):  # pairs (v, t) with t near u alone
            graph.fill[u] -= count_ones(graph.bits[u, word] & ~graph.bits[v, word])


@njit(**COMPILED)
def connect(u, w, graph, both, near):  # type: ignore[no-untyped-def]
    """Adds an edge; it spares each common neighbour one. `both` and `near` are room for a row and its members."""
    for word in range(both.size):
        both[word] = graph.bits[u, word] & graph.bits[w, word]
    common = members(both, near)
    for t in near[:common]:
        graph.fill[t] -= 1
    graph.fill[u] += graph.degree[u] - common
    graph.fill[w] += graph.degree[w] - common
    graph.bits[u, w >> 6] |= ONE << np.uint64(w & 63)
    graph.bits[w, u >> 6] |= ONE << np.uint64(u & 63)
    graph.degree[u] += 1
    graph.degree[w] += 1
    graph.size[u] += graph.weight[w]
    graph.size[w] += graph.weight[u]


@njit(**COMPILED)
def min_fill(bits, weight, random, order):  # type: ignore[no-untyped-def]
    """Writes the order of m vertices, least fill first, then least clique, then at random; `bits` is used up."""
    m = weight.size
    graph, alive = new_graph(bits, weight), np.arange(m)
    near, both, common = np.empty(m, np.int64), np.empty(bits.shape[1], np.uint64), np.empty(m, np.int64)
    random = random * np.uint64(0x9E3779B97F4A7C15) | ONE
    for step in range(m):
        chosen, random = choose(alive[: m - step], graph, random)
        v = alive[chosen]
        alive[chosen] = alive[m - step - 1]
        order[step] = v
        around = near[: members(bits[v], near)]
        remove(v, around, graph)
        for a in range(around.size):
            for w in around[a + 1 :]:
                if not is_edge(around[a], w, bits):
                    connect(around[a], w, graph, both, common)
