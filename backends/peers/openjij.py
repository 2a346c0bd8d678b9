"""OpenJij: single-spin-flip Metropolis sweeps of its simulated annealing at one temperature.

It pairs with `metropolis`, not with `gibbs`: its heat-bath updates, of `sample_hubo`, begin each read anew from
states of their own, so that chains cannot go on. As its sampler does, one system is kept, whose spins are set before
each read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from spinbench.api import Backend, BackendProfile, Model, to_pairwise
from spinbench.backends.peers import chains, library
from spinbench.methods.baselines.metropolis import Metropolis
from spinbench.methods.gibbs.graph_plan import GraphTables


class OpenJijBackend(library.LibraryBackend):
    """OpenJij."""

    name = "openjij"
    requires: ClassVar[tuple[str, ...]] = ("openjij",)
    profile = BackendProfile(packages=("openjij",))


class OpenJijMetropolis(chains.LibraryChains[np.ndarray]):
    """Sweeps in the order of the variables' numbers, one chain after another, each with a seed of its own."""

    chain_updates = 10_000
    allowed: ClassVar[Mapping[str, tuple[object, ...]]] = {"proposal": ("uniform",)}

    def __init__(self, method: Metropolis, backend: Backend, model: Model, tables: GraphTables) -> None:
        super().__init__(method, backend, model, tables)
        import openjij
        from openjij import cxxjij

        form = library.spin_form(to_pairwise(model))
        linear = {i: -float(h) for i, h in enumerate(form.h)}
        quadratic = {(int(i), int(j)): -float(J) for (i, j), J in zip(form.edges, form.J, strict=True)}
        problem = openjij.BinaryQuadraticModel(linear, quadratic, "SPIN", sparse=True)
        graph, _ = problem.get_cxxjij_ising_graph()
        self._place = np.array([problem.indices.index(v) for v in range(model.num_variables)])
        self._system = cxxjij.system.make_classical_ising([1] * model.num_variables, graph)
        self._run, self._solution = cxxjij.algorithm.Algorithm_SingleSpinFlip_run, cxxjij.result.get_solution

    def begin(self, states: np.ndarray) -> np.ndarray:
        spun = np.empty((states.shape[1], len(states)), dtype=np.int64)
        spun[:, self._place] = 2 * states.T - 1
        return spun

    def move(self, library_state: np.ndarray, steps: int, seed: int, beta: float) -> np.ndarray:
        seeds = np.random.default_rng(seed).integers(2**31, size=len(library_state)).tolist()
        for c, chain_seed in enumerate(seeds):
            self._system.reset_spins(library_state[c])
            self._run(self._system, chain_seed, [(beta, steps)])
            library_state[c] = self._solution(self._system)
        return library_state

    def read(self, library_state: np.ndarray) -> np.ndarray:
        return (library_state[:, self._place].T > 0).astype(np.int8)
