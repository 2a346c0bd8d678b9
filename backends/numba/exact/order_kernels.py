"""Compiled search for elimination orders (`spinbench.backends.numba.exact.order_search` drives it).

`strip_kernels` takes off what can go first; `greedy` orders the rest by a rule, ties and near ties at random. Its limit
is the number of fill edges: adding one costs a pass over two rows of bits, which updates the counts of missing edges of
all that it touches, so nothing is ever counted anew.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

FIXED, WEIGHT, FILL = range(3)


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


@njit(cache=True, error_model="numpy")
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


@njit(cache=True, error_model="numpy")
def _missing(bits, v):
    """Edges that eliminating v would add."""
    missing = 0
    for word in range(bits.shape[1]):
        rest = bits[v, word]
        while rest:
            u = 64 * word + _lowest(rest)
            rest &= rest - np.uint64(1)
            for k in range(bits.shape[1]):
                missing += _ones(bits[v, k] & ~bits[u, k])
            missing -= 1  # u itself
    return missing // 2


@njit(cache=True, error_model="numpy")
def greedy(start, weight, rule, rank, slack, seed, limit, order):
    """Eliminates a graph, always what scores least.

    Args:
        start: (m, ⌈m / 64⌉) uint64 adjacency bits.
        weight: (m,) int64, log2 of the numbers of states in units of 2^-20.
        rule: FIXED (by rank), WEIGHT (smallest clique) or FILL (fewest new edges, the smaller clique at a tie).
        rank: (m,) int64; read by FIXED.
        slack: with FILL, what adds so many edges more than the least counts as tied; -1: cliques are not looked at.
        seed: of the ties, not 0.
        limit: entries in all at which to give up.
        order: (m,) int64, gets the order.

    Returns:
        count eliminated, width, log2 of the largest clique, entries in all, operations done.
    """
    m, words = start.shape
    bits = start.copy()
    one = np.uint64(1)
    degree, fill = np.zeros(m, dtype=np.int64), np.zeros(m, dtype=np.int64)
    size = weight.copy()  # log2 of the clique that eliminating would meet
    nearby = np.empty(m, dtype=np.int64)
    alive = np.arange(m)
    random = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) | one
    work = 0
    for v in range(m):
        for word in range(words):
            rest = bits[v, word]
            degree[v] += _ones(rest)
            while rest:
                size[v] += weight[64 * word + _lowest(rest)]
                rest &= rest - one
        if rule == FILL:
            fill[v] = _missing(bits, v)
            work += degree[v] * words
    width = 0
    largest = total = 0.0
    for step in range(m):
        left = m - step
        best, tied, chosen = np.int64(2**62), 0, 0
        for k in range(left):
            v = alive[k]
            if rule == FIXED:
                score = rank[v]
            elif rule == WEIGHT:
                score = size[v]
            elif slack == 0:
                score = (fill[v] << 32) + size[v]
            else:
                score = fill[v]
            if score < best - (slack if rule == FILL and slack > 0 else 0):
                best, tied, chosen = score, 1, k
            elif score <= best + (slack if rule == FILL and slack > 0 else 0):
                best = min(best, score)
                tied += 1
                random ^= random << np.uint64(13)
                random ^= random >> np.uint64(7)
                random ^= random << np.uint64(17)
                if (random >> np.uint64(11)) % np.uint64(tied) == 0:
                    chosen = k
        v = alive[chosen]
        alive[chosen] = alive[left - 1]
        order[step] = v
        entries = size[v] * 2.0**-20
        width = max(width, degree[v])
        largest = max(largest, entries)
        total += 2.0 ** min(entries, 1000.0)
        work += left + degree[v] * words
        if total > limit:
            return step + 1, width, largest, total, work
        count = 0
        for word in range(words):
            rest = bits[v, word]
            while rest:
                nearby[count] = 64 * word + _lowest(rest)
                count += 1
                rest &= rest - one
        v_word, v_bit = v >> 6, one << np.uint64(v & 63)
        for a in range(count):
            u = nearby[a]
            bits[u, v_word] &= ~v_bit
            degree[u] -= 1
            size[u] -= weight[v]
            if rule == FILL:  # pairs (v, t) with t near u alone
                for word in range(words):
                    fill[u] -= _ones(bits[u, word] & ~bits[v, word])
        for a in range(count):
            u = nearby[a]
            for b in range(a + 1, count):
                w = nearby[b]
                if bits[u, w >> 6] >> np.uint64(w & 63) & one:
                    continue
                if rule == FILL:
                    common = 1  # v was near both, and is gone
                    for word in range(words):
                        both = bits[u, word] & bits[w, word]
                        common += _ones(both)
                        while both:
                            fill[64 * word + _lowest(both)] -= 1
                            both &= both - one
                    common -= 1
                    fill[u] += degree[u] - common
                    fill[w] += degree[w] - common
                    work += words + common
                bits[u, w >> 6] |= one << np.uint64(w & 63)
                bits[w, u >> 6] |= one << np.uint64(u & 63)
                degree[u] += 1
                degree[w] += 1
                size[u] += weight[w]
                size[w] += weight[u]
    return m, width, largest, total, work
