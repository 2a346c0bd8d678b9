"""Gauged tables and the values of the objectives, as `spinbench.methods.gauge.ascent.objectives` defines them."""

from __future__ import annotations

import math

from numba import njit

from spinbench.backends.numba.exact.options import ONCE, SHARED
from spinbench.methods.gauge.ascent.newton import KEPT, SHORTER
from spinbench.methods.gauge.ascent.objectives import LEAST_COSINE


@njit(**SHARED)
def evaluate(net, z, q, weights, given, start, found, turns):
    """The objective at z, and how much of a step there comes next if it was in vain.

    Args:
        net: the graph.
        z: angles (2E), and logits (E) for G-MF.
        q: (E,) for G-MF, gets the q of the logits; (0,) for G-BP.
        weights: conditioning, barrier (δ, or the floor ε) and the weight of x = 0.
        given: tables.
        start: those where a step began, of whose entries some share is to be kept; empty: all are to be positive.
        found: gets the tables.
        turns: (2, 2E) for its own use.

    Returns:
        value: -inf where it is not defined.
        share: of the step.
    """
    conditioning, barrier, zero = weights
    edges = (z.size - q.size) // 2
    total = 0.0
    for e in range(edges):
        cosine = math.cos(z[2 * e] - z[2 * e + 1])
        if not cosine > LEAST_COSINE:
            return -math.inf, 0.5
        total += math.log(cosine)
        scale = 1.0 / math.sqrt(cosine)
        for h in range(2 * e, 2 * e + 2):
            turns[0, h], turns[1, h] = scale * math.cos(z[h]), scale * math.sin(z[h])
    value, meets, inside = conditioning * total, math.inf, True
    for e in range(q.size):
        q[e] = sigmoid(z[2 * edges + e])
        value += _entropy(z[2 * edges + e])
    for a in range(net.degree.size):
        d, at, slot = net.degree[a], net.table[a], net.slot[a]
        _gauge(net.own, slot, d, turns, given, found, at)
        for x in range(at, at + (1 << d)):
            floor = KEPT * start[x] if start.size else 0.0
            if not found[x] > floor:
                inside = False
                if start.size and found[x] <= floor:
                    meets = min(meets, (start[x] - floor) / (start[x] - found[x]))
        if inside:
            for x in range(1 << d):
                weight = weight_at(net.own, slot, d, q, zero, x) + barrier / (1 << d)
                value += weight * math.log(found[at + x])
    if not inside:
        return -math.inf, max(SHORTER[0], SHORTER[1] * meets) if meets < math.inf else 0.5
    return value, 0.5


@njit(**ONCE)
def _gauge(own, slot, d, turns, given, found, at):
    """A node's table with the axis of every slot multiplied by its matrix, of cosines and sines (2, 2E)."""
    for x in range(at, at + (1 << d)):
        found[x] = given[x]
    for k in range(d):
        h = own[slot + k]
        g00, g01, g10, g11 = turns[0, h], turns[1, h], -turns[1, h ^ 1], turns[0, h ^ 1]
        flip = 1 << (d - 1 - k)
        for first in range(at, at + (1 << d), 2 * flip):
            for x in range(first, first + flip):
                low, high = found[x], found[x + flip]
                found[x] = g00 * low + g01 * high
                found[x + flip] = g10 * low + g11 * high


@njit(**SHARED)
def weight_at(own, slot, d, q, zero, x):
    """q_a(x) of a node with d half edges from `slot` on in G-MF; in G-BP `zero` at x = 0, else 0."""
    if not q.size:
        return zero if x == 0 else 0.0
    product = 1.0
    for k in range(d):
        one = q[own[slot + k] // 2]
        product *= one if x >> (d - 1 - k) & 1 else 1.0 - one
    return product


@njit(**SHARED)
def sigmoid(x):
    """1 / (1 + exp(-x))."""
    if x >= 0.0:
        return 1.0 / (1.0 + math.exp(-x))
    small = math.exp(x)
    return small / (1.0 + small)


@njit(**ONCE)
def _entropy(logit):
    """H(q) of q = σ(logit)."""
    size = abs(logit)
    if size > 700.0:
        return 0.0
    return math.log1p(math.exp(-size)) + size * sigmoid(-size)
