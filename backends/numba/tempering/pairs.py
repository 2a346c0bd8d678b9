"""Sweeps of binary pairwise models in vectors over ladders: the form "lanes" of `gibbs`, each lane at a β of its own.

Slots stand side by side in blocks, so that a row's update has enough vectors to hide an instruction's latency. What an
update takes beyond that of `gibbs` are two products, by β and by whether the lane is at β = 1, whose p alone is summed,
and the change of D.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from spinbench.backends.numba.gibbs.form import SUM, block_keys
from spinbench.backends.numba.gibbs.lanes import Block, Heat, set_walk, update_row
from spinbench.backends.numba.gibbs.looks import lane_slopes
from spinbench.backends.numba.gibbs.shared import (
    FLUSH,
    JIT,
    add_recent,
    pointers,
    summed_factor,
)
from spinbench.backends.numba.gibbs.tables import Flat, make_flat
from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.simd.memory import address, aligned_zeros, keep, line_address
from spinbench.backends.numba.tempering.swaps import Array, Asked, Ladder, Told, at_slots, swap_rungs
from spinbench.mathematics.graphs.rows import compressed_rows
from spinbench.methods.gibbs.sweeps import Tables as GibbsTables
from spinbench.methods.tempering.pairs import PairTables
from spinbench.models import PairwiseModel

BLOCK_VECTORS = 4
"""Vectors of a block, at least if there are as many."""


class Replicas(NamedTuple):
    """K blocks of B lanes, of which lane g L + l is ladder l in the block's slot g.

    Attributes:
        keys: (K, 2, B) uint64; s: (K, N, B) states 0 and 1.
    """

    keys: Array
    s: Array


@njit(**JIT)
def run_pairs(f, replicas, w, told, steps, sweeps, sums):
    """Steps of all ladders; sums (K, N, B) float64 gains p of the lanes at β = 1."""
    keys, s = replicas
    blocks, n, count = s.shape
    width = 64 // s.itemsize
    scratch = np.zeros((3, w.slot.shape[0], w.slot.shape[1]))
    recent, delta = np.zeros(s.size + width, dtype=s.dtype), np.zeros(count + width, dtype=s.dtype)
    walk, saved = np.empty(count + 8, dtype=np.uint64), np.empty(count + 16, dtype=np.uint32)
    walker, kept, deltas = line_address(walk), line_address(saved), line_address(delta)
    energy = w.energy.reshape(blocks, count)
    change = np.zeros(count)
    g, factor = pointers(f), summed_factor(True, s[0, 0, 0]) / sweeps
    for t in range(steps.first, steps.end):
        if t % FLUSH == 0:  # rounding would add up
            lane_slopes(f, s, energy)
        for k in range(blocks):
            states, gammas = address(s, k * n * count), address(keys, (2 * k + 1) * count)
            totals = line_address(recent[k * n * count :])
            b = Block(count, states, walker, gammas, kept, totals, deltas, deltas)
            heat = Heat(address(w.heat, k * count), address(w.cold, k * count), deltas)
            for j in range(sweeps):
                set_walk(keys[k], np.uint64(t * sweeps + j) * np.uint64(n + 1), b)
                for i in range(n):
                    update_row(g, i, True, b, heat)
            change[:] = 0.0
            add_recent(deltas, address(change, 0), 1.0, count)
            energy[k] += change
        swap_rungs(w, told, t, False, scratch)
        if (t - steps.first) % FLUSH == FLUSH - 1:
            add_recent(line_address(recent), address(sums, 0), factor, s.size)
    add_recent(line_address(recent), address(sums, 0), factor, s.size)
    keep(change)
    keep(recent)
    keep(delta)
    keep(walk)
    keep(saved)


def flat_tables(model: PairwiseModel, tables: PairTables, real: np.dtype[Any]) -> Flat:
    """The model row by row."""
    n, rows = model.num_variables, compressed_rows(model, tables.order)
    planned = GibbsTables(tables.order, tables.sweep, None, np.zeros(n), np.array(0.0), np.array(0.0))
    return make_flat(model, planned, rows, real)


class Pairs:
    """Of one model and so many ladders of R rungs."""

    def __init__(self, model: PairwiseModel, tables: PairTables, real: np.dtype[Any], rungs: int, chains: int) -> None:
        self._flat, self._order, self._real = flat_tables(model, tables, real), tables.order, real
        lanes = 64 // real.itemsize
        self.ladders = -(-chains // lanes) * lanes
        self._blocks = max(1, rungs * self.ladders // (lanes * BLOCK_VECTORS))
        self._side = -(-rungs // self._blocks)
        self._blocks = -(-rungs // self._side)
        self.slots = self._blocks * self._side
        self.zeros = False

    def begin(self, seed: int, starts: Array) -> Replicas:
        """From states of the variables (N, R, C)."""
        n, rungs, chains = starts.shape
        whole = np.zeros((n, self.slots, self.ladders))
        whole[:, :rungs, :chains] = starts[self._order]
        size = self._side * self.ladders
        s = aligned_zeros((self._blocks, n, size), self._real)
        s[:] = whole.reshape(n, self._blocks, size).swapaxes(0, 1)
        return Replicas(block_keys(seed, self._blocks, size), s)

    def weigh(self, replicas: Replicas, w: Ladder) -> None:
        """D of all states, anew."""
        lane_slopes(self._flat, replicas.s, w.energy.reshape(len(replicas.s), -1))

    def states(self, replicas: Replicas, slots: Array) -> Array:
        """(N, C) states of the variables, of ladder c in slots[c]."""
        return at_slots(replicas.s, self.ladders, slots)[np.argsort(self._order)]

    def run(self, replicas: Replicas, w: Ladder, told: Told, asked: Asked) -> Array:
        """The sums of p (N, L) at β = 1."""
        sums = aligned_zeros(replicas.s.shape, SUM)
        run_pairs(self._flat, replicas, w, told, asked.steps, asked.sweeps, sums)
        found = sums.swapaxes(0, 1).reshape(sums.shape[1], self.slots, self.ladders)
        return np.asarray(found.sum(axis=1))
