"""Gauged tables and the values of the objectives, as `spinbench.methods.gauge.ascent.objectives` defines them."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from spinbench.backends.numba.exact.options import ONCE
from spinbench.methods.gauge.ascent.newton import KEPT, SHORTER
from spinbench.methods.gauge.ascent.objectives import LEAST_COSINE


@njit(error_model="numpy")
def evaluate(net, z, q, weights, given, start, found):
    """The objective at z, and how much of a step there comes next if it was in vain.

    Args:
        net: the graph.
        z: angles (2E), and logits (E) for G-MF.
        q: (E,) for G-MF, gets the q of the logits; (0,) for G-BP.
        weights: conditioning, barrier (δ, or the floor ε) and the weight of x = 0.
        given: tables.
        start: those where a step began, of whose entries some share is to be kept; empty: all are to be positive.
        found: gets the tables.

    Returns:
        value: -inf where it is not defined.
        share: of the step.
    """
    conditioning, barrier, zero = weights
    edges = (z.size - q.size) // 2
    total, turns = 0.0, np.empty((2, 2 * edges))
    for e in range(edges):
        cosine = math.cos(z[2 * e] - z[2 * e + 1])
        if not cosine > LEAST_COSINE:
            return -np.inf, 0.5
        total += math.log(cosine)
        scale = 1.0 / math.sqrt(cosine)
        for h in range(2 * e, 2 * e + 2):
            turns[0, h], turns[1, h] = scale * math.cos(z[h]), scale * math.sin(z[h])
    value, meets, inside = conditioning * total, np.inf, True
    for e in range(q.size):
        q[e] = sigmoid(z[2 * edges + e])
        value += _entropy(z[2 * edges + e])
    for a in range(net.degree.size):
        d, at = net.degree[a], net.table[a]
        own = net.own[net.slot[a] : net.slot[a] + d]
        _gauge(own, turns, given[at : at + 2**d], found[at : at + 2**d])
        for x in range(at, at + 2**d):
            floor = KEPT * start[x] if start.size else 0.0
            if not found[x] > floor:
                inside = False
                if start.size and found[x] <= floor:
                    meets = min(meets, (start[x] - floor) / (start[x] - found[x]))
        if inside:
            value += _expected(own, q, barrier / 2**d, zero, found[at : at + 2**d])
    if not inside:
        return -np.inf, max(SHORTER[0], SHORTER[1] * meets) if meets < np.inf else 0.5
    return value, 0.5


@njit(**ONCE)
def _gauge(own, turns, given, found):
    """A node's table with the axis of every slot multiplied by its matrix, of cosines and sines (2, 2E)."""
    size, d = given.size, own.size
    for x in range(size):
        found[x] = given[x]
    for k in range(d):
        h = own[k]
        g00, g01, g10, g11 = turns[0, h], turns[1, h], -turns[1, h ^ 1], turns[0, h ^ 1]
        flip = 1 << (d - 1 - k)
        for x in range(size):
            if not x & flip:
                low, high = found[x], found[x | flip]
                found[x] = g00 * low + g01 * high
                found[x | flip] = g10 * low + g11 * high


@njit(**ONCE)
def _expected(own, q, floor, zero, table):
    """Σ_x w(x) log f(x) of a node: w is `floor`, and `zero` more at x = 0, or in G-MF q(x) more everywhere."""
    total = 0.0
    for x in range(table.size):
        total += (weight_at(own, q, zero, x) + floor) * math.log(table[x])
    return total


@njit(error_model="numpy")
def weight_at(own, q, zero, x):
    """q_a(x) of a node in G-MF; in G-BP `zero` at x = 0, else 0."""
    if not q.size:
        return zero if x == 0 else 0.0
    product = 1.0
    for k in range(own.size):
        one = q[own[k] // 2]
        product *= one if x >> (own.size - 1 - k) & 1 else 1.0 - one
    return product


@njit(error_model="numpy")
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
