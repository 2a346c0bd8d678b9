"""Sweeps of any factor graph by look-ups, in vectors over ladders, each lane at a β of its own.

The tables, and what is looked up in them, are those of `backends.numba.tables`. Slots stand side by side in blocks of
up to 64 lanes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from spinbench.backends.numba.gibbs.form import SUM, block_keys
from spinbench.backends.numba.gibbs.shared import FLUSH, INLINE, JIT, add_recent
from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.simd.functions import ONE, ZERO, exp
from spinbench.backends.numba.simd.memory import (
    address,
    aligned_zeros,
    keep,
    line_address,
    load,
    load_lanes,
    load_vector,
    store,
)
from spinbench.backends.numba.simd.vectors import choose
from spinbench.backends.numba.tables.layout import BLOCK, LANES, STATE, LaneTables, lane_tables
from spinbench.backends.numba.tables.look_ups import WORDS, Lane, binary_logits, pointers, weights_of
from spinbench.backends.numba.tables.sweeps import MOST, drawn_state, fill_numbers, sum_weights
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


class Numbers(NamedTuple):
    """Pointers to the streams of a block's random numbers, see `random.lane_numbers`, and a number of their type."""

    walker: Any
    gammas: Any
    kept: Any
    like: Any


@njit(**INLINE)
def _add(b, cold, row, c, credit):
    at = row * b.count + c
    mine = load_lanes(cold, c, WORDS)
    store(b.totals, at, load_lanes(b.totals, at, WORDS) + mine * credit)


@njit(**INLINE)
def _update(t, v, b, cold, c):
    """Variable v in 16 lanes from c on; `cold` points to what its probabilities count in each."""
    size, row = load(t.sizes, v), load(t.rows, v)
    none = load_vector(b.x, v * b.count + c) & 0
    if size == 2:
        down, up = binary_logits(t, v, b, c)
        u, beta = load_lanes(b.numbers, 0, WORDS), load_lanes(b.betas, c, WORDS)
        away = exp(beta * (down - up))
        odds = ONE(away) + away
        drawn = u * odds < choose(away < MOST(away), ONE(away), ZERO(away))
        store(b.x, v * b.count + c, choose(drawn, none + 1, none))
        _add(b, cold, row, c, ONE(odds) / odds)
    else:
        total = weights_of(t, v, b, c)
        drawn = drawn_state(b.weights, size, load_lanes(b.numbers, 0, WORDS) * total, total, none)
        store(b.x, v * b.count + c, drawn)
        for k in range(size):
            _add(b, cold, row + k, c, load_lanes(b.weights, 16 * k, WORDS) / total)


@njit(**INLINE)
def _sweep_block(t, order, b, cold, keys, counter, numbers):
    """keys (2, B)."""
    for c in range(b.count):
        store(numbers.walker, c, keys[0, c] + counter * keys[1, c])
    for q in range(order.size):
        for c in range(0, b.count, 16):
            fill_numbers(b.numbers, numbers.walker, numbers.gammas, numbers.kept, c, q % 2 == 1, numbers.like)
            _update(t, order[q], b, cold, c)


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
def run_graphs(model, replicas, w, told, asked, zeros, sums):
    """Steps of all ladders; sums (K, R, B) float64 gains p of the lanes at β = 1."""
    (t, order), (keys, x), steps, sweeps = model, replicas, asked.steps, asked.sweeps
    blocks, n, count = x.shape
    rows, width = sums.shape[1] * count, np.int64(t.sizes.max())
    scratch, exact = np.zeros((3, w.slot.shape[0], w.slot.shape[1])), np.zeros((blocks, count))
    walk, saved = np.empty(count + 8, dtype=np.uint64), np.empty(count + 16, dtype=np.uint32)
    shifts, numbers = np.zeros((blocks, count), dtype=np.uint32), np.empty(32, dtype=w.heat.dtype)
    weights = np.empty(16 * width + 16, dtype=w.heat.dtype)
    recent = np.zeros(blocks * rows + 16, dtype=w.heat.dtype)
    heat = w.heat.reshape(blocks, count)
    g, like = pointers(t), t.values[0]
    for step in range(steps.first, steps.end):
        for k in range(blocks):
            for c in range(count):
                shifts[k, c] = t.floored if heat[k, c] < 1 else np.uint32(0)
            b = Lane(
                count,
                address(x, k * n * count),
                line_address(recent[k * rows :]),
                address(w.heat, k * count),
                address(shifts, k * count),
                line_address(numbers),
                line_address(weights),
            )
            stream = Numbers(line_address(walk), address(keys, (2 * k + 1) * count), line_address(saved), like)
            for j in range(sweeps):
                counter = np.uint64(step * sweeps + j) * np.uint64(n + 1)
                _sweep_block(g, order, b, address(w.cold, k * count), keys[k], counter, stream)
        weigh_graphs(t, x, w, zeros, exact)
        swap_rungs(w, told, step, zeros, scratch)
        if (step - steps.first) % FLUSH == FLUSH - 1:
            add_recent(line_address(recent), address(sums, 0), 1.0 / sweeps, sums.size)
    add_recent(line_address(recent), address(sums, 0), 1.0 / sweeps, sums.size)
    keep(walk)
    keep(saved)
    keep(shifts)
    keep(numbers)
    keep(weights)
    keep(recent)


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
        blocks, _, size = replicas.x.shape
        sums = aligned_zeros((blocks, self._rows, size), SUM)
        run_graphs(self._model, replicas, w, told, asked, self.zeros, sums)
        found = sums.swapaxes(0, 1).reshape(self._rows, self.slots, self.ladders).sum(axis=1)
        return np.concatenate([found, np.zeros((1, self.ladders))])
