"""The form "lanes": chromatic and raster sweeps of binary variables in vectors over chains.

What an update takes, in vectors of 16 chains in float32 (8 in float64) on a core with AVX-512, in instructions for its
two vector units: the uniform numbers 16 (22), the field 1 a neighbour, the sigmoid 22 (27, and the division 16 cycles),
draw and sum 3. For four neighbours that is 22 cycles for 16 updates, 1.4 an update. What reaches it: everything of an
update stays in registers (no buffer of numbers or fields); a block of chains does all its sweeps before the next, so
that its states and sums stay in the caches; SplitMix64's counter moves on by an addition.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spinbench.backends.numba.gibbs.form import Chains, Copies, Flat, Form, Request, Source, Steps, no_fields
from spinbench.backends.numba.gibbs.shared import (
    FLUSH,
    INLINE,
    JIT,
    WRITTEN_OUT,
    add_recent,
    block_keys,
    draw,
    in_blocks,
    lane_blocks,
    log_add,
    set_walk,
    sum_factor,
    vector_width,
)
from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.simd import (
    ONE,
    ZERO,
    Address,
    Array,
    address,
    choose,
    copy_into,
    empty_array,
    exp,
    keep,
    lane_numbers,
    larger,
    load,
    load_vector,
    log,
    magnitude,
    pointers,
    spread,
    store,
    zero_array,
)

# Factors of T that are multiplied before a logarithm is taken: each is at most 2, and 2^64 is far from the float32
# overflow at 2^128, so that one logarithm serves 64 rows.
TERMS = 64


class Block(NamedTuple):
    """A block of chains: pointers to the states of its rows, to its streams of numbers and to what it sums.

    Attributes:
        chains: () of the block.
        s: (N, B) states.
        walker, gammas, spare: the streams, see `random.lane_numbers`.
        totals: (N, B) sums of p or s over the last sweeps.
        levels: (2, B) what log T of the last terms is: the first less log(1 + the second).
        log_levels: (B,) log T of the sweep.
    """

    chains: int
    s: Address
    walker: Address
    gammas: Address
    spare: Address
    totals: Address
    levels: Address
    log_levels: Address


class Heat(NamedTuple):
    """Of a block whose chains are each at a β of their own: pointers (B,).

    Attributes:
        betas: β; cold: what p of a chain counts in `totals`.
        deltas: changes of a·s + ½ sᵀWs, added to.
    """

    betas: Address
    cold: Address
    deltas: Address


@njit(**INLINE)
def lane_field(bias, f, begin, end, b, chain):
    """bias + Σ w s over entries begin … end - 1 of a vector of chains."""
    x = spread(bias)
    for e in range(begin, end):
        near = np.int64(load(f.columns, e)) * b.chains
        x = x + load(f.weights, e) * load_vector(b.s, near + chain)
    return x


@njit(**INLINE)
def flush_log_levels(b):
    """log_levels += the levels, which become 0."""
    for c in range(0, b.chains, vector_width(b.s)):
        product = load_vector(b.levels, b.chains + c)
        store(b.levels, c, load_vector(b.levels, c) - log(product + ONE(product)))
        store(b.levels, b.chains + c, ZERO(product))
    add_recent(b.levels, b.log_levels, 1.0, b.chains)


@njit(**INLINE)
def log_forced_rows(f, tail, b):
    """log_levels += log T(s* <- s), but for the rows from `tail` on, which add the same for every s."""
    for i in range(tail):
        begin, end = load(f.start, i), load(f.later, i)
        for c in range(0, b.chains, vector_width(b.s)):
            x = load(f.sign, i) * lane_field(load(f.forced, i), f, begin, end, b, c)
            # log p = -max(x, 0) - log(1 + e^-|x|): the first term is summed, the second goes into a product of `TERMS`
            # factors. The product P is stored as P - 1, by (P + 1)(1 + e) - 1 = P + (P + 1) e, so that small e are not
            # lost beside 1.
            store(b.levels, c, load_vector(b.levels, c) - larger(x, ZERO(x)))
            product = load_vector(b.levels, b.chains + c)
            store(b.levels, b.chains + c, product + (product + ONE(x)) * exp(-magnitude(x)))
        if i % TERMS == TERMS - 1 or i == tail - 1:
            flush_log_levels(b)


@njit(**WRITTEN_OUT)
def update_row(f, i, averaged, b, heat):
    """Draw row i, and add to the totals; heat: None, or `Heat`."""
    begin, end, row = load(f.start, i), load(f.start, i + 1), i * b.chains
    bias = load(f.biases, i)
    for c in range(0, b.chains, vector_width(b.s)):
        x = lane_field(bias, f, begin, end, b, c)
        # In float32 a hash of 64 bits serves two rows; the second row takes its half from `spare`.
        u = lane_numbers(b.walker, b.gammas, b.spare, c, i % 2 == 1, bias)
        up, p = draw(x if heat is None else x * load_vector(heat.betas, c), u)
        spins = choose(up, ONE(p), ZERO(p))
        credit = p if averaged else spins
        if heat is not None:
            credit = p * load_vector(heat.cold, c)
            # The energy changes by the flip times the field at β = 1, whatever the chain's own β.
            change = spins - load_vector(b.s, row + c)
            store(heat.deltas, c, load_vector(heat.deltas, c) + change * x)
        store(b.s, row + c, spins)
        store(b.totals, row + c, load_vector(b.totals, row + c) + credit)


@njit(**INLINE)
def draw_row_uniforms(f, i, b):
    """totals[i] = the uniform numbers of row i; rows go in their order."""
    bias = load(f.biases, i)
    for c in range(0, b.chains, vector_width(b.s)):
        store(b.totals, i * b.chains + c, lane_numbers(b.walker, b.gammas, b.spare, c, i % 2 == 1, bias))


@njit(**INLINE)
def update_lanes(f, i, b):
    """Draw row i given the rest with the uniform numbers totals[i]."""
    begin, end, row = load(f.start, i), load(f.start, i + 1), i * b.chains
    for c in range(0, b.chains, vector_width(b.s)):
        x = lane_field(load(f.biases, i), f, begin, end, b, c)
        up, p = draw(x, load_vector(b.totals, row + c))
        store(b.s, row + c, choose(up, ONE(p), ZERO(p)))


@njit(**JIT)
def run_lanes(f, request, steps, chains, copies, chib):
    keys, s, _, _, sums, log_t = chains
    blocks, n, count = s.shape
    log_level = empty_array(count, np.float64)
    level, recent = zero_array(2 * count, s.dtype), zero_array(n * count, s.dtype)
    walk, saved = empty_array(count, np.uint64), empty_array(count, np.uint32)
    walker, spare, totals = address(walk, 0), address(saved, 0), address(recent, 0)
    levels, log_levels = address(level, 0), address(log_level, 0)
    g, factor = pointers(f), sum_factor(request.averaged, s[0, 0, 0])
    for k in range(blocks):
        gammas, out = address(keys, (2 * k + 1) * count), address(sums, k * n * count)
        b = Block(count, address(s, k * n * count), walker, gammas, spare, totals, levels, log_levels)
        copied, due, flushed = 0, steps.first + copies.first, steps.first
        for t in range(steps.first, steps.end):
            set_walk(keys[k], np.uint64(t) * np.uint64(n + 1), walker)
            if chib is not None:
                log_level[:] = request.fixed
                log_forced_rows(g, request.tail, b)
                for c in range(count):
                    log_t[k, c] = log_add(log_t[k, c], log_level[c])
            for i in range(n):
                update_row(g, i, request.averaged, b, None)
            is_due = t + 1 == due and copied < len(copies.states)
            if is_due or t + 1 == flushed + FLUSH or t + 1 == steps.end:
                add_recent(totals, out, factor, n * count)
                flushed = t + 1
            if is_due:
                copy_into(copies.states[copied, k], s[k])
                copied, due = copied + 1, due + copies.every
    keep(log_level, level, recent, walk, saved)


class Lanes(Form):
    """s (K, N, B), with idle chains at the end; keys (K, 2, B)."""

    look_steps = 4

    def make_tables(self, source: Source) -> Flat:
        return source.flat

    def begin(self, seed: int, states: Array) -> tuple[Array, Array, Array]:
        blocks, size = lane_blocks(states.shape[1], self.real)
        s = in_blocks(states.astype(self.real, copy=False), blocks, size)
        return block_keys(seed, blocks, size), s, no_fields(self.real)

    def run_and_copy(self, request: Request, steps: Steps, copies: Copies, chains: Chains) -> None:
        run_lanes(self.tables, request, steps, chains, copies, request.chib or None)
