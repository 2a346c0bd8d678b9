"""Min-fill in compiled code; Numba is loaded with this module, and only where it is needed.

`min_fill` orders vertices on a matrix of adjacency bits: adding a fill edge costs a pass over two of its rows, which
updates the counts of missing edges of all that it touches, so nothing is counted anew. The edges of the graph itself
are added in the same way.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from spinbench.reference.network import IntArray

ONE = np.uint64(1)
# Fill of an eliminated vertex, larger than any other.
GONE = 2**30
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
def count_ones(bits):  # type: ignore[no-untyped-def]
    """Of a uint64."""
    bits -= (bits >> ONE) & np.uint64(0x5555555555555555)
    bits = (bits & np.uint64(0x3333333333333333)) + ((bits >> np.uint64(2)) & np.uint64(0x3333333333333333))
    bits = (bits + (bits >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((bits * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(**COMPILED)
def members(row, near):  # type: ignore[no-untyped-def]
    """Writes the set bits of a row into `near`, and returns their number."""
    count = 0
    for w in range(row.size):
        rest = row[w]
        while rest:
            lowest = rest & (~rest + ONE)
            near[count] = 64 * w + count_ones(lowest - ONE)
            count += 1
            rest ^= lowest
    return count


@njit(**COMPILED)
def remove(v, near, graph):  # type: ignore[no-untyped-def]
    """Takes v from its neighbours."""
    for u in near:
        graph.bits[u, v >> 6] &= ~(ONE << np.uint64(v & 63))
        graph.degree[u] -= 1
        graph.size[u] -= graph.weight[v]
        # Pairs (v, t) with t a neighbour of u only.
        for w in range(graph.bits.shape[1]):
            graph.fill[u] -= count_ones(graph.bits[u, w] & ~graph.bits[v, w])


@njit(**COMPILED)
def connect(u, w, graph, both, near):  # type: ignore[no-untyped-def]
    """Adds an edge; it spares each common neighbour one. `both` and `near` are room for a row and its members."""
    for k in range(both.size):
        both[k] = graph.bits[u, k] & graph.bits[w, k]
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
def min_fill(pairs, weight, order):  # type: ignore[no-untyped-def]
    """Writes the order of m vertices, least fill first, then least clique, then least number.

    Args:
        pairs: (E, 2) int64 neighbours, each pair once.
        weight: (m,) as in `Graph`.
        order: (m,) int64.
    """
    m = weight.size
    none = np.zeros(m, np.int64)
    graph = Graph(np.zeros((m, (m + 63) // 64), np.uint64), weight, none, weight.copy(), none.copy())
    near, both, common = np.empty(m, np.int64), np.empty(graph.bits.shape[1], np.uint64), np.empty(m, np.int64)
    for u, w in pairs:
        connect(u, w, graph, both, common)
    for step in range(m):
        v = np.argmin((graph.fill << 32) + graph.size)
        order[step] = v
        around = near[: members(graph.bits[v], near)]
        remove(v, around, graph)
        graph.fill[v] = GONE
        for a in range(around.size):
            for w in around[a + 1 :]:
                if not graph.bits[around[a], w >> 6] >> np.uint64(w & 63) & ONE:
                    connect(around[a], w, graph, both, common)
