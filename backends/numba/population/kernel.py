"""Annealed populations in compiled code, of any factor graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from spinbench.api import Backend, Kernel
from spinbench.backends.numba.population.runs import Course, add_run, anneal, make_particles
from spinbench.backends.numba.tables.layout import LaneChains, lane_chains, lane_tables
from spinbench.foundation import deadline
from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.mathematics.graphs.table_layouts import reported_rows, sweep_order
from spinbench.methods.population.program import Tables
from spinbench.methods.population.smc import Annealed
from spinbench.models import Model

Array = npt.NDArray[Any]
UPDATES = 2**22
"""Of variables in one call, which takes some 20 ms; a run of a large model may be given up after any."""


@dataclass
class PopulationState:
    """Attributes: step: runs so far; seed: of the run; lanes: the particles; populations: C."""

    step: int
    seed: int
    lanes: LaneChains
    populations: int


class AnnealedKernel(Kernel):
    """All settings of `Annealed`; float32 and float64. Weights are float64."""

    def __init__(self, method: Annealed, backend: Backend, model: Model, tables: Tables) -> None:
        self._method, self._real = method, np.dtype(backend.precision)
        graph = factor_tables(model)
        self._lanes = lane_tables(graph, self._real)
        self._order, _ = sweep_order(graph, "chromatic")
        self._betas, self._count = tables.betas.astype(self._real), len(tables.particles)
        self._sizes = graph.cardinalities
        self._shift = graph.log_constant + float(np.log(self._sizes).sum()) - float(tables.base)

    def init(self, seed: int, start: Array) -> PopulationState:
        """Wherever chains start, particles are drawn at β = 0."""
        zeros = np.zeros((len(self._sizes), start.shape[1] * self._count), dtype=np.int64)
        return PopulationState(0, seed, lane_chains(seed, zeros, self._real), start.shape[1])

    def warm(self, state: PopulationState, steps: int) -> PopulationState:
        """There is nothing to burn in."""
        state.step += steps
        return state

    def advance(self, state: PopulationState, steps: int) -> tuple[PopulationState, dict[str, Array]]:
        chains, last = state.populations, len(self._betas) - 1
        part = make_particles(state.lanes.x, chains, self._count)
        reported = int(np.select([self._sizes < 2, self._sizes == 2], [0, 1], self._sizes).sum())
        sums = np.zeros((len(part.spare), max(reported, 1), part.spare.shape[2]))
        z, square = np.full(chains, -np.inf), np.full(chains, -np.inf)
        p = np.full((sums.shape[1], chains), -np.inf)
        sweeps = (last - 1) * self._method.moves + 2
        together = max(1, UPDATES // (state.lanes.x.size * self._method.moves))
        for step in range(state.step, state.step + steps):
            u = np.random.default_rng((state.seed, step)).random((last, chains))
            course = Course(self._betas, self._order, self._method.moves, self._method.resample, step * sweeps)
            for begin in range(0, last + 1, together):
                deadline.check()
                anneal(self._lanes, course, state.lanes, u, part, sums, begin, begin + together)
            add_run(part, sums, z, square, p)
        state.step += steps
        shift = self._shift  # what is constant may stand in the factors here, in the base there
        p = self._of_all_states(z, p[:reported]) + shift
        return state, {"z": z + shift, "square": square + 2 * shift, "p": p}

    def _of_all_states(self, z: Array, p: Array) -> Array:
        """(M, C) from what is reported: of binary models state 1, else all states of each variable."""
        if (self._sizes == 2).all():
            return p
        variables, states = reported_rows(self._sizes)
        first = np.cumsum([0, *self._sizes])
        found = np.repeat(z[None, :], first[-1], axis=0)  # of variables of one state
        found[first[variables] + states] = p
        binary = np.flatnonzero(self._sizes[variables] == 2)
        with np.errstate(invalid="ignore", divide="ignore"):
            other = z + np.log1p(-np.minimum(np.exp(p[binary] - z), 1.0))
        found[first[variables[binary]]] = np.where(np.isfinite(z), other, -np.inf)
        return found
