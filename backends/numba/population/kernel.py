"""Annealed populations in compiled code, of any factor graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from spinbench.api import Backend, Kernel
from spinbench.backends.numba.population.runs import Course, Seen, States, add_run, anneal, make_particles
from spinbench.backends.numba.tables.layout import LaneChains, lane_chains, lane_tables
from spinbench.foundation import deadline
from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.mathematics.graphs.table_layouts import reported_rows, state_rows, sweep_order
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
        self._sizes, self._states = graph.cardinalities, States(*state_rows(graph.cardinalities))
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
        sums = np.zeros((len(part.spare), len(reported_rows(self._sizes)[0]) + 1, part.spare.shape[2]))
        seen = Seen(*(np.full(shape, -np.inf) for shape in (chains, chains, (len(self._states.rows), chains))))
        sweeps = (last - 1) * self._method.moves + 2
        together = max(1, UPDATES // (state.lanes.x.size * self._method.moves))
        for step in range(state.step, state.step + steps):
            u = np.random.default_rng((state.seed, step)).random((last, chains))
            course = Course(self._betas, self._order, self._method.moves, self._method.resample, step * sweeps)
            for begin in range(0, last + 1, together):
                deadline.check()
                anneal(self._lanes, course, state.lanes, u, part, sums, begin, begin + together)
            add_run(part, sums, self._states, seen)
        state.step += steps
        shift = self._shift  # what is constant may stand in the factors here, in the base there
        return state, {"z": seen.z + shift, "square": seen.square + 2 * shift, "p": seen.p + shift}
