"""Sweeps of any factor graph by look-ups, in vectors over ladders, each lane at a β of its own.

The tables, and what is looked up in them, are those of `backends.numba.tables`. Slots stand side by side in blocks of
up to 64 lanes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from spinbench.backends.numba.gibbs.form import block_keys
from spinbench.backends.numba.gibbs.shared import JIT
from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.simd.memory import aligned_zeros
from spinbench.backends.numba.tables.layout import BLOCK, LANES, STATE, LaneChains, LaneTables, lane_tables
from spinbench.backends.numba.tables.sweeps import Asked as Sweeps
from spinbench.backends.numba.tables.sweeps import run_sweeps, sum_weights
from spinbench.backends.numba.tempering.swaps import Array, Asked, Ladder, Told, at_slots, swap_rungs
from spinbench.mathematics.graphs.factor_tables import FactorTables
from spinbench.mathematics.graphs.table_layouts import reported_rows, sweep_order


class Model(NamedTuple):
    """Attributes: tables; order (N,) int64 of a sweep."""

    tables: LaneTables
    order: Array


class Replicas(NamedTuple):
    """K blocks of B lanes, of which lane g L + l is ladder l in the block's slot g: keys (K, 2, B), x (K, N, B)."""

    keys: Array
    x: Array


@njit(**JIT)
def weigh_graphs(t, x, w, zeros, exact):
    """D of all states into w.energy, and whether they meet a hard zero into w.zeros; exact (K, B) to work with."""
    sum_weights(t, True, x, w.energy.reshape(exact.shape))
    if zeros:
        sum_weights(t, False, x, exact)
        lost = w.zeros.reshape(exact.shape)
        for k in range(exact.shape[0]):
            for c in range(exact.shape[1]):
                lost[k, c] = exact[k, c] == -np.inf


@njit(**JIT)
def _add_cold(p, slots, share, sums):
    """sums (R, L) += share p (K, R, B) of the slots (L,) that are at β = 1."""
    count, ladders = p.shape[2], slots.size
    for k in range(ladders):
        lane = slots[k] * ladders + k
        for r in range(len(sums)):
            sums[r, k] += share * p[lane // count, r, lane % count]


@njit(**JIT)
def run_graphs(model, replicas, w, told, asked, zeros, sums):
    """Steps of all ladders; sums (R, L) float64 gains p at β = 1."""
    (t, order), (keys, x), steps, sweeps = model, replicas, asked.steps, asked.sweeps
    blocks, _, count = x.shape
    scratch, exact = np.zeros((3, w.slot.shape[0], w.slot.shape[1])), np.zeros((blocks, count))
    chains, p = LaneChains(keys, x, w.heat.reshape(exact.shape)), np.zeros((blocks, len(sums), count))
    for step in range(steps.first, steps.end):
        p[:] = 0.0
        run_sweeps(t, order, Sweeps(True, True, step * sweeps, (step + 1) * sweeps), chains, p)
        _add_cold(p, w.slot[-1], 1.0 / sweeps, sums)
        weigh_graphs(t, x, w, zeros, exact)
        swap_rungs(w, told, step, zeros, scratch)


class Graphs:
    """Of one model and so many ladders of R rungs."""

    def __init__(self, graph: FactorTables, real: np.dtype[Any], rungs: int, chains: int) -> None:
        tables, order = lane_tables(graph, real), sweep_order(graph, "chromatic")[0]
        self._model, self._rows = Model(tables, order), len(reported_rows(graph.cardinalities)[0])
        self.ladders = -(-chains // LANES) * LANES
        self._blocks = -(-rungs * self.ladders // BLOCK)
        self._side = -(-rungs // self._blocks)
        self._blocks = -(-rungs // self._side)
        self.slots = self._blocks * self._side
        self.zeros = bool(tables.floored)

    def begin(self, seed: int, starts: Array) -> Replicas:
        """From states of the variables (N, R, C); idle ladders are like the first."""
        n, rungs, chains = starts.shape
        whole = np.repeat(np.repeat(starts[:, :1, :1], self.slots, axis=1), self.ladders, axis=2)
        whole[:, :rungs, :] = starts[:, :, :1]
        whole[:, :rungs, :chains] = starts
        size = self._side * self.ladders
        x = aligned_zeros((self._blocks, n, size), STATE)
        x[:] = whole.reshape(n, self._blocks, size).swapaxes(0, 1)
        return Replicas(block_keys(seed, self._blocks, size), x)

    def weigh(self, replicas: Replicas, w: Ladder) -> None:
        """D and hard zeros of all states, anew."""
        weigh_graphs(self._model.tables, replicas.x, w, self.zeros, np.zeros(replicas.x.shape[::2]))

    def states(self, replicas: Replicas, slots: Array) -> Array:
        """(N, C) states of the variables, of ladder c in slots[c]."""
        return at_slots(replicas.x, self.ladders, slots)

    def run(self, replicas: Replicas, w: Ladder, told: Told, asked: Asked) -> Array:
        """The sums of p (M + 1, L) at β = 1; the last row is nothing."""
        sums = np.zeros((self._rows + 1, self.ladders))
        run_graphs(self._model, replicas, w, told, asked, self.zeros, sums[:-1])
        return sums
