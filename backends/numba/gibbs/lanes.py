"""Chromatic and raster sweeps of binary variables in vectors over chains.

What an update takes, in vectors of 16 chains in float32 (8 in float64) on a core with AVX-512, in instructions for its
two vector units: the uniform numbers 16 (22), the field 1 a neighbour, the sigmoid 22 (27, and the division 16 cycles),
draw and sum 3. For four neighbours that is 22 cycles for 16 updates, 1.4 an update. What reaches it: everything of an
update stays in registers (no buffer of numbers or fields); a block of chains does all its sweeps before the next, so
that its states and sums stay in the caches; SplitMix64's counter moves on by an addition.

Arguments that these and the forms in `sites` and `rows` share:

    f           tables, `gibbs_tables.Flat`
    first, steps  the steps are number first … first + steps - 1 of the run; they determine the random numbers
    averaged    sum p(s_i = 1 | rest) as of the update; otherwise s_i after the sweep
    chib        sum T(s* <- s) over the states before each sweep
    head, tail, fixed  rows below `head` have no earlier neighbours, so that their fields in the forced sweep of T are
                those of the real sweep; rows from `tail` on have no later ones and add the constant `fixed`
    sums        float64, added to
    log_t       (C,) float64, log of the sum of T
"""

from __future__ import annotations

import numba as nb
import numpy as np

from spinbench.backends.numba.gibbs.units import INLINE, JIT, log_add, pointers
from spinbench.backends.numba.simd.functions import ONE, ZERO, exp, softplus
from spinbench.backends.numba.simd.memory import address, keep, load_sum, load_table, store_sum, store_uniform
from spinbench.backends.numba.simd.random import INVERSE_SCALE, SCALE, lane_numbers
from spinbench.backends.numba.simd.vector_memory import (
    line_address,
    load_state_vector,
    load_sum_vector,
    store_state_vector,
    store_sum_vector,
)
from spinbench.backends.numba.simd.vectors import (
    choose,
    spread,
)

FLUSH = 64
"""Sweeps that are summed in the kernel's precision before float64 takes over: a float32 sum of equal numbers would
drift."""
TERMS = 64
"""Terms of log T that are summed in the kernel's precision."""


@nb.njit(**INLINE)
def draw(x, u):
    """(which lanes become 1: u < SCALE σ(x), SCALE σ(x)); nothing waits for the division but the sum of p."""
    odds = ONE(x) + exp(-x)
    return u * odds < SCALE(x), SCALE(x) / odds


@nb.njit(**INLINE)
def add_recent(recent, sums, factor, count):
    """sums += factor recent, which becomes 0; pointers to `count` elements."""
    for k in range(count):
        part = load_sum(recent, k)
        store_sum(sums, k, load_sum(sums, k) + factor * np.float64(part))
        store_sum(recent, k, ZERO(part))


@nb.njit(**INLINE)
def summed_factor(averaged, real):
    """What a sum of `real`s stands for: p is summed with the factor SCALE, s without."""
    return np.float64(INVERSE_SCALE(real)) if averaged else 1.0


@nb.njit(**INLINE)
def _lane_field(bias, f, begin, end, s, chain, chains):
    """bias + Σ w s over entries begin … end - 1 of a vector of chains."""
    x = spread(bias)
    for e in range(begin, end):
        near = np.int64(load_table(f.columns, e)) * chains
        x = x + load_table(f.weights, e) * load_state_vector(s, near + chain)
    return x


@nb.njit(**INLINE)
def _add_log_forced(sign, x, level, chain):
    store_sum_vector(level, chain, load_sum_vector(level, chain) - softplus(sign * x))


@nb.njit(**INLINE)
def _log_forced_middle(f, head, tail, s, chains, width, levels, log_levels):
    """log_level += Σ log p(s*_i | rest) of rows head … tail - 1 in the forced sweep."""
    for i in range(head, tail):
        begin, end = load_table(f.start, i), load_table(f.later, i)
        for c in range(0, chains, width):
            x = _lane_field(load_table(f.forced, i), f, begin, end, s, c, chains)
            _add_log_forced(load_table(f.sign, i), x, levels, c)
        if i % TERMS == TERMS - 1:
            add_recent(levels, log_levels, 1.0, chains)


@nb.njit(**JIT)
def run_lanes(f, keys, first, steps, averaged, chib, head, tail, fixed, s, sums, log_t):
    """Blocks of B chains, whole vectors. keys (K, 2, B); s, sums (K, N, B); log_t (K, B)."""
    blocks, n, chains = s.shape
    width = 64 // s.itemsize
    log_level = np.empty(chains)
    level, recent = np.zeros(chains + width, dtype=s.dtype), np.zeros(n * chains + width, dtype=s.dtype)
    walk, saved = np.empty(chains + 8, dtype=np.uint64), np.empty(chains + 16, dtype=np.uint32)
    log_levels = address(log_level, 0)
    g, totals, levels = pointers(f), line_address(recent), line_address(level)
    walker, kept = line_address(walk), line_address(saved)
    factor = summed_factor(averaged, s[0, 0, 0])
    for b in range(blocks):
        state, gammas = address(s, b * n * chains), address(keys, (2 * b + 1) * chains)
        for t in range(first, first + steps):
            counter = np.uint64(t) * np.uint64(n + 1)
            for c in range(chains):
                store_uniform(walker, c, keys[b, 0, c] + counter * keys[b, 1, c])
            if chib:
                log_level[:] = fixed
                _log_forced_middle(g, head, tail, state, chains, width, levels, log_levels)
            for i in range(n):
                begin, end, own = load_table(g.start, i), load_table(g.start, i + 1), i * chains
                bias, forced = load_table(g.biases, i), chib and i < head
                for c in range(0, chains, width):
                    x = _lane_field(bias, g, begin, end, state, c, chains)
                    if forced:
                        _add_log_forced(load_table(g.sign, i), x, levels, c)
                    u = lane_numbers(walker, gammas, kept, c, i % 2 == 1, bias)
                    up, p = draw(x, u)
                    drawn = choose(up, ONE(p), ZERO(p))
                    store_state_vector(state, own + c, drawn)
                    credit = p if averaged else drawn
                    store_sum_vector(totals, own + c, load_sum_vector(totals, own + c) + credit)
                if forced and i % TERMS == TERMS - 1:
                    add_recent(levels, log_levels, 1.0, chains)
            if chib:
                add_recent(levels, log_levels, 1.0, chains)
                for c in range(chains):
                    log_t[b, c] = log_add(log_t[b, c], log_level[c])
            if (t - first) % FLUSH == FLUSH - 1:
                add_recent(totals, address(sums, b * n * chains), factor, n * chains)
        add_recent(totals, address(sums, b * n * chains), factor, n * chains)
    keep(log_level)
    keep(level)
    keep(recent)
    keep(walk)
    keep(saved)
