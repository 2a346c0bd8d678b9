"""Gradients and Hessians of the objectives, node by node, by `spinbench.methods.gauge.ascent.derivatives`.

Coordinates stand in blocks of an edge, in the order of `elimination.Blocks`: the angles of its two sides and, for
G-MF, its logit. Nothing is divided, and no logarithm taken, but once an entry of a table.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from numba import njit

from spinbench.backends.numba.exact.options import ONCE, SHARED
from spinbench.backends.numba.gauge.cholesky import lanes
from spinbench.backends.numba.gauge.gauged import weight_at

TABLE, INVERSE, WEIGHT, BEND, PRODUCT, ENERGY, TURNED, ROWS = range(8)
"""Rows of what is known of each entry of a node's table f: f, 1 / f, its weight w, w / f², what of w is q in G-MF, that
times log f; f with one slot flipped over f; and how many rows there are."""
TANGENT, SECANT = range(2)


class Total(NamedTuple):
    """What is added up: b coordinates an edge, the gradient (E·b,) and the blocks of minus the Hessian, of b columns of
    `lead` entries."""

    b: Any
    lead: Any
    gradient: Any
    matrix: Any
    place: Any


class Node(NamedTuple):
    """One node.

    Attributes:
        d: slots.
        own: half edges of all nodes, this one's from `slot` on.
        slot: see above.
        pairs: blocks of pairs of slots of all nodes, this one's d·d from `pair` on.
        pair: see above.
        entries: (ROWS, 2**d and more).
    """

    d: Any
    own: Any
    slot: Any
    pairs: Any
    pair: Any
    entries: Any


@njit(**SHARED)
def derivatives(net, blocks, z, q, weights, tables, room):
    """Overwrites the gradient (E·b,) and minus the Hessian, whose diagonal blocks are whole.

    Args:
        net, blocks: the graph, and where its pairs of edges stand.
        z, q, weights: as of `gauged.evaluate`.
        tables: gauged ones at z.
        room: `newton.Room`, whose gradient and matrix are overwritten; fill is 0.
    """
    conditioning, barrier, zero = weights
    b = 3 if q.size else 2
    total = Total(b, lanes(b), room.gradient, room.matrix, blocks.place)
    turns, entries = room.turns, room.entries
    room.gradient[:] = 0.0
    room.matrix[:] = 0.0
    for e in range(blocks.place.size):
        difference = z[2 * e] - z[2 * e + 1]
        turns[SECANT, e] = 1.0 / math.cos(difference)
        turns[TANGENT, e] = math.sin(difference) * turns[SECANT, e]
        _edge(e, blocks.first[blocks.place[e]], z, q, conditioning, turns, total)
    for a in range(net.degree.size):
        d, at, slot = net.degree[a], net.table[a], net.slot[a]
        for x in range(1 << d):
            inverse, product = 1.0 / tables[at + x], weight_at(net.own, slot, d, q, zero, x)
            weight = product + barrier / (1 << d)
            entries[TABLE, x], entries[INVERSE, x], entries[WEIGHT, x] = tables[at + x], inverse, weight
            entries[BEND, x] = weight * inverse * inverse
            if q.size:
                entries[PRODUCT, x], entries[ENERGY, x] = product, product * math.log(tables[at + x])
        node = Node(d, net.own, slot, blocks.pairs, blocks.pair[a], entries)
        for k in range(d):
            _slot(node, k, turns, q, total)
        for k in range(d):
            for m in range(k + 1, d):
                _two_slots(node, k, m, turns, q, total)


@njit(**ONCE)
def _slot(node, k, turns, q, total):
    """What a slot of a node has to do with itself, and in G-MF the logits of all slots with its angles."""
    d, b, lead, f, matrix = node.d, total.b, total.lead, node.entries, total.matrix
    h, flip = node.own[node.slot + k], 1 << (d - 1 - k)
    e, side = h // 2, h & 1
    tangent, secant = (1.0 - 2.0 * side) * turns[TANGENT, e], turns[SECANT, e]
    total0 = total1 = pull0 = pull1 = pulled0 = pulled1 = 0.0
    for high in range(flip, 1 << d, 2 * flip):
        for y in range(high, high + flip):
            x = y - flip
            up, down = f[TABLE, y] * f[INVERSE, x], f[TABLE, x] * f[INVERSE, y]
            f[TURNED, x], f[TURNED, y] = up, down
            w0, w1 = f[WEIGHT, x], f[WEIGHT, y]
            total0, pull0, pulled0 = total0 + w0, pull0 + w0 * up, pulled0 + w0 * up * up
            total1, pull1, pulled1 = total1 + w1, pull1 + w1 * down, pulled1 + w1 * down * down
    signed, squared = (total1 - total0) / 2.0, secant * secant
    base = b * total.place[e]
    at = node.pairs[node.pair + k * d + k] * b * lead
    total.gradient[base + side] += tangent * signed + secant * pull0
    total.gradient[base + 1 - side] += tangent * signed - secant * pull1
    matrix[at + side * (1 + lead)] -= squared * (signed - pulled0) + 2.0 * secant * tangent * pull0
    matrix[at + (1 - side) * (1 + lead)] -= 2.0 * secant * tangent * pull1 - squared * (signed + pulled1)
    both = squared * (total0 + total1) / 2.0
    matrix[at + 1] += both
    matrix[at + lead] += both
    if b > 2:
        slope = _logit(node, k, q[e])
        total.gradient[base + 2] += slope
        matrix[at + 2 + 2 * lead] -= (1.0 - 2.0 * q[e]) * slope
        for m in range(d):
            _logit_and_angles(node, k, m, q, (tangent, secant), total)


@njit(**ONCE)
def _logit(node, k, one):
    """The derivative in the logit of a slot."""
    flip, f, slope = 1 << (node.d - 1 - k), node.entries, 0.0
    for high in range(flip, 1 << node.d, 2 * flip):
        for y in range(high, high + flip):
            slope += (1.0 - one) * f[ENERGY, y] - one * f[ENERGY, y - flip]
    return slope


@njit(**ONCE)
def _logit_and_angles(node, k, m, q, turns, total):
    """Of the logit of slot m and the angles of slot k, whose flips `TURNED` holds."""
    tangent, secant = turns
    d, f = node.d, node.entries
    h, bit = node.own[node.slot + k], d - 1 - m
    flip, one = 1 << (d - 1 - k), q[node.own[node.slot + m] // 2]
    moved0 = moved1 = 0.0
    for high in range(flip, 1 << d, 2 * flip):
        for y in range(high, high + flip):
            x = y - flip
            moved0 += f[PRODUCT, x] * f[TURNED, x] * ((x >> bit & 1) - one)
            moved1 += f[PRODUCT, y] * f[TURNED, y] * ((y >> bit & 1) - one)
    turned = tangent * one * (1.0 - one) if m == k else 0.0
    first, second = secant * moved0 + turned, turned - secant * moved1
    side, matrix = h & 1, total.matrix
    spot = node.pairs[node.pair + m * d + k]
    if spot >= 0:
        matrix[12 * spot + 2 + 4 * side] -= first
        matrix[12 * spot + 6 - 4 * side] -= second
    spot = node.pairs[node.pair + k * d + m]
    if spot >= 0:
        matrix[12 * spot + side + 8] -= first
        matrix[12 * spot + 9 - side] -= second


@njit(**ONCE)
def _two_slots(node, k, m, turns, q, total):
    """Angles of two slots of a node, and in G-MF their logits."""
    d, b, lead, f, matrix = node.d, total.b, total.lead, node.entries, total.matrix
    h, g = node.own[node.slot + k], node.own[node.slot + m]
    one, other = 1 << (d - 1 - k), 1 << (d - 1 - m)
    bend00 = bend01 = bend10 = bend11 = 0.0
    for top in range(0, 1 << d, 2 * one):
        for middle in range(top, top + one, 2 * other):
            for x in range(middle, middle + other):
                minor = f[TABLE, x] * f[TABLE, x + one + other] - f[TABLE, x + other] * f[TABLE, x + one]
                bend00 += f[BEND, x] * minor
                bend01 += f[BEND, x + other] * minor
                bend10 += f[BEND, x + one] * minor
                bend11 += f[BEND, x + one + other] * minor
    secants = turns[SECANT, h // 2] * turns[SECANT, g // 2]
    energy = _two_logits(node, one, other, q[h // 2], q[g // 2]) if b > 2 else 0.0
    i, j = h & 1, g & 1
    for turned in range(2):
        spot = node.pairs[node.pair + (m * d + k if turned else k * d + m)]
        if spot >= 0:
            at = spot * b * lead
            down, right = (lead, 1) if turned else (1, lead)
            matrix[at + i * down + j * right] -= secants * bend00
            matrix[at + i * down + (1 - j) * right] -= secants * bend01
            matrix[at + (1 - i) * down + j * right] -= secants * bend10
            matrix[at + (1 - i) * down + (1 - j) * right] -= secants * bend11
            if b > 2:
                matrix[at + 2 + 2 * lead] -= energy


@njit(**ONCE)
def _two_logits(node, one, other, p, r):
    """The second derivative in the logits of two slots, of bits `one` and `other` and q p and r."""
    f, energy = node.entries, 0.0
    for top in range(0, 1 << node.d, 2 * one):
        for middle in range(top, top + one, 2 * other):
            for x in range(middle, middle + other):
                low = (1.0 - r) * f[ENERGY, x + other] - r * f[ENERGY, x]
                high = (1.0 - r) * f[ENERGY, x + one + other] - r * f[ENERGY, x + one]
                energy += (1.0 - p) * high - p * low
    return energy


@njit(**ONCE)
def _edge(e, diagonal, z, q, conditioning, turns, total):
    """The conditioning term of an edge, and in G-MF its entropy."""
    b, lead, matrix, gradient = total.b, total.lead, total.matrix, total.gradient
    base, at = b * total.place[e], diagonal * b * lead
    slope, bend = conditioning * turns[TANGENT, e], conditioning * turns[SECANT, e] ** 2
    gradient[base] -= slope
    gradient[base + 1] += slope
    matrix[at] += bend
    matrix[at + 1 + lead] += bend
    matrix[at + 1] -= bend
    matrix[at + lead] -= bend
    if b > 2:
        logit = z[2 * total.place.size + e]
        spread = q[e] * (1.0 - q[e])
        gradient[base + 2] -= logit * spread
        matrix[at + 2 + 2 * lead] += spread * (1.0 + logit * (1.0 - 2.0 * q[e]))
