"""Compiled search for elimination orders (`spinbench.reference.order_search` drives it).

    neighbours    who shares a table with whom
    strip         takes off what can go first without loss: degrees 0, 1 and, in series, 2; linear in the edges
    greedy        orders the rest by a rule, ties and near ties at random

The limit of `greedy` is the number of fill edges: adding one costs a pass over two rows of bits, which updates the
counts of missing edges of all that it touches, so nothing is ever counted anew.
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
