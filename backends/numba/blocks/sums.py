"""Buckets of a block in vectors of chains: sums, draws, marginals and probabilities, given the other variables.

Tables are products of weights, each message divided by its largest number, so that no logarithm is taken. What falls
below the least number of floating point is gone, and a bound on the share that it may have in the whole goes up with
the messages: what was next to nothing beside its likelier neighbours is all there is where later factors forbid those.
Where that share is not negligible, the block is summed once more in the log domain.

Arrays of a vector of chains: x (N, L) states; W (rows, L) of groups and messages; T (entries, L); A (rows, L); lost
(P, L).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from spinbench.backends.numba.kernel_cache import CALLEE, Options
from spinbench.backends.numba.simd import (
    ONE,
    ZERO,
    Array,
    Real,
    any_lane,
    choose,
    constant,
    copy_into,
    exp,
    larger,
    load_row,
    log,
    store_row,
)
from spinbench.methods.blocks.tables import COLD_FLOOR_NATS, Tables

OPTIONS: Options = {"error_model": "numpy", "fastmath": {"contract"}, **CALLEE}
# Smaller sums count as 0: float32 ends at 1e-38 and float64 at 1e-308, and a sum close to that may have lost terms to
# underflow.
LEAST = constant(1e-36, 1e-300)
# Share of a sum that may be lost to underflow: below the rounding error of either precision.
NEGLIGIBLE = constant(1e-9, 1e-17)
# Stands for -∞ in the log domain, where differences of -∞ would be NaN.
LOWEST = constant(-1e30, -1e300)
# Logarithms relative to the maximum whose exponentials count as 0 in the linear domain.
_GONE = constant(-80.0, -700.0)


class Weights(NamedTuple):
    """The factors' tables, in the precision of the chains.

    Attributes:
        logs: (T + 1,); linear: (T + 1,) exponentials, the largest of each table 1.
        offsets: (F + 1,); floors: (F + 1,) as in `Tables`.
    """

    logs: Array
    linear: Array
    offsets: Array
    floors: Array


class Room(NamedTuple):
    """For a vector of chains: W, T, A, bases (L,), uniform numbers u (P, L), and lost (P, L), by how much entries of
    messages to a bucket may be too small."""

    W: Array
    T: Array
    A: Array
    bases: Array
    u: Array
    lost: Array


def make_weights(t: Tables, real: Real) -> Weights:
    """From the tables of a plan."""
    tops = np.maximum.reduceat(t.values, t.offsets)
    linear = np.exp(t.values - np.repeat(tops, np.diff(np.append(t.offsets, len(t.values)))))
    return Weights(t.values.astype(real), linear.astype(real), t.offsets, t.floors)


@njit(**OPTIONS)
def forward(m, w, block, x, beta, tempered, room):
    """T: p(v | separator) of all buckets of a block, at the chains' β where they are tempered."""
    low, high = m.starts[block], m.starts[block + 1]
    if tempered:
        _fill(m, w, low, high, x, beta, tempered, room, True)
        for g in range(m.group_starts[low], m.group_starts[high]):
            _to_weights(room.W, m.group_rows[g], m.group_sizes[g])
    else:
        _fill(m, w, low, high, x, beta, tempered, room, None)
    # The log domain costs an exponential per entry and is used only where products of weights underflowed.
    if not _eliminate_buckets(m, low, high, room, None):
        _fill(m, w, low, high, x, beta, tempered, room, True)
        _eliminate_buckets(m, low, high, room, True)


@njit(**OPTIONS)
def _base(m, w, i, x, bases):
    """bases: where the table of link i is entered at the states outside the block."""
    for lane in range(x.shape[1]):
        bases[lane] = w.offsets[m.factors[i]]
    for j in range(m.outer_starts[i], m.outer_starts[i + 1]):
        v, stride = m.outer[j], m.outer_strides[j]
        for lane in range(x.shape[1]):
            bases[lane] += x[v, lane] * stride


@njit(**OPTIONS)
def _fill(m, w, low, high, x, beta, tempered, room, logs):
    """Rows of groups: products of weights; or, unless `logs` is None, sums of β log weights."""
    W, bases = room.W, room.bases
    for g in range(m.group_starts[low], m.group_starts[high]):
        first, size = m.group_rows[g], m.group_sizes[g]
        for i in range(m.link_starts[g], m.link_starts[g + 1]):
            _base(m, w, i, x, bases)
            place, fresh, floor = m.places[i], i == m.link_starts[g], w.floors[m.factors[i]]
            for r in range(size):
                for lane in range(x.shape[1]):
                    at = bases[lane] + m.inner[place + r]
                    if logs is None:
                        weight = w.linear[at]
                        W[first + r, lane] = weight if fresh else W[first + r, lane] * weight
                    else:
                        value = w.logs[at]
                        if tempered:
                            # 0 · -∞ is NaN: hard zeros are finite floors in tempered chains, and far lower ones at β =
                            # 1.
                            value = beta[lane] * max(value, floor if beta[lane] < 1 else floor - COLD_FLOOR_NATS)
                        W[first + r, lane] = value if fresh else W[first + r, lane] + value


@njit(**OPTIONS)
def _to_weights(rows, first, count):
    """Exponentials of logarithms in place, the largest of each chain 1. Returns their sums and the largest."""
    top = load_row(rows, first)
    top = larger(top, LOWEST(top))
    for r in range(first + 1, first + count):
        top = larger(load_row(rows, r), top)
    total = ZERO(top)
    for r in range(first, first + count):
        value = load_row(rows, r) - top
        weight = choose((value > _GONE(value)) & (top > LOWEST(top)), exp(value), ZERO(value))
        store_row(rows, r, weight)
        total = total + weight
    return total, top


@njit(**OPTIONS)
def _eliminate_buckets(m, low, high, room, logs):
    """Bucket by bucket, from products or from `logs`; whether next to nothing was lost.

    Where logarithms say that nothing is possible, all probabilities are 0.
    """
    W, T, rows, lost = room.W, room.T, m.rows, room.lost
    lost[: high - low] = 0
    zero = ZERO(load_row(W, 0))
    worst = zero
    for b in range(low, high):
        K, terms, at, out = m.cards[b], m.terms[b], m.term_rows[b], m.messages[b]
        q = m.entries[b]
        top, least = zero, ONE(zero)
        for s in range(m.separators[b]):
            total = zero
            for k in range(K):
                entry = ONE(zero) if logs is None else zero
                for j in range(at, at + terms):
                    row = load_row(W, rows[j])
                    entry = entry * row if logs is None else entry + row
                at += terms
                store_row(T, q + k, entry)
                total = total + entry
            if logs is None:
                least = choose(total < least, total, least)
                total = choose(total < LEAST(total), zero, total)
                message = total
                top = larger(total, top)
            else:
                total, peak = _to_weights(T, q, K)
                message = choose(total > 0, peak + log(choose(total > 0, total, ONE(total))), LOWEST(peak))
            store_row(W, out + s, message)
            scale = choose(total > 0, ONE(total) / total, zero)
            for k in range(K):
                store_row(T, q + k, load_row(T, q + k) * scale)
            q += K
        if logs is None:
            scale = choose(top > 0, ONE(top) / top, zero)
            for s in range(out, out + m.separators[b]):
                store_row(W, s, load_row(W, s) * scale)
            # A loss in a child's message is also a loss of its parent: an entry that was negligible there may be the
            # only one that factors higher up allow.
            worst = larger(_lose(m.parent[b] - low, m.cards[b], b - low, least, scale, lost), worst)
    return not any_lane(worst > NEGLIGIBLE(worst))


@njit(forceinline=True, **OPTIONS)
def _lose(parent, K, place, least, scale, lost):
    """By how much entries of a bucket's message may be too small, of which the largest is 1; its parent is told."""
    per_state = load_row(lost, place) + choose(least < LEAST(least), LEAST(least), ZERO(least))
    whole = ZERO(per_state)
    for _ in range(K):
        whole = whole + per_state
    whole = choose(scale > 0, whole * scale, ONE(whole))
    if parent >= 0:
        store_row(lost, parent, load_row(lost, parent) + whole)
    return whole


@njit(**OPTIONS)
def _row_start(m, b, x, lane):
    """The first entry of the bucket's variable, given the separator's states."""
    s = 0
    for e in range(m.scope_starts[b], m.scope_starts[b + 1]):
        s += x[m.scope[e], lane] * m.steps[e]
    return m.entries[b] + s * m.cards[b]


@njit(**OPTIONS)
def draw(m, block, x, room):
    """x with the block drawn by the room's uniform numbers."""
    T, u, low = room.T, room.u, m.starts[block]
    for b in range(m.starts[block + 1] - 1, low - 1, -1):
        v, K = m.variable[b], m.cards[b]
        for lane in range(x.shape[1]):
            q = _row_start(m, b, x, lane)
            left, state = u[b - low, lane], 0
            for k in range(K):
                p = T[q + k, lane]
                if p > 0:
                    state = k
                    left -= p
                    if left < 0:
                        break
            x[v, lane] = state


@njit(**OPTIONS)
def add_log_probability(m, block, target, x, room, logs):
    """logs (L,) += log p(block = target | rest), and x takes the target's states."""
    for b in range(m.starts[block], m.starts[block + 1]):
        v = m.variable[b]
        for lane in range(x.shape[1]):
            p = room.T[_row_start(m, b, target, lane) + target[v, lane], lane]
            logs[lane] += math.log(p) if p > 0 else -np.inf
    for b in range(m.starts[block], m.starts[block + 1]):
        copy_into(x[m.variable[b]], target[m.variable[b]])


@njit(**OPTIONS)
def add_marginals(m, block, room, sums):
    """sums (N, K, L) += the block's marginals given the rest, times variables' shares. T becomes p(v, separator)."""
    T, A, W, rows = room.T, room.A, room.W, m.rows
    ones = ONE(load_row(W, 0))
    low, high = m.starts[block], m.starts[block + 1]
    for r in range(m.messages[low], m.messages[high - 1] + m.separators[high - 1]):
        store_row(A, r, ZERO(ones))
    for b in range(high - 1, low - 1, -1):
        K, terms, children = m.cards[b], m.terms[b], m.children[b]
        at, q = m.term_rows[b], m.entries[b]
        if m.scope_starts[b] == m.scope_starts[b + 1]:
            store_row(A, m.messages[b], ones)
        for k in range(K):
            # The rows of groups are no longer needed and hold the sums of the bucket's marginals.
            store_row(W, k, ZERO(ones))
        for s in range(m.separators[b]):
            above = load_row(A, m.messages[b] + s)
            for k in range(K):
                joint = load_row(T, q + k) * above
                store_row(W, k, load_row(W, k) + joint)
                for j in range(at + terms - children, at + terms):
                    store_row(A, rows[j], load_row(A, rows[j]) + joint)
                at += terms
            q += K
        v, share = m.variable[b], m.share[b]
        for k in range(K):
            for lane in range(W.shape[1]):
                sums[v, k, lane] += share * W[k, lane]
