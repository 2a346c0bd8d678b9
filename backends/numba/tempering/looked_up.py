"""Sweeps of binary pairwise models of few neighbours by looking probabilities up: "pattern_lanes" of `gibbs` by rungs.

A table of probabilities is for one β. So a slot is a rung here, and keeps its β: replicas that swap exchange their
states, a word of 16 bits a variable. A vector of 32 lanes holds the ladders at one rung, or up to 16 of them at two, or
8 at four; which of these rungs a lane has are further bits of the pattern by which its row's entries are looked up.

D is a sum of look-ups, too: of each row that is 1, a_i + Σ_j W_ij s_j over earlier rows j, in fixed point. p is summed
in the vectors that hold the last rung alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from spinbench.backends.numba.gibbs.form import SUM, Steps, block_keys
from spinbench.backends.numba.gibbs.pattern_lanes import (
    CHAINS,
    FLUSH,
    MARKS,
    PARTS,
    WORDS,
    add_pieces,
    add_sums,
    draw_row,
    entries_of,
    pattern_of,
)
from spinbench.backends.numba.gibbs.patterns import (
    MAX_NEIGHBOURS,
    MOST_ENTRIES,
    PIECE,
    PIECES,
    all_patterns,
    as_thresholds,
    in_pieces,
    slots,
    with_spare,
)
from spinbench.backends.numba.gibbs.shared import INLINE, JIT
from spinbench.backends.numba.gibbs.tables import Flat
from spinbench.backends.numba.simd.memory import address, keep, load_field, load_sum, moved, store_field, store_sum
from spinbench.backends.numba.simd.random import mix64
from spinbench.backends.numba.simd.vector_memory import (
    aligned_zeros,
    line_address,
    load_field_vector,
    load_state_words,
    load_table_words,
    store_field_vector,
    store_state_vector,
)
from spinbench.backends.numba.tempering.swaps import Array, Asked, Ladder, Told, swap_rungs

FEWEST_LANES = 8
"""Ladders that a rung has room for."""
NARROW = 4
"""Neighbours that all rows have places for, so that there are fewer forms to compile."""
WEIGHT_PIECES = {np.dtype(np.float32): 3, np.dtype(np.float64): 4}
"""Of a number that D is summed of."""
MOST_SWEEPS = FLUSH
"""Between swaps, of which sums of pieces can be held."""
ROWS = 2 ** (PIECE - 1)
"""Whose numbers a sum of pieces holds, the highest with their sign."""


class Layout(NamedTuple):
    """Ladder k at rung r is lane (r // columns) share + k % share of vector (r % columns) groups + k // share.

    Attributes:
        share: lanes of a rung in a vector, 8, 16 or 32; groups: vectors that all ladders take.
        columns: vectors of each group; width: places of neighbours.
    """

    share: int
    groups: int
    columns: int
    width: int

    @property
    def bits(self) -> int:
        """Of a pattern, that tell the rung."""
        return (CHAINS // self.share).bit_length() - 1


def laid_out(widest: int, rungs: int, chains: int) -> Layout | None:
    """Of rows of so many neighbours at most; None where a look-up has no room, or half of all lanes would be idle."""
    width = NARROW if widest <= NARROW else MAX_NEIGHBOURS
    share = FEWEST_LANES if width == NARROW else CHAINS
    while share < min(chains, CHAINS):
        share *= 2
    groups = -(-chains // share)
    if widest > width or 2 * chains <= share * groups > FEWEST_LANES:
        return None
    return Layout(share, groups, -(-rungs * share // CHAINS), width)


def fit(n: int, layout: Layout) -> bool:
    """Whether the tables of n rows are small enough."""
    return layout.columns * n << (layout.width + layout.bits) <= MOST_ENTRIES


class Looked(NamedTuple):
    """P patterns are those of the neighbours, with the rung's bits above them.

    Attributes:
        near: (N D,) uint32, neighbours; N where there are fewer, a row that is always 0.
        thresholds, high: (V, N P) of each column, as in `gibbs.patterns`; the latter with what vectors read beyond.
        p: (N K P,) pieces of the probabilities at β = 1.
        weights: (N H P,) pieces of what D is summed of, over `most`.
        most: () float64.
        around, shape, pieces, parts, part: (0,) * D, the bits of P, K, H and the lanes of a rung, for their types.
    """

    near: Array
    thresholds: Array
    high: Array
    p: Array
    weights: Array
    most: float
    around: tuple[int, ...]
    shape: tuple[int, ...]
    pieces: tuple[int, ...]
    parts: tuple[int, ...]
    part: tuple[int, ...]


class Vectors(NamedTuple):
    """Attributes: keys (G V, 2, 8) uint64; s (G V, N + 1, 32) uint16, 0 or all bits 1; rungs (32,) uint16, the bits
    that tell them, in their places of a pattern."""

    keys: Array
    s: Array
    rungs: Array


class Block(NamedTuple):
    """Pointers of a vector: s; patterns and hashes for `decide`; recent (N, K, 32) pieces of p; weights (H, 32) of D."""

    s: Any
    patterns: Any
    hashes: Any
    recent: Any
    weights: Any


@nb.njit(**INLINE)
def _add_weight(g, i, pattern, drawn, to):
    """The pieces of row i's part of D, where it is 1."""
    for k in range(len(g.parts)):
        part = entries_of(g.weights, (i * len(g.parts) + k) << len(g.shape), pattern, g.shape) & drawn
        store_field_vector(to, k * CHAINS, load_field_vector(to, k * CHAINS) + part)


@nb.njit(**INLINE)
def _add_weights(pieces, parts, most, sums):
    """sums (32,) += the pieces' sums, which become 0; the highest have a sign."""
    unit = most / 2.0 ** (PIECE - 1)
    for k in range(len(parts)):
        for c in range(CHAINS):
            part = np.float64(load_field(pieces, k * CHAINS + c))
            if k == 0 and part >= 2.0**15:
                part -= 2.0**16
            store_sum(sums, c, load_sum(sums, c) + unit * part)
            store_field(pieces, k * CHAINS + c, np.uint16(0))
        unit = unit / 2.0**PIECE


@nb.njit(**INLINE)
def _sweep_rows(g, rows, z, gamma, rung, last, cold, b):
    """Rows rows[0] … rows[1] - 1, with the words that begin with mix(z)."""
    for i in range(rows[0], rows[1]):
        pattern = pattern_of(g.near, i, g.around, b.s) | rung
        drawn = draw_row(g, i, pattern, mix64(z), b)
        z = z + gamma
        if last:
            _add_weight(g, i, pattern, drawn, b.weights)
        if cold:
            add_pieces(g.p, i, g, pattern, moved(b.recent, i * len(g.pieces) * CHAINS))
    return z


@nb.njit(**INLINE)
def _sweep(g, n, counter, keys, rung, last, cold, b, energy):
    """energy (32,) becomes D, if it is the last sweep before a swap."""
    gamma = load_table_words(keys, 8, WORDS)
    z = load_table_words(keys, 0, WORDS) + gamma * counter
    for low in range(0, n, ROWS):
        z = _sweep_rows(g, (low, min(n, low + ROWS)), z, gamma, rung, last, cold, b)
        if last:
            _add_weights(b.weights, g.parts, g.most, energy)


@nb.njit(**INLINE)
def _exchange(n, left, right, mask, part):
    """The states of the lanes that swap, of two rungs' rows of 32; mask holds all bits of them."""
    chosen = load_state_words(mask, 0, part)
    for i in range(0, n * CHAINS, CHAINS):
        low, high = load_state_words(left, i, part), load_state_words(right, i, part)
        differ = (low ^ high) & chosen
        store_state_vector(left, i, low ^ differ)
        store_state_vector(right, i, high ^ differ)


@nb.njit(**INLINE)
def _place(r, group, groups, columns, share):
    """(vector, first lane) of a rung and group of ladders."""
    return r % columns * groups + group, r // columns * share


@nb.njit(**JIT)
def _settle(first, part, groups, columns, w, s, mask):
    """States follow their replicas to the rungs first and first + 1, …, which swapped; slots are rungs again."""
    share, size = len(part), s.shape[1] * CHAINS
    for r in range(first, w.slot.shape[0] - 1, 2):
        for group in range(groups):
            swaps = False
            for c in range(share):
                k = group * share + c
                there = w.slot[r, k] != r
                mask[c] = MARKS[2] if there else MARKS[0]
                swaps |= there
                w.slot[r, k], w.slot[r + 1, k] = r, r + 1
            if swaps:
                (v, c), (u, d) = _place(r, group, groups, columns, share), _place(r + 1, group, groups, columns, share)
                left, right = address(s, v * size + c), address(s, u * size + d)
                _exchange(s.shape[1] - 1, left, right, address(mask, 0), part)


@nb.njit(**JIT)
def _flush(recent, pieces, n, sums):
    """sums (N, 32) += the recent ones (N, K, 32), which become 0."""
    for i in range(n):
        add_sums(moved(line_address(recent), i * len(pieces) * CHAINS), pieces, 1.0, address(sums, i * CHAINS))


@nb.njit(**JIT)
def run_looked_up(t, w, told, steps, sweeps, vectors, groups, sums):
    """Steps of all ladders; sums (G, N, 32) float64 gains p of the vectors that hold the last rung."""
    keys, s, rungs = vectors
    n, columns, share = sums.shape[1], len(t.thresholds), len(t.part)
    size, last_column = s.shape[1] * CHAINS, (w.slot.shape[0] - 1) % columns
    recent = np.zeros((groups, (n * len(t.pieces) + 2) * CHAINS), dtype=np.uint16)
    weights_, energy_ = np.zeros((len(t.parts) + 2) * CHAINS, dtype=np.uint16), np.zeros(CHAINS + 8)
    patterns_, hashes_ = np.empty(2 * CHAINS, dtype=np.uint16), np.empty(16, dtype=np.uint64)
    weights, energy = line_address(weights_), line_address(energy_)
    patterns, hashes = line_address(patterns_), line_address(hashes_)
    scratch, mask = np.zeros((3, *w.slot.shape)), np.zeros(CHAINS, dtype=np.uint16)
    rung = load_field_vector(address(rungs, 0), 0)
    summed = 0
    for step in range(steps.first, steps.end):
        for v in range(len(s)):
            column, group = v // groups, v % groups
            g = Looked(
                address(t.near, 0),
                address(t.thresholds, column * t.thresholds.shape[1]),
                address(t.high, column * t.high.shape[1]),
                address(t.p, 0),
                address(t.weights, 0),
                t.most,
                t.around,
                t.shape,
                t.pieces,
                t.parts,
                t.part,
            )
            b = Block(address(s, v * size), patterns, hashes, line_address(recent[group]), weights)
            for c in range(CHAINS):
                store_sum(energy, c, 0.0)
            for j in range(sweeps):
                counter = np.uint64(step * sweeps + j) * np.uint64(n + 1)
                own, cold = address(keys, 16 * v), column == last_column
                _sweep(g, n, counter, own, rung, j == sweeps - 1, cold, b, energy)
            for r in range(column, w.slot.shape[0], columns):
                for c in range(share):
                    w.energy[r, group * share + c] = load_sum(energy, r // columns * share + c)
        summed += sweeps
        if summed + sweeps > FLUSH or step == steps.end - 1:
            for group in range(groups):
                _flush(recent[group], t.pieces, n, sums[group])
            summed = 0
        swap_rungs(w, told, step, False, scratch)
        _settle(step % 2, t.part, groups, columns, w, s, mask)
    keep(recent)
    keep(weights_)
    keep(energy_)
    keep(patterns_)
    keep(hashes_)
    keep(mask)


class LookedUp:
    """Of one model, by rows in float64, and so many ladders of R rungs."""

    zeros = False

    def __init__(self, flat: Flat, order: Array, real: np.dtype[Any], rungs: int, layout: Layout) -> None:
        self._order, self._real, self._layout, self.slots = order, real, layout, rungs
        self.ladders = layout.share * layout.groups
        self._near, couplings, later = slots(flat, layout.width)
        patterns = all_patterns(layout.width)
        self._fields = flat.biases[:, None] + couplings @ patterns
        self._weights = flat.biases[:, None] + np.where(later, 0.0, couplings) @ patterns
        self._betas, self._tables = np.empty(0), None

    def begin(self, seed: int, starts: Array) -> Vectors:
        """From states of the variables (N, R, C)."""
        (n, rungs, chains), (share, groups, columns, width) = starts.shape, self._layout
        s = aligned_zeros((groups * columns, n + 1, CHAINS), np.dtype(np.uint16))
        for r in range(rungs):
            for k in range(chains):
                v, c = r % columns * groups + k // share, r // columns * share + k % share
                s[v, :n, c] = np.where(starts[self._order, r, k] > 0, MARKS[2], MARKS[0])
        which = (np.arange(CHAINS) // share << width).astype(np.uint16)
        return Vectors(block_keys(seed, len(s), CHAINS // len(PARTS)), s, which)

    def weigh(self, vectors: Vectors, w: Ladder) -> None:
        """Sweeps find D themselves."""

    def run(self, vectors: Vectors, w: Ladder, told: Told, asked: Asked) -> Array:
        """The sums of p (N, L) at β = 1."""
        share, groups, columns, _ = self._layout
        sums = aligned_zeros((groups, len(self._near), CHAINS), SUM)
        tables, steps = self._tables_at(w.betas), Steps(asked.steps.first, asked.steps.end)
        run_looked_up(tables, w, told, steps, asked.sweeps, vectors, groups, sums)
        first = (len(w.betas) - 1) // columns * share
        return sums[:, :, first : first + share].swapaxes(0, 1).reshape(len(self._near), -1) / asked.sweeps

    def _tables_at(self, betas: Array) -> Looked:
        """Made anew where the ladder has moved."""
        if self._tables is None or not np.array_equal(betas, self._betas):
            self._tables, self._betas = self._made(betas), betas.copy()
        return self._tables

    def _made(self, betas: Array) -> Looked:
        share, _, columns, width = self._layout
        n, held = len(self._near), CHAINS // share
        by_column = np.zeros((held, columns))
        by_column.ravel()[: len(betas)] = betas
        with np.errstate(over="ignore"):
            p = 1 / (1 + np.exp(-by_column.T[:, None, :, None] * self._fields[:, None, :]))
            cold = 1 / (1 + np.exp(-np.tile(self._fields, held)))
        thresholds = as_thresholds(p).reshape(columns, -1)
        high = np.stack([with_spare((own >> np.uint64(48)).astype(np.uint16)) for own in thresholds])
        pieces, parts, bits = PIECES[self._real], WEIGHT_PIECES[self._real], width + self._layout.bits
        most = float(np.abs(self._weights).max(initial=1e-300))
        signed = _signed_pieces(np.tile(self._weights, held) / most, parts)
        shapes = (0,) * width, (0,) * bits, (0,) * pieces, (0,) * parts, (0,) * share
        return Looked(self._near.ravel(), thresholds, high, in_pieces(cold, pieces), signed, most, *shapes)


def _signed_pieces(values: Array, parts: int) -> Array:
    """Of (n, P) numbers in [-1, 1]: (n parts P,) uint16 and what vectors may read beyond."""
    half = 2.0 ** (PIECE * parts - 1)
    fixed = np.clip(np.rint(values * half), -half, half - 1).astype(np.int64)
    shifts = np.arange(PIECE * (parts - 1), -1, -PIECE)
    found = fixed[:, None, :] >> shifts[:, None]
    found[:, 1:] &= 2**PIECE - 1
    return with_spare(found.astype(np.int16).view(np.uint16).ravel())
