"""The form "sites": chromatic sweeps of binary variables in vectors over the rows of a block, chain by chain.

The limit is that of `lanes`: 22 cycles for 16 updates in float32. What reaches it on lattices: neighbours are
loaded at a shift (`bands.Bands`), a gathered one costs as much as everything else together. Small models wait for the
latency of an update (about 130 cycles a colour), large ones for memory, 40 bytes an update.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spinbench.backends.numba.gibbs.bands import GATHERED, LANES, Bands, make_bands
from spinbench.backends.numba.gibbs.form import Chains, Form, Request, Source, Steps, no_fields
from spinbench.backends.numba.gibbs.shared import (
    FLUSH,
    INLINE,
    JIT,
    WRITTEN_OUT,
    add_recent,
    draw,
    log_add,
    row_keys,
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
    count_up,
    gather_indexed,
    keep,
    load,
    load_vector,
    pointers,
    row_numbers,
    softplus,
    store,
    total,
    zero_array,
    zeros_aligned,
)

# Number of rows whose terms of log T are summed in one vector: a float32 sum over a million rows would lose digits.
CHUNK = 1024


class Chain(NamedTuple):
    """Of one chain: pointers to states and recent sums, the key of its numbers.

    Attributes:
        averaged: as asked.
    """

    s: Address
    recent: Address
    start: Address
    gamma: int
    averaged: bool


@njit(**WRITTEN_OUT)
def _band_field(b, block, row, base, s):
    """a_i + Σ_j W_ij s_j of a vector of rows of a block, whose slots begin with row `base`."""
    x = load_vector(b.biases, row)
    for q in range(load(b.slots, block), load(b.slots, block + 1)):
        w, shift = load_vector(b.weights, load(b.offsets, q) + row - base), load(b.shifts, q)
        if shift != GATHERED:
            x = x + w * load_vector(s, row + shift)
        else:
            x = x + w * gather_indexed(s, b.columns, load(b.places, q) + row - base)
    return x


@njit(**WRITTEN_OUT)
def _inside(row, low, high, x):
    """Which of the rows from `row` on, as many as x has lanes, are low … high - 1."""
    lanes = count_up(x)
    return (lanes >= low - row) & (lanes < high - row)


@njit(**WRITTEN_OUT)
def _update_rows(b, chain, block, counter):
    """Update the rows of a block with the numbers of the step that begins at `counter`."""
    low, high, width = load(b.bounds, block), load(b.bounds, block + 1), vector_width(b.biases)
    base = low - low % 2
    for row in range(base, high, width):
        x = _band_field(b, block, row, base, chain.s)
        up, p = draw(x, row_numbers(chain.start, chain.gamma, counter, row, load(b.biases, 0)))
        spins = choose(up, ONE(p), ZERO(p))
        credit = p if chain.averaged else spins
        # Only the first and the last vector of a block contain rows of other blocks, whose states and sums must not
        # change.
        if row < low or row + width > high:
            inside = _inside(row, low, high, p)
            spins = choose(inside, spins, load_vector(chain.s, row))
            credit = choose(inside, credit, ZERO(p))
        store(chain.s, row, spins)
        store(chain.recent, row, load_vector(chain.recent, row) + credit)


@njit(**WRITTEN_OUT)
def _log_forced_rows(b, block, low, high, s):
    """Rows low … high - 1 of a block become s*; returns Σ log p(s*_i | rest) before they do."""
    base, width = load(b.bounds, block), vector_width(b.biases)
    base -= base % 2
    lost = load_vector(b.biases, 0) * ZERO(load(b.biases, 0))
    for row in range(low - low % 2, high, width):
        sign = load_vector(b.sign, row)
        part = softplus(sign * _band_field(b, block, row, base, s))
        inside = _inside(row, low, high, part)
        lost = lost + choose(inside, part, ZERO(part))
        forced = choose(sign < ZERO(sign), ONE(sign), ZERO(sign))
        store(s, row, choose(inside, forced, load_vector(s, row)))
    return -np.float64(total(lost))


@njit(**INLINE)
def _log_forced(b, request, s):
    """log T(s* <- s); the rows below `asked.tail` become s*."""
    level, block = request.fixed, 0
    while load(b.bounds, block) < request.tail:
        high = load(b.bounds, block + 1)
        for low in range(load(b.bounds, block), high, CHUNK):
            level += _log_forced_rows(b, block, low, min(low + CHUNK, high), s)
        block += 1
    return level


@njit(**JIT)
def run_sites(bands, request, steps, chains, chib):
    keys, s, _, _, sums, log_t = chains
    n = sums.shape[1]
    recent, mixed = zero_array(n + 3 * LANES, s.dtype), np.empty(s.shape[1], dtype=s.dtype)
    b, totals, forced = pointers(bands), address(recent, 0), address(mixed, bands.before)
    factor = sum_factor(request.averaged, s[0, 0])
    for c in range(sums.shape[0]):
        state, out = address(s, c * s.shape[1] + bands.before), address(sums, c * n)
        chain = Chain(state, totals, keys[c, 0], keys[c, 1], request.averaged)
        for t in range(steps.first, steps.end):
            # `chib` is None or True: for None Numba compiles no branch.
            if chib is not None:
                mixed[:] = s[c]
                log_t[c] = log_add(log_t[c], _log_forced(b, request, forced))
            for block in range(bands.bounds.size - 1):
                _update_rows(b, chain, block, np.uint64(t) * np.uint64(n + 1))
            if (t - steps.first) % FLUSH == FLUSH - 1:
                add_recent(totals, out, factor, n)
        add_recent(totals, out, factor, n)
    keep(recent, mixed)


@njit(**JIT)
def run_site_looks(bands, request, keys, step, s, logs):
    """As `looks.run_looks`, of s (C, M) into logs (2, C)."""
    blocks, recent = bands.bounds.size - 1, zero_array(bands.bounds[-1] + 3 * LANES, s.dtype)
    mixed, b = np.empty(s.shape[1], dtype=s.dtype), pointers(bands)
    counter, state = np.uint64(step) * np.uint64(bands.bounds[blocks] + 1), address(mixed, bands.before)
    for c in range(len(s)):
        mixed[:] = s[c]
        chain = Chain(state, address(recent, 0), keys[c, 0], keys[c, 1], False)
        # A loop over both sides, so that their common code is compiled once.
        for side in range(2):
            for block in range(blocks - 1, -1 if side else blocks - 1, -1):
                _update_rows(b, chain, block, counter)
            logs[side, c] = _log_forced(b, request, state)
    keep(recent, mixed)


class Sites(Form):
    """s with the columns before and after that `Bands` asks for."""

    looks_alone = True

    def make_tables(self, source: Source) -> Bands:
        order = source.tables.order
        biases = source.model.biases.astype(self.real)[order]
        sign = 1 - 2 * source.tables.mode.astype(self.real)
        return make_bands(source.rows, biases, sign, source.bounds)

    def begin(self, seed: int, states: Array) -> tuple[Array, Array, Array]:
        n, chains = states.shape
        before = self.tables.before
        s = zeros_aligned((chains, before + n + self.tables.after), self.real)
        s[:, before : before + n] = states.T
        return row_keys(seed, states), s, no_fields(self.real)

    def rows(self, s: Array, chains: int) -> Array:
        return super().rows(s[:, self.tables.before :], chains)

    def run(self, request: Request, steps: Steps, chains: Chains) -> None:
        run_sites(self.tables, request, steps, chains, request.chib or None)

    def looks(self, request: Request, keys: Array, step: int, s: Array, x: Array) -> Array:
        logs = np.empty((2, len(s)))
        run_site_looks(self.tables, request, keys, step, s, logs)
        return logs
