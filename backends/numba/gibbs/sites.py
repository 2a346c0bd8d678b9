"""Chromatic sweeps of binary variables in vectors over the rows of a block, one chain after the other.

The limit is that of `sweeps`: 22 cycles for 16 updates in float32. What reaches it on lattices: neighbours are
loaded at a shift (`gibbs_bands.Bands`), a gathered one costs as much as everything else together. Small models wait
for the latency of an update (about 130 cycles a colour). Large ones would wait for memory, 40 bytes an update; so where
there are two colours several sweeps run at once as a wave: each colour of a sweep follows the one before at a distance
of one chunk of rows, which is enough for all neighbours, and the rows in flight stay in the second-level cache.

Arguments as in `sweeps`.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from spinbench.backends.numba.gibbs.bands import GATHERED, LANES, Bands
from spinbench.backends.numba.gibbs.sweeps import FLUSH, add_recent, draw, summed_factor
from spinbench.backends.numba.gibbs.units import INLINE, JIT, forced_field, log_add, pointers
from spinbench.backends.numba.simd.functions import ONE, ZERO, softplus
from spinbench.backends.numba.simd.memory import address, keep, load_table
from spinbench.backends.numba.simd.random import row_numbers
from spinbench.backends.numba.simd.vector_memory import (
    gather_states,
    line_address,
    load_state_vector,
    load_sum_vector,
    load_table_vector,
    store_state_vector,
    store_sum_vector,
)
from spinbench.backends.numba.simd.vectors import (
    choose,
    count_up,
    total,
)

CHUNK = 1024
"""Rows of a chunk of the wave, at least."""
WAVE_SWEEPS = 8
"""Sweeps of a wave of more than one chunk: their chunks of both colours fit the second-level cache."""


@nb.njit(**INLINE)
def log_forced_middle(f, s, head, tail):
    """Σ log p(s*_i | rest) of rows head … tail - 1 in the forced sweep."""
    total = 0.0
    for i in range(head, tail):
        total -= np.float64(softplus(load_table(f.sign, i) * forced_field(f, i, s)))
    return total


@nb.njit(**INLINE)
def _band_field(b, first_slot, last_slot, row, base, s):
    """a_i + Σ_j W_ij s_j of a vector of rows."""
    x = load_table_vector(b.biases, row)
    for q in range(first_slot, last_slot):
        w = load_table_vector(b.weights, load_table(b.offsets, q) + row - base)
        shift = load_table(b.shifts, q)
        if shift != GATHERED:
            x = x + w * load_state_vector(s, row + shift)
        else:
            x = x + w * gather_states(s, b.columns, load_table(b.places, q) + row - base)
    return x


@nb.njit(**INLINE)
def _inside(row, low, high, x):
    """Which of the rows from `row` on, as many as x has lanes, are low … high - 1."""
    lanes = count_up(x)
    return (lanes >= low - row) & (lanes < high - row)


@nb.njit(**INLINE)
def _band_pointers(b):
    """`Bands` with pointers in place of the arrays that inner loops use."""
    return Bands(
        address(b.bounds, 0),
        address(b.slots, 0),
        address(b.offsets, 0),
        address(b.shifts, 0),
        address(b.places, 0),
        address(b.columns, 0),
        address(b.weights, 0),
        address(b.biases, 0),
        address(b.sign, 0),
        b.before,
        b.after,
        b.reach,
    )


@nb.njit(**INLINE)
def _update_rows(b, block, low, high, start, gamma, counter, averaged, forced, s, recent, width):
    """Update rows low … high - 1 of a block; returns -Σ log p(s*_i | rest) as of the update over those below `forced`.

    `counter` is the step's; recent: pointer to the sums of the last sweeps.
    """
    first, last = load_table(b.slots, block), load_table(b.slots, block + 1)
    base = load_table(b.bounds, block)
    base -= base % 2
    away = load_table_vector(b.biases, 0) * ZERO(load_table(b.biases, 0))
    for row in range(low - low % 2, high, width):
        x = _band_field(b, first, last, row, base, s)
        whole = row >= low and row + width <= high
        if row < forced:
            part = softplus(load_table_vector(b.sign, row) * x)
            if not whole or row + width > forced:
                part = choose(_inside(row, low, min(high, forced), part), part, ZERO(part))
            away = away + part
        up, p = draw(x, row_numbers(start, gamma, counter, row, load_table(b.biases, 0)))
        drawn = choose(up, ONE(p), ZERO(p))
        credit = p if averaged else drawn
        if not whole:
            inside = _inside(row, low, high, p)
            drawn = choose(inside, drawn, load_state_vector(s, row))
            credit = choose(inside, credit, ZERO(p))
        store_state_vector(s, row, drawn)
        store_sum_vector(recent, row, load_sum_vector(recent, row) + credit)
    return np.float64(total(away))


@nb.njit(**JIT)
def run_sites(f, bands, wave, chunk, keys, first, steps, averaged, chib, head, tail, fixed, s, sums, log_t):
    """keys (C, 2); s (C, before + N + after); sums (C, N); wave: sweeps at once; chunk: rows, see `wave_of`.

    The sweeps' colours are numbered h = 0, 1, …; at time τ colour h works on chunk τ - h of its rows (wave), or all its
    chunks before the next colour's (no wave).
    """
    chains, n = sums.shape
    blocks = bands.bounds.size - 1
    width = 64 // s.itemsize
    recent = np.zeros(n + 3 * LANES, dtype=s.dtype)
    level = np.empty(wave)
    g, b, totals = pointers(f), _band_pointers(bands), line_address(recent)
    factor = summed_factor(averaged, s[0, 0])
    chunks = 1
    for block in range(blocks):
        chunks = max(chunks, (bands.bounds[block + 1] - bands.bounds[block] + chunk - 1) // chunk)
    lag = 1 if wave > 1 else chunks
    forced = head if chib else 0
    for c in range(chains):
        state = address(s, c * s.shape[1] + bands.before)
        start, gamma = keys[c, 0], keys[c, 1]
        summed = 0
        for begin in range(first, first + steps, wave):
            sweeps = min(wave, first + steps - begin)
            level[:] = fixed
            if chib and head < tail:  # one sweep at a time
                level[0] += log_forced_middle(g, state, head, tail)
            last = sweeps * blocks - 1
            h_first, block_first, k_first = 0, 0, 0  # colour h is block h % blocks of sweep k = h // blocks
            for time in range(chunks + last * lag):
                if time - h_first * lag >= chunks:
                    h_first, block_first = h_first + 1, block_first + 1
                    if block_first == blocks:
                        block_first, k_first = 0, k_first + 1
                h, block, k = h_first, block_first, k_first
                while h <= last and h * lag <= time:
                    low = load_table(b.bounds, block) + (time - h * lag) * chunk
                    high = min(low + chunk, load_table(b.bounds, block + 1))
                    if low < high:
                        counter = np.uint64(begin + k) * np.uint64(n + 1)
                        level[k] -= _update_rows(
                            b, block, low, high, start, gamma, counter, averaged, forced, state, totals, width
                        )
                    h, block = h + 1, block + 1
                    if block == blocks:
                        block, k = 0, k + 1
            if chib:
                for k in range(sweeps):
                    log_t[c] = log_add(log_t[c], level[k])
            summed += sweeps
            if summed >= FLUSH:
                summed = 0
                add_recent(totals, address(sums, c * n), factor, n)
        add_recent(totals, address(sums, c * n), factor, n)
    keep(recent)


def wave_of(bands: Bands, *, whole: bool) -> tuple[int, int]:
    """(sweeps of a wave, rows of a chunk).

    Args:
        bands: the tables.
        whole: whether something needs the states between two sweeps.
    """
    chunk = -(-max(CHUNK, bands.reach) // LANES) * LANES
    many = len(bands.biases) > 4 * WAVE_SWEEPS * chunk
    return (WAVE_SWEEPS if many and bands.reach and not whole else 1), chunk
