"""Swendsen-Wang in compiled code: whole batches of steps of all chains in one call."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spinbench.api import Backend, Kernel
from spinbench.backends.numba.clusters.moves import Asked, flat_tables, run_clusters, work_space
from spinbench.backends.numba.gibbs.form import Steps
from spinbench.backends.numba.simd.random import chain_keys
from spinbench.backends.numba.tables.layout import Array
from spinbench.mathematics.graphs.rows import compressed_rows
from spinbench.mathematics.graphs.sweep_layouts import by_variable
from spinbench.methods.clusters.swendsen_wang import SwendsenWang, Tables
from spinbench.models import PairwiseModel


@dataclass
class ClusterState:
    """Chains of one run; consumed by `advance` and `warm`.

    Attributes:
        step: steps so far, burn-in included.
        keys: (C, 2) uint64, of random numbers.
        s: (C, N) 0 and 1 of the kernel's precision.
    """

    step: int
    keys: Array
    s: Array


class SwendsenWangKernel(Kernel):
    """All settings of `SwendsenWang`; float32 and float64."""

    def __init__(self, method: SwendsenWang, backend: Backend, model: PairwiseModel, tables: Tables) -> None:
        self._real = np.dtype(backend.precision)
        self._tables = tables
        self._asked = Asked(method.marginals == "rao_blackwell", method.sweeps)
        rows = compressed_rows(model, tables.order)
        self._flat = flat_tables(tables, rows, model.biases[tables.order], self._real)

    def init(self, seed: int, start: Array) -> ClusterState:
        states = start[self._tables.order].T.astype(self._real)
        return ClusterState(0, chain_keys(seed, start.shape[1]).T.copy(), np.ascontiguousarray(states))

    def advance(self, state: ClusterState, steps: int) -> tuple[ClusterState, dict[str, Array]]:
        sums = np.zeros(state.s.shape)
        numbered = Steps(state.step, state.step + steps)
        work = work_space(self._flat, self._asked.sweeps)
        run_clusters(self._flat, self._asked, numbered, state.keys, state.s, sums, work)
        state.step += steps
        return state, {"p" if self._asked.averaged else "s": sums.T}

    def states(self, state: ClusterState) -> Array:
        return by_variable(self._tables.order, state.s.T)
