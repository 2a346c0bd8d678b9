"""The form "sites": chromatic sweeps of binary variables in vectors over the rows of a block, chain by chain.

The limit is that of `lanes`: 22 cycles for 16 updates in float32. What reaches it on lattices: neighbours are
loaded at a shift (`bands.Bands`), a gathered one costs as much as everything else together. Small models wait
for the latency of an update (about 130 cycles a colour). Large ones would wait for memory, 40 bytes an update; so where
there are two colours several sweeps run at once as a wave: each colour of a sweep follows the one before at a distance
of one chunk of rows, which is enough for all neighbours, and the rows in flight stay in the second-level cache.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spinbench.backends.numba.gibbs.bands import GATHERED, LANES, Bands, make_bands
from spinbench.backends.numba.gibbs.form import Chains, Form, Request, Source, Steps, no_fields, row_keys
from spinbench.backends.numba.gibbs.shared import (
    FLUSH,
    INLINE,
    JIT,
    WRITTEN_OUT,
    add_recent,
    draw,
    log_add,
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
    line_address,
    load,
    load_vector,
    row_numbers,
    softplus,
    store,
    total,
    zeros_aligned,
)

# Smallest number of rows of a chunk of the wave: 4 kB of float32 states, so that the overhead at the ends of a chunk is
# small.
CHUNK = 1024
# Sweeps of a wave of several chunks. Their chunks of both colours fit the second-level cache: at 40 bytes an update 8 ·
# 2 · 1024 rows are 640 kB of 1 MB.
WAVE_SWEEPS = 8


class Wave(NamedTuple):
    """How sweeps are cut.

    The sweeps' colours are numbered h = 0, 1, …; at time τ colour h works on chunk τ - h of its rows (wave), or on all
    its chunks before the next colour's (no wave).

    Attributes:
        sweeps: () at once.
        chunk: () rows.
        chunks: () of the largest block.
        lag: () time from a colour to the next.
        blocks: () colours of a sweep.
    """

    sweeps: int
    chunk: int
    chunks: int
    lag: int
    blocks: int


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
def near_states(b, q, row, base, s):
    """The states of the neighbours in slot q of rows row, row + 1, …; the slot begins with row `base`."""
    shift = load(b.shifts, q)
    if shift != GATHERED:
        return load_vector(s, row + shift)
    return gather_indexed(s, b.columns, load(b.places, q) + row - base)


@njit(**WRITTEN_OUT)
def _band_field(b, block, row, base, s):
    """a_i + Σ_j W_ij s_j of a vector of rows of a block."""
    x = load_vector(b.biases, row)
    for q in range(load(b.slots, block), load(b.slots, block + 1)):
        w = load_vector(b.weights, load(b.offsets, q) + row - base)
        x = x + w * near_states(b, q, row, base, s)
    return x


@njit(**WRITTEN_OUT)
def _inside(row, low, high, x):
    """Which of the rows from `row` on, as many as x has lanes, are low … high - 1."""
    lanes = count_up(x)
    return (lanes >= low - row) & (lanes < high - row)


@njit(**INLINE)
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


@njit(**WRITTEN_OUT)
def _update_rows(b, chain, block, low, high, counter):
    """Update rows low … high - 1 of a block with the numbers of the step that begins at `counter`."""
    base, width = load(b.bounds, block), vector_width(b.biases)
    base -= base % 2
    for row in range(low - low % 2, high, width):
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
def _force_rows(b, block, low, high, s):
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
        # In chunks: a float32 sum over a million rows would lose digits.
        for low in range(load(b.bounds, block), high, CHUNK):
            level += _force_rows(b, block, low, min(low + CHUNK, high), s)
        block += 1
    return level


@njit(**INLINE)
def _run_wave(b, chain, wave, first, sweeps, n):
    """`sweeps` sweeps from number `first` on."""
    last = sweeps * wave.blocks - 1
    # Colour h is block h % blocks of sweep h // blocks; counters replace the divisions.
    h_first, block_first, k_first = 0, 0, 0
    for time in range(wave.chunks + last * wave.lag):
        if time - h_first * wave.lag >= wave.chunks:
            h_first, block_first = h_first + 1, block_first + 1
            if block_first == wave.blocks:
                block_first, k_first = 0, k_first + 1
        h, block, k = h_first, block_first, k_first
        while h <= last and h * wave.lag <= time:
            low = load(b.bounds, block) + (time - h * wave.lag) * wave.chunk
            high = min(low + wave.chunk, load(b.bounds, block + 1))
            if low < high:
                _update_rows(b, chain, block, low, high, np.uint64(first + k) * np.uint64(n + 1))
            h, block = h + 1, block + 1
            if block == wave.blocks:
                block, k = 0, k + 1


@njit(**JIT)
def run_sites(bands, wave, request, steps, chains, chib):
    keys, s, _, _, sums, log_t = chains
    n = sums.shape[1]
    recent, mixed = np.zeros(n + 3 * LANES, dtype=s.dtype), np.empty(s.shape[1], dtype=s.dtype)
    b, totals, forced = _band_pointers(bands), line_address(recent), address(mixed, bands.before)
    factor = sum_factor(request.averaged, s[0, 0])
    for c in range(sums.shape[0]):
        state, out = address(s, c * s.shape[1] + bands.before), address(sums, c * n)
        chain = Chain(state, totals, keys[c, 0], keys[c, 1], request.averaged)
        summed = 0
        for first in range(steps.first, steps.end, wave.sweeps):
            sweeps = min(wave.sweeps, steps.end - first)
            # log T needs the states between sweeps, so that the wave has one sweep here. `chib` is None or True, for
            # which Numba compiles only one branch.
            if chib is not None:
                mixed[:] = s[c]
                log_t[c] = log_add(log_t[c], _log_forced(b, request, forced))
            _run_wave(b, chain, wave, first, sweeps, n)
            summed += sweeps
            if summed >= FLUSH:
                summed = 0
                add_recent(totals, out, factor, n)
        add_recent(totals, out, factor, n)
    keep(recent, mixed)


@njit(**JIT)
def run_site_looks(bands, request, keys, step, s, logs):
    """As `looks.run_looks`, of s (C, M) into logs (2, C)."""
    blocks, recent = bands.bounds.size - 1, np.zeros(bands.bounds[-1] + 3 * LANES, dtype=s.dtype)
    mixed, b = np.empty(s.shape[1], dtype=s.dtype), _band_pointers(bands)
    counter, state = np.uint64(step) * np.uint64(bands.bounds[blocks] + 1), address(mixed, bands.before)
    for c in range(len(s)):
        mixed[:] = s[c]
        chain = Chain(state, line_address(recent), keys[c, 0], keys[c, 1], False)
        # A loop over both sides, so that their common code is compiled once.
        for side in range(2):
            for block in range(blocks - 1, -1 if side else blocks - 1, -1):
                _update_rows(b, chain, block, load(b.bounds, block), load(b.bounds, block + 1), counter)
            logs[side, c] = _log_forced(b, request, state)
    keep(recent, mixed)


def plan_wave(bands: Bands, *, whole: bool) -> Wave:
    """How sweeps are cut; `whole` says whether something needs the states between two of them."""
    # Neighbours are at most `reach` rows away: a lag of one chunk guarantees that they are updated.
    chunk = -(-max(CHUNK, bands.reach) // LANES) * LANES
    # A wave has no advantage if the rows stay in the cache for a whole sweep.
    many = len(bands.biases) > 4 * WAVE_SWEEPS * chunk
    sweeps = WAVE_SWEEPS if many and bands.reach and not whole else 1
    chunks = max(1, -(-int(np.diff(bands.bounds).max(initial=0)) // chunk))
    return Wave(sweeps, chunk, chunks, 1 if sweeps > 1 else chunks, len(bands.bounds) - 1)


class Sites(Form):
    """s with the columns before and after that `Bands` asks for."""

    looks_alone = True

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._wave, self._whole = (plan_wave(self.tables, whole=whole) for whole in (False, True))

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
        run_sites(
            self.tables, self._whole if request.chib else self._wave, request, steps, chains, request.chib or None
        )

    def looks(self, request: Request, keys: Array, step: int, s: Array, x: Array) -> Array:
        logs = np.empty((2, len(s)))
        run_site_looks(self.tables, request, keys, step, s, logs)
        return logs
