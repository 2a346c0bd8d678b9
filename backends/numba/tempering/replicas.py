"""Replicas in vectors over ladders, each lane at a β of its own: of binary pairwise models, and of any factor graph.

Pairwise models go by fields, as the form "lanes" of `gibbs`. What an update takes beyond that are two products, by β
and by whether the lane is at β = 1, whose p alone is summed, and the change of D. Factor graphs go by look-ups, with
the sweeps of `backends.numba.tables`. Slots stand side by side in blocks, so that an update has enough vectors to hide
an instruction's latency.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spinbench.api import PairwiseModel
from spinbench.backends.numba.gibbs.form import SUM, Flat, Steps, make_flat
from spinbench.backends.numba.gibbs.lanes import Block, Heat, update_row
from spinbench.backends.numba.gibbs.looks import lane_slopes
from spinbench.backends.numba.gibbs.shared import (
    CALLED,
    FLUSH,
    JIT,
    add_recent,
    block_keys,
    in_blocks,
    set_walk,
    sum_factor,
)
from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.simd import (
    Array,
    Real,
    address,
    empty_array,
    keep,
    pointers,
    zero_array,
    zeros_aligned,
)
from spinbench.backends.numba.tables.layout import LANES, STATE, LaneChains, lane_tables
from spinbench.backends.numba.tables.sweeps import Request, run_sweeps, sum_weights
from spinbench.backends.numba.tempering.swaps import Ladder, Tally, swap_rungs
from spinbench.mathematics.graphs.factor_tables import FactorTables
from spinbench.mathematics.graphs.rows import compressed_rows
from spinbench.mathematics.graphs.table_layouts import marginal_rows, sweep_order
from spinbench.methods.gibbs.sweeps import Tables as GibbsTables
from spinbench.methods.tempering.replicas import PairTables

# Smallest number of vectors of a block, if there are as many.
BLOCK_VECTORS = 4


class Replicas(NamedTuple):
    """K blocks of B lanes, of which lane g L + l is ladder l in the block's slot g: keys (K, 2, B), x (K, N, B)."""

    keys: Array
    x: Array


class Slots:
    """Where so many ladders of R rungs lie, in blocks of B lanes.

    Args:
        rungs, chains: of the ladders.
        lanes: of a vector.
        order: (N,) the variables in the order of the rows of states, whose type is `dtype`.
    """

    def __init__(self, rungs: int, chains: int, lanes: int, order: Array, dtype: np.dtype[np.number]) -> None:
        self._order, self._dtype = order, dtype
        self.ladders = -(-chains // lanes) * lanes
        blocks = max(1, rungs * self.ladders // (lanes * BLOCK_VECTORS))
        side = -(-rungs // blocks)
        self._blocks, self._size = -(-rungs // side), side * self.ladders
        self.slots = self._blocks * side

    def begin(self, seed: int, starts: Array) -> Replicas:
        """From states of the variables (N, R, C); idle ladders are like the last."""
        n, rungs, chains = starts.shape
        idle = (0, 0), (0, self.slots - rungs), (0, self.ladders - chains)
        whole = np.pad(starts[self._order].astype(self._dtype), idle, mode="edge").reshape(n, -1)
        return Replicas(block_keys(seed, self._blocks, self._size), in_blocks(whole, self._blocks, self._size))

    def states(self, replicas: Replicas, slots: Array) -> Array:
        """(N, C) states of the variables, of ladder c in slots[c]."""
        whole = replicas.x.swapaxes(0, 1).reshape(replicas.x.shape[1], -1, self.ladders)
        return np.asarray(whole[:, slots, np.arange(len(slots))][np.argsort(self._order)])


@njit(**JIT)
def run_pairs(f, replicas, w, tally, steps, sweeps, sums):
    """Steps of all ladders; sums (K, N, B) float64 gains p of the lanes at β = 1."""
    keys, s = replicas
    blocks, n, count = s.shape
    scratch = zero_array((3, w.slot.shape[0], w.slot.shape[1]), np.float64)
    recent, delta = zero_array(s.size, s.dtype), zero_array(count, s.dtype)
    walk, saved = empty_array(count, np.uint64), empty_array(count, np.uint32)
    walker, spare, deltas = address(walk, 0), address(saved, 0), address(delta, 0)
    energy = w.energy.reshape(blocks, count)
    change = zero_array(count, np.float64)
    g, factor = pointers(f), sum_factor(True, s[0, 0, 0]) / sweeps
    for t in range(steps.first, steps.end):
        if t % FLUSH == 0:  # rounding errors would accumulate
            lane_slopes(f, s, energy)
        for k in range(blocks):
            states, gammas = address(s, k * n * count), address(keys, (2 * k + 1) * count)
            b = Block(count, states, walker, gammas, spare, address(recent, k * n * count), deltas, deltas)
            heat = Heat(address(w.heat, k * count), address(w.cold, k * count), deltas)
            for j in range(sweeps):
                set_walk(keys[k], np.uint64(t * sweeps + j) * np.uint64(n + 1), walker)
                for i in range(n):
                    update_row(g, i, True, b, heat)
            change[:] = 0.0
            add_recent(deltas, address(change, 0), 1.0, count)
            energy[k] += change
        swap_rungs(w, tally, t, False, scratch)
        if (t - steps.first) % FLUSH == FLUSH - 1:
            add_recent(address(recent, 0), address(sums, 0), factor, s.size)
    add_recent(address(recent, 0), address(sums, 0), factor, s.size)
    keep(change, recent, delta, walk, saved)


def flat_tables(model: PairwiseModel, tables: PairTables, real: Real) -> Flat:
    """The model row by row."""
    n, rows = model.num_variables, compressed_rows(model, tables.order)
    planned = GibbsTables(tables.order, tables.sweep, None, np.zeros(n), np.array(0.0), np.array(0.0))
    return make_flat(model, planned, rows, real)


class Pairs(Slots):
    """Of one model and so many ladders of R rungs; states are 0 and 1 of the kernel's precision."""

    def __init__(self, model: PairwiseModel, tables: PairTables, real: Real, rungs: int, chains: int) -> None:
        super().__init__(rungs, chains, 64 // real.itemsize, tables.order, real)
        self._flat = flat_tables(model, tables, real)

    def weigh(self, replicas: Replicas, w: Ladder) -> None:
        """D of all states, anew."""
        lane_slopes(self._flat, replicas.x, w.energy.reshape(len(replicas.x), -1))

    def run(self, replicas: Replicas, w: Ladder, tally: Tally, steps: Steps, sweeps: int) -> Array:
        """The sums of p (N, L) at β = 1."""
        sums = zeros_aligned(replicas.x.shape, SUM)
        run_pairs(self._flat, replicas, w, tally, steps, sweeps, sums)
        by_slot = sums.swapaxes(0, 1).reshape(sums.shape[1], self.slots, self.ladders)
        return np.asarray(by_slot.sum(axis=1))


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


@njit(**CALLED)
def _add_cold(p, slots, share, sums):
    """sums (R, L) += share p (K, R, B) of the slots (L,) that are at β = 1."""
    count, ladders = p.shape[2], slots.size
    for k in range(ladders):
        lane = slots[k] * ladders + k
        for r in range(len(sums)):
            sums[r, k] += share * p[lane // count, r, lane % count]


@njit(**JIT)
def run_graphs(t, order, replicas, w, tally, steps, sweeps, zeros, sums):
    """Steps of all ladders; sums (R, L) float64 gains p at β = 1."""
    keys, x = replicas
    blocks, _, count = x.shape
    scratch = zero_array((3, w.slot.shape[0], w.slot.shape[1]), np.float64)
    exact, p = zero_array((blocks, count), np.float64), zero_array((blocks, len(sums), count), np.float64)
    chains = LaneChains(keys, x, w.heat.reshape(exact.shape))
    for step in range(steps.first, steps.end):
        p[:] = 0.0
        run_sweeps(t, order, Request(True, True, step * sweeps, (step + 1) * sweeps), chains, p)
        _add_cold(p, w.slot[-1], 1.0 / sweeps, sums)
        weigh_graphs(t, x, w, zeros, exact)
        swap_rungs(w, tally, step, zeros, scratch)


class Graphs(Slots):
    """Of one model and so many ladders of R rungs; states are uint32."""

    def __init__(self, graph: FactorTables, real: Real, rungs: int, chains: int) -> None:
        super().__init__(rungs, chains, LANES, np.arange(len(graph.cardinalities)), STATE)
        self._tables, self._sweep = lane_tables(graph, real), sweep_order(graph, "chromatic")[0]
        self._rows, self.zeros = len(marginal_rows(graph.cardinalities)[0]), bool(self._tables.floored)

    def weigh(self, replicas: Replicas, w: Ladder) -> None:
        """D and hard zeros of all states, anew."""
        weigh_graphs(self._tables, replicas.x, w, self.zeros, np.zeros(replicas.x.shape[::2]))

    def run(self, replicas: Replicas, w: Ladder, tally: Tally, steps: Steps, sweeps: int) -> Array:
        """The sums of p (M + 1, L) at β = 1; the last row is nothing."""
        sums = np.zeros((self._rows + 1, self.ladders))
        run_graphs(self._tables, self._sweep, replicas, w, tally, steps, sweeps, self.zeros, sums[:-1])
        return sums
