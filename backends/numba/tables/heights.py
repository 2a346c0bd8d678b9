"""Compiled sweeps whose weights are a function of D = log p* of the whole state, in vectors over chains.

An update finds D with each state of a variable, from what it is and the factors of the variable alone. Hard zeros are
soft, as at β < 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from spinbench.backends.numba.gibbs.shared import CALLED, INLINE, JIT
from spinbench.backends.numba.simd.functions import ONE, ZERO, at_least, at_most, exp
from spinbench.backends.numba.simd.memory import address, keep, load_field, load_sum, load_table, store_field, store_sum
from spinbench.backends.numba.simd.vector_memory import (
    line_address,
    load_state_vector,
    load_sum_words,
    load_table_words,
    store_field_vector,
    store_state_vector,
    store_sum_vector,
)
from spinbench.backends.numba.simd.vectors import choose
from spinbench.backends.numba.tables.look_ups import WORDS, Lane, binary_logits, find_logits, load_field_words, pointers
from spinbench.backends.numba.tables.sweeps import drawn_state, fill_numbers, set_walk


@nb.njit(**INLINE)
def _room(above):
    return at_most(at_least(above, ZERO(above)), ONE(above))


@nb.njit(**INLINE)
def _update_binary(t, v, b, c):
    down, up = binary_logits(t, v, b, c)
    u, scale = load_table_words(b.numbers, 0, WORDS), load_table_words(b.betas, c, WORDS)
    x, d = load_state_vector(b.x, v * b.count + c), load_sum_words(b.totals, c, WORDS)
    rest = d - scale * choose(x == 0, down, up)
    low, high = rest + scale * down, rest + scale * up
    first, total = _room(low), _room(low) + _room(high)
    none = x & 0
    drawn = choose(first <= u * total, choose(first < total, none + 1, none), none)
    drawn = choose(total > ZERO(total), drawn, x)
    store_state_vector(b.x, v * b.count + c, drawn)
    store_sum_vector(b.totals, c, choose(drawn == 0, low, high))


@nb.njit(**INLINE)
def _offer(t, v, b, c, offered):
    """D with each state of v, times its scale, into `offered`."""
    find_logits(t, v, b, c)
    size, x = load_table(t.sizes, v), load_state_vector(b.x, v * b.count + c)
    scale, rest = load_table_words(b.betas, c, WORDS), load_sum_words(b.totals, c, WORDS)
    for k in range(size):
        rest = rest - choose(x == k, scale * load_field_words(b.weights, 16 * k, WORDS), ZERO(scale))
    for k in range(size):
        store_field_vector(offered, 16 * k, rest + scale * load_field_words(b.weights, 16 * k, WORDS))


@nb.njit(**INLINE)
def _settle(v, size, b, c, offered, drawn):
    """Chains go to the states that were drawn, and to their D."""
    d = load_field_words(offered, 0, WORDS)
    for k in range(1, size):
        d = choose(drawn == k, load_field_words(offered, 16 * k, WORDS), d)
    store_state_vector(b.x, v * b.count + c, drawn)
    store_sum_vector(b.totals, c, d)


@nb.njit(**INLINE)
def _update_any(t, v, b, c, offered):
    _offer(t, v, b, c, offered)
    size, x, u = load_table(t.sizes, v), load_state_vector(b.x, v * b.count + c), load_table_words(b.numbers, 0, WORDS)
    total = ZERO(u)
    for k in range(size):
        room = _room(load_field_words(offered, 16 * k, WORDS))
        store_field_vector(b.weights, 16 * k, room)
        total = total + room
    drawn = choose(total > ZERO(total), drawn_state(b.weights, size, u * total, total, x & 0), x)
    _settle(v, size, b, c, offered, drawn)


@nb.njit(**INLINE)
def _weigh_flat(offered, size, flat, weights):
    """Weights e^θ of 16 chains' states, the largest 1; their sum."""
    theta, last = address(flat.theta, 0), flat.theta.size - 1
    for i in range(16 * size):
        store_field(weights, i, theta_at(theta, last, flat, load_field(offered, i)))
    top = load_field_words(weights, 0, WORDS)
    for k in range(1, size):
        top = at_least(top, load_field_words(weights, 16 * k, WORDS))
    total = ZERO(top)
    for k in range(size):
        weight = exp(load_field_words(weights, 16 * k, WORDS) - top)
        store_field_vector(weights, 16 * k, weight)
        total = total + weight
    return total


@nb.njit(**INLINE)
def theta_at(theta, last, flat, d):
    """θ at D, by a pointer to the knots' and the number of the last."""
    place = (d - flat.knots[0]) * flat.knots[1]
    inside = at_most(at_least(place, ZERO(place)), flat.knots[2])
    low = min(int(inside), last - 1)
    part = inside - type(d)(low)
    above = at_least(d - flat.knots[3], ZERO(d))
    return (ONE(part) - part) * load_table(theta, low) + part * load_table(theta, low + 1) + above


class Flat(NamedTuple):
    """θ, linear between knots, level below them and of slope 1 above.

    Attributes:
        theta: (M,) at the knots, of the kernel's precision.
        knots: (4,) of it, too: the first, one over their distance, M - 1, the last.
    """

    theta: Any
    knots: Any


class Scratch(NamedTuple):
    """Of a sweep: `walk`, `saved`, `numbers` of its random numbers; where its entries begin; `weights` of a variable's
    states, and D with each; D of the lanes of a block."""

    walk: Any
    saved: Any
    numbers: Any
    shifts: Any
    weights: Any
    offered: Any
    now: Any


@nb.njit(**CALLED)
def _scratch(t, betas):
    count, kmax = betas.shape[1], t.sizes.max()
    s = Scratch(
        np.empty(count + 8, dtype=np.uint64),
        np.empty(count + 16, dtype=np.uint32),
        np.empty(32, dtype=betas.dtype),
        np.empty(count, dtype=np.uint32),
        np.empty(16 * kmax + 16, dtype=betas.dtype),
        np.empty(16 * kmax + 16, dtype=betas.dtype),
        np.empty(count + 16, dtype=betas.dtype),
    )
    s.shifts[:] = t.floored
    return s


@nb.njit(**INLINE)
def _keep(s):
    keep(s.walk)
    keep(s.saved)
    keep(s.numbers)
    keep(s.shifts)
    keep(s.weights)
    keep(s.offered)
    keep(s.now)


@nb.njit(**INLINE)
def _block(k, chains, s, d):
    """Block k in pointers, at D of (K, B)."""
    _, x, betas = chains
    _, n, count = x.shape
    heights = line_address(s.now)
    for c in range(count):
        store_sum(heights, c, d[k, c])
    return Lane(
        count,
        address(x, k * n * count),
        heights,
        address(betas, k * count),
        address(s.shifts, 0),
        line_address(s.numbers),
        line_address(s.weights),
    )


@nb.njit(**JIT)
def sweep_above(t, order, first, end, chains, above):
    """Sweeps number first … end - 1 of all chains over the variables `order` (int64, those of 2 states or more): each
    is drawn given the rest, by the room that its states leave, D's part of [0, 1] below `above`.

    Args:
        t: LaneTables.
        order: in which variables are updated.
        first, end: numbers of the sweeps in the run, by which their random numbers are told.
        chains: LaneChains; x is written to; betas holds the scale of D in `above`.
        above: (K, B) of the kernel's precision, D times that, less a level, as chains begin.
    """
    keys, x, betas = chains
    blocks, n, count = x.shape
    s = _scratch(t, betas)
    walker, kept, offered = line_address(s.walk), line_address(s.saved), line_address(s.offered)
    g, like = pointers(t), t.values[0]
    for k in range(blocks):
        gammas, b = address(keys, (2 * k + 1) * count), _block(k, chains, s, above)
        for number in range(first, end):
            set_walk(keys, k, np.uint64(number) * np.uint64(n + 1), walker)
            for q in range(order.size):
                v = order[q]
                for c in range(0, count, 16):
                    fill_numbers(b.numbers, walker, gammas, kept, c, q % 2 == 1, like)
                    if t.sizes[v] == 2:
                        _update_binary(g, v, b, c)
                    else:
                        _update_any(g, v, b, c, offered)
    _keep(s)


@nb.njit(**JIT)
def sweep_flat(t, order, number, chains, flat, d):
    """Sweep `number` of all chains over the variables `order`, with weights e^θ(D).

    Args:
        t: LaneTables.
        order: in which variables are updated, int64, those of 2 states or more.
        number: of the sweep in the run, by which its random numbers are told.
        chains: LaneChains; x is written to; betas are 1.
        flat: θ.
        d: (K, B) of the kernel's precision, D; written to.
    """
    keys, x, betas = chains
    blocks, n, count = x.shape
    s = _scratch(t, betas)
    walker, kept, offered = line_address(s.walk), line_address(s.saved), line_address(s.offered)
    g, like = pointers(t), t.values[0]
    for k in range(blocks):
        gammas, b = address(keys, (2 * k + 1) * count), _block(k, chains, s, d)
        set_walk(keys, k, np.uint64(number) * np.uint64(n + 1), walker)
        for q in range(order.size):
            v, size = order[q], t.sizes[order[q]]
            for c in range(0, count, 16):
                fill_numbers(b.numbers, walker, gammas, kept, c, q % 2 == 1, like)
                _offer(g, v, b, c, offered)
                total = _weigh_flat(offered, size, flat, b.weights)
                goal, none = load_table_words(b.numbers, 0, WORDS) * total, load_state_vector(b.x, v * b.count + c) & 0
                _settle(v, size, b, c, offered, drawn_state(b.weights, size, goal, total, none))
        for c in range(count):
            d[k, c] = load_sum(b.totals, c)
    _keep(s)
