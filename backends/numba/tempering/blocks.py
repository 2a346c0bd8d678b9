"""Sweeps of blocks, by the compiled steps of `backends.numba.blocks`, in vectors of replicas."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from spinbench.backends.numba.blocks.maps import Maps, make_maps
from spinbench.backends.numba.blocks.steps import JIT, Chains, Steps, log_weights, run_steps
from spinbench.backends.numba.blocks.sums import Room, Weights, make_weights
from spinbench.backends.numba.simd.random import chain_keys
from spinbench.backends.numba.simd.vector_memory import LINE, aligned_zeros
from spinbench.backends.numba.tempering.swaps import Array, Asked, Ladder, Told, at_slots, swap_rungs
from spinbench.methods.tempering.blocks import BlockTables


class Factors(NamedTuple):
    """Of `methods.blocks.tables.Tables`: values; floored: the same with soft zeros; offsets, members, strides."""

    values: Array
    floored: Array
    offsets: Array
    members: Array
    strides: Array


class Plan(NamedTuple):
    """Attributes: maps, weights, room as of `run_steps`; blocks (m,) of a sweep; factors."""

    maps: Maps
    weights: Weights
    room: Room
    blocks: Array
    factors: Factors


class Replicas(NamedTuple):
    """G vectors of L lanes, number g L + l being ladder (g L + l) modulo the ladders: keys (G, 2, L), x (G, N, L)."""

    keys: Array
    x: Array


@nb.njit(**JIT)
def weigh_blocks(factors, x, w, zeros):
    """D of all states into w.energy, and whether they meet a hard zero into w.zeros."""
    rows = factors.offsets, factors.members, factors.strides
    w.energy[:] = log_weights(factors.floored, *rows, x).reshape(w.energy.shape)
    if zeros:
        exact = log_weights(factors.values, *rows, x).reshape(w.energy.shape)
        for k in range(exact.shape[0]):
            for c in range(exact.shape[1]):
                w.zeros[k, c] = exact[k, c] == -np.inf


@nb.njit(**JIT)
def run_blocks(plan, replicas, w, told, asked, zeros, sums):
    """Steps of all ladders; sums (N, K, ladders) gains the marginals given the rest of the replicas at β = 1."""
    (maps, weights, room, blocks, factors), (keys, x), sweeps = plan, replicas, asked.sweeps
    vectors, n, lanes = x.shape
    rungs, ladders = w.slot.shape
    scratch, wanted = np.zeros((3, rungs, ladders)), np.zeros((vectors, n, sums.shape[1], lanes))
    nowhere, logs = np.zeros((0, lanes), dtype=np.int64), np.zeros((vectors, lanes))
    for step in range(asked.steps.first, asked.steps.end):
        chains = Chains(x, keys, w.heat.reshape(vectors, lanes).astype(np.float64))
        wanted[:] = 0.0
        numbered = Steps(step * sweeps, (step + 1) * sweeps, True, -1.0)
        run_steps(maps, weights, room, blocks, chains, numbered, wanted, nowhere, logs)
        for c in range(ladders):
            place = np.int64(w.slot[rungs - 1, c]) * ladders + c
            sums[:, :, c] += wanted[place // lanes, :, :, place % lanes] / sweeps
        weigh_blocks(factors, x, w, zeros)
        swap_rungs(w, told, step, zeros, scratch)


class Blocks:
    """Of one model and so many ladders of R rungs."""

    def __init__(self, tables: BlockTables, real: np.dtype[Any], rungs: int, chains: int) -> None:
        t = tables.tables
        self._lanes, self._t, self.zeros = LINE // real.itemsize, t, tables.zeros is not None
        self.ladders, self.slots = -(-chains // self._lanes) * self._lanes, rungs
        maps, room = make_maps(t)
        rows = max(room.rows, len(t.states)) + 1
        W, T, A = (aligned_zeros((size, self._lanes), real) for size in (rows, room.entries, rows))
        bases, u = np.zeros(self._lanes, dtype=np.int64), np.zeros((len(t.places), self._lanes))
        lost = aligned_zeros((len(t.places), self._lanes), real)
        owner = np.repeat(np.arange(len(t.offsets)), np.diff(np.append(t.offsets, len(t.values))))
        factors = Factors(t.values, np.maximum(t.values, t.floors[owner]), t.offsets, t.members, t.strides)
        self._plan = Plan(maps, make_weights(t, real), Room(W, T, A, bases, u, lost), t.sweep, factors)

    def begin(self, seed: int, starts: Array) -> Replicas:
        """From states of the variables (N, R, C); idle ladders are like the first."""
        n, rungs, chains = starts.shape
        whole = np.repeat(starts[:, :, :1], self.ladders, axis=2).astype(np.int64)
        whole[:, :, :chains] = starts
        x = np.ascontiguousarray(whole.reshape(n, -1, self._lanes).swapaxes(0, 1))
        keys = chain_keys(seed, rungs * self.ladders).reshape(2, -1, self._lanes)
        return Replicas(np.ascontiguousarray(keys.swapaxes(0, 1)), x)

    def weigh(self, replicas: Replicas, w: Ladder) -> None:
        """D and hard zeros of all states, anew."""
        weigh_blocks(self._plan.factors, replicas.x, w, self.zeros)

    def states(self, replicas: Replicas, slots: Array) -> Array:
        """(N, C) states of the variables, of ladder c in slots[c]."""
        return at_slots(replicas.x, self.ladders, slots)

    def run(self, replicas: Replicas, w: Ladder, told: Told, asked: Asked) -> Array:
        """The sums of p (N K, L) at β = 1."""
        sums = np.zeros((replicas.x.shape[1], len(self._t.states), self.ladders))
        run_blocks(self._plan, replicas, w, told, asked, self.zeros, sums)
        return sums.reshape(-1, self.ladders)
