"""Compiled search for elimination orders (`spinbench.backends.numba.exact.order_search` drives it).

`strip_kernels` takes off what can go first; `greedy` orders the rest by a rule, ties and near ties at random. Its limit
is the number of fill edges: adding one costs a pass over two rows of bits, which updates the counts of missing edges of
all that it touches, so nothing is ever counted anew.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from spinbench.backends.numba.exact.options import ALLOCATES, ONCE, SHARED
from spinbench.reference.network import IntArray

FIXED, WEIGHT, FILL = range(3)
ONE = np.uint64(1)


class Graph(NamedTuple):
    """What is left of a graph of m nodes.

    Attributes:
        bits: (m, ⌈m / 64⌉) uint64 adjacency bits.
        weight: (m,) log2 of the numbers of states in units of 2^-20.
        degree: (m,) numbers of neighbours.
        size: (m,) log2 of the clique that eliminating would meet, in the same units.
        fill: (m,) edges that eliminating would add; kept for FILL alone.
    """

    bits: npt.NDArray[np.uint64]
    weight: IntArray
    degree: IntArray
    size: IntArray
    fill: IntArray


@intrinsic
def _ones(typing_context, bits):
    """Number of ones of a uint64."""

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@intrinsic
def _lowest(typing_context, bits):
    """Position of the lowest one of a uint64 that is not 0."""

    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@njit(**ALLOCATES)
def adjacency_bits(core, first, degree, lists):
    """(m, ⌈m / 64⌉) uint64 rows of adjacency bits of the core (m,)."""
    place = np.empty(degree.size, dtype=np.int64)
    for k in range(core.size):
        place[core[k]] = k
    bits = np.zeros((core.size, (core.size + 63) // 64), dtype=np.uint64)
    for k in range(core.size):
        v = core[k]
        for at in range(first[v], first[v] + degree[v]):
            u = place[lists[at]]
            bits[k, u >> 6] |= np.uint64(1) << np.uint64(u & 63)
    return bits


@njit(**ONCE)
def _missing(bits, v):
    """Edges that eliminating v would add."""
    missing = 0
    for word in range(bits.shape[1]):
        rest = bits[v, word]
        while rest:
            u = 64 * word + _lowest(rest)
            rest &= rest - ONE
            for k in range(bits.shape[1]):
                missing += _ones(bits[v, k] & ~bits[u, k])
            missing -= 1  # u itself
    return missing // 2


@njit(**ONCE)
def _graph(start, weight, rule):
    """The whole graph, and operations done."""
    m = weight.size
    found = Graph(start.copy(), weight, np.zeros(m, dtype=np.int64), weight.copy(), np.zeros(m, dtype=np.int64))
    near = np.empty(m, dtype=np.int64)
    work = 0
    for v in range(m):
        found.degree[v] = _members(found.bits, v, near)
        for u in near[: found.degree[v]]:
            found.size[v] += weight[u]
        if rule == FILL:
            found.fill[v] = _missing(found.bits, v)
            work += found.degree[v] * start.shape[1]
    return found, work


@njit(**SHARED)
def _members(bits, v, near):
    """Writes the neighbours of v into `near`, and returns their number."""
    count = 0
    for word in range(bits.shape[1]):
        rest = bits[v, word]
        while rest:
            near[count] = 64 * word + _lowest(rest)
            count += 1
            rest &= rest - ONE
    return count


@njit(**ONCE)
def _choose(alive, graph, rule, rank, slack, random):
    """Where in `alive` what scores least stands, ties and near ties at random, and the next state of `random`."""
    best, tied, chosen = np.int64(2**62), 0, 0
    loose = slack if rule == FILL and slack > 0 else 0
    for k in range(alive.size):
        v = alive[k]
        if rule == FIXED:
            score = rank[v]
        elif rule == WEIGHT:
            score = graph.size[v]
        elif slack == 0:
            score = (graph.fill[v] << 32) + graph.size[v]
        else:
            score = graph.fill[v]
        if score < best - loose:
            best, tied, chosen = score, 1, k
        elif score <= best + loose:
            best = min(best, score)
            tied += 1
            random ^= random << np.uint64(13)
            random ^= random >> np.uint64(7)
            random ^= random << np.uint64(17)
            if (random >> np.uint64(11)) % np.uint64(tied) == 0:
                chosen = k
    return chosen, random


@njit(**ONCE)
def _leave(v, near, graph, rule):
    """Takes v from its neighbours."""
    bits = graph.bits
    word_of_v, bit = v >> 6, ONE << np.uint64(v & 63)
    for u in near:
        bits[u, word_of_v] &= ~bit
        graph.degree[u] -= 1
        graph.size[u] -= graph.weight[v]
        if rule == FILL:  # pairs (v, t) with t near u alone
            for word in range(bits.shape[1]):
                graph.fill[u] -= _ones(bits[u, word] & ~bits[v, word])


@njit(**ONCE)
def _connect(near, graph, rule):
    """Joins all pairs of neighbours of one that left. Returns the operations done."""
    bits, work = graph.bits, 0
    for a in range(near.size):
        u = near[a]
        for w in near[a + 1 :]:
            if bits[u, w >> 6] >> np.uint64(w & 63) & ONE:
                continue
            if rule == FILL:
                common = _common(u, w, graph)
                graph.fill[u] += graph.degree[u] - common
                graph.fill[w] += graph.degree[w] - common
                work += bits.shape[1] + common
            bits[u, w >> 6] |= ONE << np.uint64(w & 63)
            bits[w, u >> 6] |= ONE << np.uint64(u & 63)
            graph.degree[u] += 1
            graph.degree[w] += 1
            graph.size[u] += graph.weight[w]
            graph.size[w] += graph.weight[u]
    return work


@njit(**ONCE)
def _common(u, w, graph):
    """Neighbours of both u and w, which an edge between them spares one."""
    common = 0
    for word in range(graph.bits.shape[1]):
        both = graph.bits[u, word] & graph.bits[w, word]
        common += _ones(both)
        while both:
            graph.fill[64 * word + _lowest(both)] -= 1
            both &= both - ONE
    return common


@njit(**ALLOCATES)
def greedy(start, weight, rule, rank, slack, seed, limit, order):
    """Eliminates a graph, always what scores least.

    Args:
        start: (m, ⌈m / 64⌉) uint64 adjacency bits.
        weight: (m,) int64, as in `Graph`.
        rule: FIXED (by rank), WEIGHT (smallest clique) or FILL (fewest new edges, the smaller clique at a tie).
        rank: (m,) int64; read by FIXED.
        slack: with FILL, what adds so many edges more than the least counts as tied; -1: cliques are not looked at.
        seed: of the ties, not 0.
        limit: entries in all at which to give up.
        order: (m,) int64, gets the order.

    Returns:
        count eliminated, width, log2 of the largest clique, entries in all, operations done.
    """
    graph, work = _graph(start, weight, rule)
    m = weight.size
    near, alive = np.empty(m, dtype=np.int64), np.arange(m)
    random = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) | ONE
    width = 0
    largest = total = 0.0
    for step in range(m):
        left = m - step
        chosen, random = _choose(alive[:left], graph, rule, rank, slack, random)
        v = alive[chosen]
        alive[chosen] = alive[left - 1]
        order[step] = v
        entries = graph.size[v] * 2.0**-20
        width, largest = max(width, graph.degree[v]), max(largest, entries)
        total += 2.0 ** min(entries, 1000.0)
        work += left + graph.degree[v] * start.shape[1]
        if total > limit:
            return step + 1, width, largest, total, work
        count = _members(graph.bits, v, near)
        _leave(v, near[:count], graph, rule)
        work += _connect(near[:count], graph, rule)
    return m, width, largest, total, work
