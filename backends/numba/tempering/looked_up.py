"""Sweeps of binary pairwise models of few neighbours by looking probabilities up: "pattern_lanes" of `gibbs` by rungs.

A table of probabilities is for one β. So a slot is a rung here, and keeps its β: replicas that swap exchange their
states, a word of 16 bits a variable. A vector of 32 lanes holds the ladders at one rung, or up to 16 of them at two, or
8 at four; which of these rungs a lane has are further bits of the pattern by which its row's entries are looked up.

D is a sum of look-ups, too: of each row that is 1, a_i + Σ_j W_ij s_j over earlier rows j, in fixed point. p is summed
in the vectors that hold the last rung alone.
"""

from __future__ import annotations

import numpy as np

from spinbench.backends.numba.gibbs.form import SUM, Flat, Steps
from spinbench.backends.numba.gibbs.pattern_lanes import (
    CHAINS,
    FLUSH,
    MARKS,
    PARTS,
    WORDS,
    Block,
    add_pieces,
    add_sums,
    draw_row,
    flush,
    pattern_of,
    word_pointers,
)
from spinbench.backends.numba.gibbs.shared import INLINE, JIT, block_keys
from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.simd import (
    Array,
    Real,
    address,
    empty_array,
    keep,
    load,
    load_lanes,
    load_vector,
    mix64,
    offset_pointer,
    store,
    zero_array,
    zeros_aligned,
)
from spinbench.backends.numba.tempering.replicas import Replicas
from spinbench.backends.numba.tempering.rung_tables import ROWS, Layout, Rows, RungTables
from spinbench.backends.numba.tempering.swaps import Ladder, Tally, swap_rungs

# A tuple of as many entries as a vector has lanes; only its type matters.
ALL = (0,) * CHAINS


@njit(**INLINE)
def _sweep_rows(g, rows, z, gamma, rung, last, cold, b, weights):
    """Rows rows[0] … rows[1] - 1, with the words that begin with mix(z)."""
    for i in range(rows[0], rows[1]):
        pattern = pattern_of(g.word_tables.near, i, g.around, b.s) | rung
        spins = draw_row(g.word_tables, i, pattern, mix64(z), b)
        z = z + gamma
        if last:
            # A row's part of D counts where it is 1.
            add_pieces(g.weights, i, g.parts, g.word_tables.shape, pattern, spins, weights)
        if cold:
            pieces, whole = g.word_tables.pieces, ~(pattern ^ pattern)
            recent = offset_pointer(b.recent, i * len(pieces) * CHAINS)
            add_pieces(g.word_tables.p, i, pieces, g.word_tables.shape, pattern, whole, recent)
    return z


@njit(**INLINE)
def _exchange(n, left, right, mask, part):
    """The states of the lanes that swap, of two vectors' rows; mask holds all bits of them."""
    chosen = load_lanes(mask, 0, part)
    for i in range(0, n * CHAINS, CHAINS):
        low, high = load_lanes(left, i, part), load_lanes(right, i, part)
        differ = (low ^ high) & chosen
        store(left, i, low ^ differ)
        store(right, i, high ^ differ)


@njit(**INLINE)
def _make_swap_mask(r, group, c, share, w, mask):
    """Whether any ladder of the group has swapped rungs r and r + 1, and all bits of those that have in mask[c …]."""
    swaps = False
    for k in range(group * share, (group + 1) * share):
        moved = w.slot[r, k] != r
        mask[c + k - group * share] = MARKS[2] if moved else MARKS[0]
        swaps |= moved
        w.slot[r, k], w.slot[r + 1, k] = r, r + 1
    return swaps


@njit(**JIT)
def _settle(first, part, groups, columns, w, s, mask):
    """States follow their replicas to the rungs first and first + 1, …, which swapped; slots are rungs again."""
    share, size, n, rungs = len(part), s.shape[1] * CHAINS, s.shape[1] - 1, w.slot.shape[0]
    for group in range(groups):
        for column in range(columns - 1):
            swaps, mask[:] = False, MARKS[0]
            for r in range(column, rungs - 1, columns):
                if r % 2 == first:
                    swaps |= _make_swap_mask(r, group, r // columns * share, share, w, mask)
            if swaps:
                v = (column * groups + group) * size
                _exchange(n, address(s, v), address(s, v + groups * size), address(mask, 0), ALL)
        for r in range(columns - 1, rungs - 1, columns):  # from the last vector to other lanes of the first
            if r % 2 == first and _make_swap_mask(r, group, 0, share, w, mask):
                c, v = r // columns * share, ((columns - 1) * groups + group) * size
                _exchange(n, address(s, v + c), address(s, group * size + c + share), address(mask, 0), part)


@njit(**JIT)
def run_looked_up(t, w, tally, steps, sweeps, replicas, rungs, groups, sums):
    """Steps of all ladders; sums (G, N, 32) float64 gains p of the vectors that hold the last rung."""
    keys, s = replicas
    n, columns, share = sums.shape[1], len(t.word_tables.thresholds), len(t.part)
    size, last_column = s.shape[1] * CHAINS, (w.slot.shape[0] - 1) % columns
    recent = zero_array((groups, n * len(t.word_tables.pieces) * CHAINS), np.uint16)
    weights_, energy_ = zero_array(len(t.parts) * CHAINS, np.uint16), zero_array(CHAINS, np.float64)
    patterns_, hashes_ = empty_array(CHAINS, np.uint16), empty_array(8, np.uint64)
    weights, energy = address(weights_, 0), address(energy_, 0)
    patterns, hashes = address(patterns_, 0), address(hashes_, 0)
    scratch, mask = zero_array((3, *w.slot.shape), np.float64), zero_array(CHAINS, np.uint16)
    rung = load_vector(address(rungs, 0), 0)
    summed = 0
    for step in range(steps.first, steps.end):
        for v in range(len(s)):
            column, group = v // groups, v % groups
            bit_words = word_pointers(
                t.word_tables, column * t.word_tables.thresholds.shape[1], column * t.word_tables.high.shape[1]
            )
            g = RungTables(bit_words, address(t.weights, 0), t.scale, t.around, t.parts, t.part)
            b = Block(address(s, v * size), address(recent[group], 0), patterns, hashes)
            start, gamma = load_lanes(address(keys, 16 * v), 0, WORDS), load_lanes(address(keys, 16 * v), 8, WORDS)
            for c in range(CHAINS):
                store(energy, c, 0.0)
            for j in range(sweeps):
                z, last = start + gamma * (np.uint64(step * sweeps + j) * np.uint64(n + 1)), j == sweeps - 1
                for low in range(0, n, ROWS):
                    rows = low, min(n, low + ROWS)
                    z = _sweep_rows(g, rows, z, gamma, rung, last, column == last_column, b, weights)
                    if last:
                        # The point of these pieces stands one bit further to the right.
                        add_sums(weights, g.parts, 2.0 * g.scale, True, energy)
            for r in range(column, w.slot.shape[0], columns):
                for c in range(share):
                    w.energy[r, group * share + c] = load(energy, r // columns * share + c)
        summed += sweeps
        if summed + sweeps > FLUSH or step == steps.end - 1:
            for group in range(groups):
                flush(t.word_tables.pieces, n, True, address(recent[group], 0), address(sums, group * n * CHAINS))
            summed = 0
        swap_rungs(w, tally, step, False, scratch)
        _settle(step % 2, t.part, groups, columns, w, s, mask)
    keep(recent, weights_, energy_, patterns_, hashes_, mask)


class LookedUp:
    """Of one model, by rows in float64, and so many ladders of R rungs."""

    def __init__(self, flat: Flat, order: Array, real: Real, rungs: int, layout: Layout) -> None:
        self._order, self._layout, self.slots = order, layout, rungs
        self.ladders = layout.share * layout.groups
        self._rows, self._n = Rows(flat, real, layout), len(flat.biases)
        self._betas = np.zeros(rungs)
        self._tables = self._rows.tables(self._betas)

    def begin(self, seed: int, starts: Array) -> Replicas:
        """Keys (G V, 2, 8), states (G V, N + 1, 32) uint16, 0 or all bits 1, from those of the variables (N, R, C)."""
        (n, rungs, chains), (_, groups, columns, _) = starts.shape, self._layout
        s = zeros_aligned((groups * columns, n + 1, CHAINS), np.dtype(np.uint16))
        for r in range(rungs):
            for k in range(chains):
                v, c = self._place(r, k)
                s[v, :n, c] = np.where(starts[self._order, r, k] > 0, MARKS[2], MARKS[0])
        return Replicas(block_keys(seed, len(s), CHAINS // len(PARTS)), s)

    def _place(self, rung: int, ladder: int) -> tuple[int, int]:
        """The vector, and the lane in it."""
        share, groups, columns, _ = self._layout
        return rung % columns * groups + ladder // share, rung // columns * share + ladder % share

    def weigh(self, replicas: Replicas, w: Ladder) -> None:
        """Sweeps find D themselves."""

    def states(self, replicas: Replicas, slots: Array) -> Array:
        """(N, C) states of the variables, of ladder c in slots[c]."""
        places = [self._place(rung, ladder) for ladder, rung in enumerate(slots.tolist())]
        rows = np.stack([replicas.x[v, : self._n, c] for v, c in places], axis=1)
        return np.asarray((rows != MARKS[0])[np.argsort(self._order)], dtype=np.int8)

    def run(self, replicas: Replicas, w: Ladder, tally: Tally, steps: Steps, sweeps: int) -> Array:
        """The sums of p (N, L) at β = 1."""
        share, groups, columns, width = self._layout
        sums = zeros_aligned((groups, self._n, CHAINS), SUM)
        bits = (np.arange(CHAINS) // share << width).astype(
            np.uint16
        )  # the rung's number, in the bits of a pattern above those of the neighbours
        run_looked_up(self._tables_at(w.betas), w, tally, steps, sweeps, replicas, bits, groups, sums)
        first = (len(w.betas) - 1) // columns * share
        return sums[:, :, first : first + share].swapaxes(0, 1).reshape(self._n, -1) / sweeps

    def _tables_at(self, betas: Array) -> RungTables:
        """Made anew where the ladder has moved."""
        if not np.array_equal(betas, self._betas):
            self._tables, self._betas = self._rows.tables(betas), betas.copy()
        return self._tables
