"""Gradients and Hessians of the objectives, node by node, by `spinbench.methods.gauge.ascent.derivatives`.

Coordinates stand in blocks of an edge, in the order of `elimination.Blocks`: the angles of its two sides and, for
G-MF, its logit.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from spinbench.backends.numba.exact.options import ONCE
from spinbench.backends.numba.gauge.gauged import weight_at


class Total(NamedTuple):
    """What is added up: b coordinates an edge, the gradient (E·b,) and the panels of minus the Hessian."""

    b: Any
    gradient: Any
    matrix: Any
    blocks: Any


class Node(NamedTuple):
    """One node.

    Attributes:
        own: (d,) half edges.
        spots: (d·d,) blocks of its pairs of slots.
        table: (2**d,) gauged.
        weights: (2**d,) of log f.
        product: (2**d,) what of them is q in G-MF.
    """

    own: Any
    spots: Any
    table: Any
    weights: Any
    product: Any


@njit(error_model="numpy")
def derivatives(net, blocks, z, q, weights, tables, gradient, matrix):
    """Overwrites the gradient (E·b,) and minus the Hessian, whose diagonal blocks are whole.

    Args:
        net, blocks: the graph, and where its pairs of edges stand.
        z, q, weights: as of `gauged.evaluate`.
        tables: gauged ones at z.
        gradient, matrix: what is overwritten; fill is 0.
    """
    conditioning, barrier, zero = weights
    total = Total(2 if not q.size else 3, gradient, matrix, blocks)
    turns = np.empty((2, z.size - q.size))
    for h in range(z.size - q.size):
        difference = z[h] - z[h ^ 1]
        turns[0, h], turns[1, h] = math.tan(difference), 1.0 / math.cos(difference)
    most = 2 ** net.degree.max()
    weight, product = np.empty(most), np.empty(most)
    gradient[:] = 0.0
    matrix[:] = 0.0
    for a in range(net.degree.size):
        d, at, slot = net.degree[a], net.table[a], net.slot[a]
        own = net.own[slot : slot + d]
        for x in range(2**d):
            product[x] = weight_at(own, q, zero, x)
            weight[x] = product[x] + barrier / 2**d
        spots = blocks.pairs[blocks.pair[a] : blocks.pair[a] + d * d]
        node = Node(own, spots, tables[at : at + 2**d], weight, product)
        for k in range(d):
            _slot(node, k, turns, q, total)
        for k in range(d):
            for m in range(k + 1, d):
                _two_slots(node, k, m, turns, q, total)
    for e in range(blocks.place.size):
        _edge(e, blocks, z, q, conditioning, total)


@njit(**ONCE)
def _slot(node, k, turns, q, total):
    """What a slot of a node has to do with itself, and in G-MF the logits of all slots with its angles."""
    d, b, table, weights, matrix = node.own.size, total.b, node.table, node.weights, total.matrix
    h, flip = node.own[k], 1 << (d - 1 - k)
    tangent, secant = turns[0, h], turns[1, h]
    total0 = total1 = pull0 = pull1 = pulled0 = pulled1 = 0.0
    for x in range(table.size):
        if not x & flip:
            low, high = table[x], table[x | flip]
            up, down = high / low, low / high
            w0, w1 = weights[x], weights[x | flip]
            total0, pull0, pulled0 = total0 + w0, pull0 + w0 * up, pulled0 + w0 * up * up
            total1, pull1, pulled1 = total1 + w1, pull1 + w1 * down, pulled1 + w1 * down * down
    signed, squared = (total1 - total0) / 2.0, secant * secant
    side, base = h & 1, b * total.blocks.place[h // 2]
    at, right = node.spots[k * d + k] * b * b, b
    total.gradient[base + side] += tangent * signed + secant * pull0
    total.gradient[base + 1 - side] += tangent * signed - secant * pull1
    matrix[at + side * (1 + right)] -= squared * (signed - pulled0) + 2.0 * secant * tangent * pull0
    matrix[at + (1 - side) * (1 + right)] -= 2.0 * secant * tangent * pull1 - squared * (signed + pulled1)
    both = squared * (total0 + total1) / 2.0
    matrix[at + 1] += both
    matrix[at + right] += both
    if b > 2:
        slope = _logit(node, k, q[h // 2])
        total.gradient[base + 2] += slope
        matrix[at + 2 + 2 * right] -= (1.0 - 2.0 * q[h // 2]) * slope
        for m in range(d):
            _logit_and_angles(node, k, m, q, (tangent, secant), total)


@njit(**ONCE)
def _logit(node, k, one):
    """The derivative in the logit of a slot."""
    flip, slope = 1 << (node.own.size - 1 - k), 0.0
    for x in range(node.table.size):
        slope += node.product[x] * math.log(node.table[x]) * ((1.0 if x & flip else 0.0) - one)
    return slope


@njit(**ONCE)
def _logit_and_angles(node, k, m, q, turns, total):
    """Of the logit of slot m and the angles of slot k."""
    tangent, secant = turns
    d, table, product = node.own.size, node.table, node.product
    flip, bit, one = 1 << (d - 1 - k), 1 << (d - 1 - m), q[node.own[m] // 2]
    moved0 = moved1 = 0.0
    for x in range(table.size):
        if not x & flip:
            y = x | flip
            moved0 += product[x] * ((1.0 if x & bit else 0.0) - one) * table[y] / table[x]
            moved1 += product[y] * ((1.0 if y & bit else 0.0) - one) * table[x] / table[y]
    turned = tangent * one * (1.0 - one) if m == k else 0.0
    first, second = secant * moved0 + turned, turned - secant * moved1
    side, matrix = node.own[k] & 1, total.matrix
    if node.spots[m * d + k] >= 0:
        at, right = node.spots[m * d + k] * 3 * 3, 3
        matrix[at + 2 + side * right] -= first
        matrix[at + 2 + (1 - side) * right] -= second
    if node.spots[k * d + m] >= 0:
        at, right = node.spots[k * d + m] * 3 * 3, 3
        matrix[at + side + 2 * right] -= first
        matrix[at + 1 - side + 2 * right] -= second


@njit(**ONCE)
def _two_slots(node, k, m, turns, q, total):
    """Angles of two slots of a node, and in G-MF their logits."""
    d, b, table, weights, matrix = node.own.size, total.b, node.table, node.weights, total.matrix
    h, g = node.own[k], node.own[m]
    one, other = 1 << (d - 1 - k), 1 << (d - 1 - m)
    bend00 = bend01 = bend10 = bend11 = 0.0
    for x in range(table.size):
        if not x & (one | other):
            f00, f01, f10, f11 = table[x], table[x | other], table[x | one], table[x | one | other]
            minor = f00 * f11 - f01 * f10
            bend00 += weights[x] / (f00 * f00) * minor
            bend01 += weights[x | other] / (f01 * f01) * minor
            bend10 += weights[x | one] / (f10 * f10) * minor
            bend11 += weights[x | one | other] / (f11 * f11) * minor
    secants = turns[1, h] * turns[1, g]
    energy = _two_logits(node, one, other, q[h // 2], q[g // 2]) if b > 2 else 0.0
    i, j = h & 1, g & 1
    for turned in range(2):
        spot = node.spots[m * d + k if turned else k * d + m]
        if spot >= 0:
            at, far = spot * b * b, b
            down, right = (far, 1) if turned else (1, far)
            matrix[at + i * down + j * right] -= secants * bend00
            matrix[at + i * down + (1 - j) * right] -= secants * bend01
            matrix[at + (1 - i) * down + j * right] -= secants * bend10
            matrix[at + (1 - i) * down + (1 - j) * right] -= secants * bend11
            if b > 2:
                matrix[at + 2 + 2 * far] -= energy


@njit(**ONCE)
def _two_logits(node, one, other, p, r):
    """The second derivative in the logits of two slots, of bits `one` and `other` and q p and r."""
    energy = 0.0
    for x in range(node.table.size):
        turn = ((1.0 if x & one else 0.0) - p) * ((1.0 if x & other else 0.0) - r)
        energy += turn * node.product[x] * math.log(node.table[x])
    return energy


@njit(**ONCE)
def _edge(e, blocks, z, q, conditioning, total):
    """The conditioning term of an edge, and in G-MF its entropy."""
    b, matrix, gradient = total.b, total.matrix, total.gradient
    base = b * blocks.place[e]
    at, right = blocks.first[blocks.place[e]] * b * b, b
    difference = z[2 * e] - z[2 * e + 1]
    slope = conditioning * math.tan(difference)
    bend = conditioning / math.cos(difference) ** 2
    gradient[base] -= slope
    gradient[base + 1] += slope
    matrix[at] += bend
    matrix[at + 1 + right] += bend
    matrix[at + 1] -= bend
    matrix[at + right] -= bend
    if b > 2:
        logit = z[2 * blocks.place.size + e]
        spread = q[e] * (1.0 - q[e])
        gradient[base + 2] -= logit * spread
        matrix[at + 2 + 2 * right] += spread * (1.0 + logit * (1.0 - 2.0 * q[e]))
