"""Compiled loops of the search for elimination orders; Numba is loaded with this module, and only where it is needed.

`strip` eliminates variables of one neighbour or none, and those in series, in time linear in the edges. `min_fill`
orders the rest on a matrix of adjacency bits: adding a fill edge costs a pass over two of its rows, which updates the
counts of missing edges of all that it touches, so nothing is counted anew.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from spinbench.reference.network import IntArray

ONE = np.uint64(1)
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
