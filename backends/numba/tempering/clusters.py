"""Moves of clusters and Gibbs sweeps, replica by replica, by the compiled steps of `backends.numba.clusters`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from spinbench.backends.numba.clusters.moves import Flat, Work, flat_tables, move, set_levels, sweep, work_space
from spinbench.backends.numba.gibbs.shared import JIT
from spinbench.backends.numba.simd.functions import HALF
from spinbench.backends.numba.simd.random import chain_keys, fill_rows
from spinbench.backends.numba.tempering.swaps import LANES, Array, Asked, Ladder, Told, swap_rungs
from spinbench.mathematics.graphs.rows import compressed_rows
from spinbench.methods.clusters.swendsen_wang import Tables as PlannedTables
from spinbench.methods.tempering.clusters import ClusterTables
from spinbench.models import PairwiseModel


class Replicas(NamedTuple):
    """Of C ladders of S slots. Attributes: keys (S, C, 2) uint64; s (S, C, N), 0 and 1."""

    keys: Array
    s: Array


@nb.njit(**JIT)
def weigh_clusters(f, s, energy):
    """D of all states into energy (S, L), of its first C columns."""
    for k in range(s.shape[0]):
        for c in range(s.shape[1]):
            row, total = s[k, c], 0.0
            for i in range(row.size):
                if row[i] > HALF(row[i]):
                    total += f.biases[i]
                    for e in range(f.start[i], f.start[i + 1]):
                        total += 0.5 * f.weights[e] * row[f.columns[e]]
            energy[k, c] = total


@nb.njit(**JIT)
def run_clusters(f, replicas, w, told, asked, work, sums):
    """Steps of all ladders; sums (C, N) float64 gains what clusters at β = 1 give; work of one sweep."""
    (keys, s), sweeps = replicas, asked.sweeps
    rungs, (_, chains, n) = w.slot.shape[0], s.shape
    edges, each = f.first.size, work.u.size
    scratch, p = np.zeros((3, rungs, w.slot.shape[1])), np.empty_like(s[0, 0])
    levels = np.empty((rungs, edges), dtype=s.dtype)
    betas = np.empty(rungs, dtype=s.dtype)
    for r in range(rungs):
        betas[r] = w.betas[r]
        set_levels(f, betas[r], levels[r])
    for step in range(asked.steps.first, asked.steps.end):
        for r in range(rungs):
            own = Work(work.u, levels[r], work.chosen, work.parent, work.pull, work.keep)
            for c in range(chains):
                k = w.slot[r, c]
                for j in range(sweeps):
                    fill_rows(keys[k, c], np.uint64(step * sweeps + j) * np.uint64(each), work.u)
                    move(f, betas[r], s[k, c], p, own)
                    sweep(f, betas[r], s[k, c], work.u[edges + n : edges + 2 * n], work.pull)
                    if r == rungs - 1:
                        for i in range(n):
                            sums[c, i] += p[i] / sweeps
        weigh_clusters(f, s, w.energy)
        swap_rungs(w, told, step, False, scratch)


class Clusters:
    """Of one model and so many ladders of R rungs."""

    def __init__(
        self, model: PairwiseModel, tables: ClusterTables, real: np.dtype[Any], rungs: int, chains: int
    ) -> None:
        pairs = tables.pairs
        order, rows = pairs.order, compressed_rows(model, pairs.order)
        planned = PlannedTables(order, tables.bounds, pairs.sweep, tables.bonds)
        self._flat: Flat = flat_tables(planned, rows, model.biases[order], real)
        self._work, self._order, self._real = work_space(self._flat, 1), order, real
        self.ladders, self.slots, self.zeros = -(-chains // LANES) * LANES, rungs, False

    def begin(self, seed: int, starts: Array) -> Replicas:
        """From states of the variables (N, R, C)."""
        _, rungs, chains = starts.shape
        s = np.ascontiguousarray(np.moveaxis(starts[self._order], 0, 2), dtype=self._real)
        keys = chain_keys(seed, rungs * chains).T.reshape(rungs, chains, 2)
        return Replicas(np.ascontiguousarray(keys), s)

    def weigh(self, replicas: Replicas, w: Ladder) -> None:
        """D of all states, anew."""
        weigh_clusters(self._flat, replicas.s, w.energy)

    def states(self, replicas: Replicas, slots: Array) -> Array:
        """(N, C) states of the variables, of ladder c in slots[c]."""
        return np.asarray(replicas.s[slots, np.arange(len(slots))].T[np.argsort(self._order)])

    def run(self, replicas: Replicas, w: Ladder, told: Told, asked: Asked) -> Array:
        """The sums of p (N, L) at β = 1."""
        sums = np.zeros(replicas.s.shape[1:])
        run_clusters(self._flat, replicas, w, told, asked, self._work, sums)
        return sums.T
