"""Compiled sweeps over flat factor tables, in vectors over chains, each at an inverse temperature of its own.

`run_sweeps` makes sweeps, of heat-bath updates or of Metropolis' (the moves of `methods.baselines.metropolis`),
`force_sweep` finds log T(s* <- s), `sum_weights` log weights; the law at an inverse temperature is that of
`mathematics.heat_bath.table_updates`. All three may be called from compiled code. Per factor and state an update
gathers one entry, whose place is found from the states of the factor's other variables.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spinbench.backends.numba.gibbs.shared import FLUSH, INLINE, JIT, add_recent, log_add, set_walk, vector_width
from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.simd import (
    INVERSE_SCALE,
    ONE,
    ZERO,
    address,
    choose,
    constant,
    convert,
    copy_into,
    empty_array,
    exp,
    gather,
    in_lanes,
    keep,
    lane_numbers,
    larger,
    load,
    load_lanes,
    load_vector,
    log,
    pointers,
    store,
    zero_array,
)
from spinbench.backends.numba.tables.layout import WORDS, Lane, binary_logits, fill_weights

# Odds below this stand for a hard zero of that state, odds above its inverse for one of the other state: `exp`
# saturates there.
RAREST = constant(1e-37, 1e-300)


@njit(**INLINE)
def draw_metropolis_binary(x, away, u):
    """The other state of a binary variable with the lesser of 1 and its odds; those of state 0 are `away`."""
    none, leaves = x & 0, choose(away > RAREST(away), away, ZERO(away))
    rises = u * away < choose(away * RAREST(away) < ONE(away), ONE(away), ZERO(away))
    return choose(x == 0, choose(rises, none + 1, none), choose(u < leaves, none, none + 1))


@njit(**INLINE)
def draw_metropolis(weights, x, size, total, uniform, u):
    """The state to whose chance u falls, x where it is beyond those of all others; none of weight 0."""
    current, rest, others = ZERO(total), ZERO(total), ZERO(total)
    for k in range(size):
        weight = load_lanes(weights, 16 * k, WORDS)
        current = choose(x == k, weight, current)
        rest = rest + choose(x == k, ZERO(current), weight)
        others = others + choose(x == k, ZERO(current), ONE(current))
    # Uniform proposals share a total probability of 1 among the other states; for Gibbs proposals (Liu's Metropolised
    # Gibbs) the weights already include it.
    goal = u * others if uniform else u
    upto, state = ZERO(current), x
    for k in range(size):
        weight = load_lanes(weights, 16 * k, WORDS)
        # Proposal p_k / (1 - p_x) times Liu's acceptance min(1, (1 - p_x) / (1 - p_k)), multiplied out.
        normaliser = larger(current, weight) if uniform else larger(rest, total - weight)
        chance = choose(x == k, ZERO(current), choose(weight > ZERO(current), weight / normaliser, ZERO(current)))
        state = choose(upto <= goal, choose(goal < upto + chance, (x & 0) + k, state), state)
        upto = upto + chance
    return state


# Odds above this stand for a hard zero, at which `exp` saturates.
MOST = constant(1e37, 1e300)
# Stands for log 0.
NEVER = constant(-1e30)


class Request(NamedTuple):
    """What sweeps sum, and which they are.

    Attributes:
        credited: () bool, sum what is reported.
        averaged: () bool, conditional probabilities as of the updates, otherwise states after them.
        first, end: () int64, numbers of the sweeps in the run, by which their random numbers are told.
    """

    credited: bool
    averaged: bool
    first: int
    end: int


@njit(**INLINE)
def choose_state(weights, size, goal, total, none):
    """The state that `goal` in [0, total) falls to; none of weight 0, whatever is rounded."""
    upto = load_lanes(weights, 0, WORDS)
    beyond = choose(upto <= goal, choose(upto < total, none + 1, none), none)
    for k in range(1, size - 1):
        upto = upto + load_lanes(weights, 16 * k, WORDS)
        beyond = beyond + choose(upto <= goal, choose(upto < total, none + 1, none), none)
    return beyond


@njit(**INLINE)
def add_total(totals, at, credit):
    store(totals, at, load_lanes(totals, at, WORDS) + credit)


@njit(**INLINE)
def credit_states(b, row, size, state, total, averaged, c):
    for k in range(size):
        weight = load_lanes(b.weights, 16 * k, WORDS)
        credit = weight / total if averaged else choose(state == k, ONE(weight), ZERO(weight))
        add_total(b.totals, (row + k) * b.count + c, credit)


@njit(**INLINE)
def fill_numbers(numbers, walker, gammas, spare, c, odd, like):
    """16 numbers in [0, 1)."""
    for j in range(0, 16, vector_width(numbers)):
        u = lane_numbers(walker, gammas, spare, c + j, odd, like)
        store(numbers, j, u * INVERSE_SCALE(u))


@njit(**INLINE)
def _update_binary(t, v, b, c, request, uniform):
    down, up = binary_logits(t, v, b, c)
    u, beta = load_lanes(b.numbers, 0, WORDS), load_lanes(b.betas, c, WORDS)
    away = exp(beta * (down - up))
    odds, x = ONE(away) + away, load_vector(b.x, v * b.count + c)
    if uniform is None:
        # u < 1 / odds without the division; false if state 1 has weight 0.
        rises = u * odds < choose(away < MOST(away), ONE(away), ZERO(away))
        state = choose(rises, (x & 0) + 1, x & 0)
    else:
        state = draw_metropolis_binary(x, away, u)
    store(b.x, v * b.count + c, state)
    if request.credited:
        credit = ONE(odds) / odds if request.averaged else choose(state == 1, ONE(odds), ZERO(odds))
        add_total(b.totals, load(t.rows, v) * b.count + c, credit)


@njit(**INLINE)
def _update_any(t, v, b, c, request, uniform):
    total, size = fill_weights(t, v, b, c), load(t.sizes, v)
    x, u = load_vector(b.x, v * b.count + c), load_lanes(b.numbers, 0, WORDS)
    if uniform is None:
        state = choose_state(b.weights, size, u * total, total, x & 0)
    else:
        state = draw_metropolis(b.weights, x, size, total, uniform, u)
    store(b.x, v * b.count + c, state)
    if request.credited:
        credit_states(b, load(t.rows, v), size, state, total, request.averaged, c)


@njit(**JIT)
def run_sweeps(t, order, request, chains, sums, uniform=None):
    """Sweeps number asked.first … asked.end - 1 of all chains, over the variables `order` (int64, those of 2 states or
    more).

    Args:
        t: LaneTables.
        order: in which variables are updated; reversed for R.
        request: what is summed.
        chains: LaneChains; x is written to.
        sums: (K, R, B) float64, added to where that is asked for.
        uniform: whether Metropolis' proposals are; None draws each variable given the rest.
    """
    keys, x, betas = chains
    blocks, n, count = x.shape
    rows, kmax = sums.shape[1], t.max_states
    walk, saved = empty_array(count, np.uint64), empty_array(count, np.uint32)
    shifts, numbers = empty_array(count, np.uint32), empty_array(16, betas.dtype)
    weights, recent = empty_array(16 * kmax, betas.dtype), zero_array(rows * count, betas.dtype)
    walker, spare, totals = address(walk, 0), address(saved, 0), address(recent, 0)
    g, like = pointers(t), t.values[0]
    for k in range(blocks):
        gammas, out = address(keys, (2 * k + 1) * count), address(sums, k * rows * count)
        for c in range(count):
            shifts[c] = t.floored if betas[k, c] < 1 else np.uint32(0)
        at, states = address(betas, k * count), address(x, k * n * count)
        b = Lane(count, states, totals, at, address(shifts, 0), address(numbers, 0), address(weights, 0))
        for s in range(request.first, request.end):
            set_walk(keys[k], np.uint64(s) * np.uint64(n + 1), walker)
            for q in range(order.size):
                v = order[q]
                for c in range(0, count, 16):
                    fill_numbers(b.numbers, walker, gammas, spare, c, q % 2 == 1, like)
                    if t.sizes[v] == 2:
                        _update_binary(g, v, b, c, request, uniform)
                    else:
                        _update_any(g, v, b, c, request, uniform)
            if (s - request.first) % FLUSH == FLUSH - 1 and request.credited:
                add_recent(totals, out, 1.0, rows * count)
        if request.credited:
            add_recent(totals, out, 1.0, rows * count)
    keep(walk, saved, shifts, numbers, weights, recent)


@njit(**INLINE)
def _assign_and_add_log_p(t, v, k, b, c):
    total = fill_weights(t, v, b, c)
    chosen = load_lanes(b.weights, 16 * k, WORDS)
    none = load_vector(b.x, v * b.count + c) & 0
    store(b.x, v * b.count + c, none + k)
    part = choose(chosen > ZERO(chosen), log(chosen / total), NEVER(chosen))
    add_total(b.totals, c, part)


@njit(**JIT)
def force_sweep(t, order, mode, x, levels):
    """log T(mode <- x) of sweeps at beta = 1, added to `levels` (K, B) of float64; x (K, N, B) becomes `mode`.

    It is below -1e29 where T = 0.
    """
    blocks, n, count = x.shape
    shifts, ones = zero_array(count, np.uint32), empty_array(count, t.values.dtype)
    ones[:] = 1
    weights, recent = empty_array(16 * t.max_states, ones.dtype), zero_array(count, ones.dtype)
    g, totals = pointers(t), address(recent, 0)
    for k in range(blocks):
        at = address(x, k * n * count)
        b = Lane(count, at, totals, address(ones, 0), address(shifts, 0), address(ones, 0), address(weights, 0))
        for q in range(order.size):
            for c in range(0, count, 16):
                _assign_and_add_log_p(g, order[q], mode[order[q]], b, c)
            add_recent(totals, address(levels, k * count), 1.0, count)
    keep(shifts, ones, weights, recent)


@njit(**JIT)
def sum_weights(t, floored, x, weight_sums):
    """Sums of the factors' entries at states x (K, N, B), without the model's constant, into `weight_sums` (K, B),
    float64.

    Args:
        t: LaneTables.
        floored: whether zeros count as at beta < 1: then it is d log p*^beta / d beta.
        x: states.
        weight_sums: written to.
    """
    # At β < 1 hard zeros are finite floors, also in the derivative d log p*^β / dβ.
    shift = t.floored if floored else np.uint32(0)
    (blocks, n, count), g = x.shape, pointers(t)
    for k in range(blocks):
        states = address(x, k * n * count)
        for c in range(0, count, 16):
            total = in_lanes(0.0, WORDS)
            for f in range(t.factor_starts.size - 1):
                at = in_lanes(np.uint32(load(g.factor_bases, f) + shift), WORDS)
                for j in range(load(g.factor_starts, f), load(g.factor_starts, f + 1)):
                    at = at + load_vector(states, load(g.factor_variables, j) * count + c) * load(g.factor_strides, j)
                total = total + convert(gather(g.values, at), 0.0)
            store(address(weight_sums, k * count), c, total)


@njit(**JIT)
def run_weighed(t, order, mode, request, chains, sums, log_t):
    """As `run_sweeps`; log_t (K, B) float64 becomes the log of the sum of T(mode <- x) over the states x before each
    sweep, too."""
    mixed, levels = np.empty_like(chains.x), np.empty(log_t.shape)
    for s in range(request.first, request.end):
        # log T overwrites states by those of the mode and works on a copy.
        copy_into(mixed, chains.x)
        levels[:] = 0.0
        force_sweep(t, order, mode, mixed, levels)
        for k in range(len(levels)):
            for c in range(levels.shape[1]):
                log_t[k, c] = log_add(log_t[k, c], levels[k, c])
        run_sweeps(t, order, Request(request.credited, request.averaged, s, s + 1), chains, sums)
