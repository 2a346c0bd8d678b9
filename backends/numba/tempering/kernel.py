"""Parallel tempering in compiled code, as `spinbench` calls it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from spinbench.api import Backend, Kernel, Model, States, to_pairwise
from spinbench.backends.numba.gibbs.form import Steps
from spinbench.backends.numba.simd import Array
from spinbench.backends.numba.tempering import looked_up, rung_tables, swaps
from spinbench.backends.numba.tempering.replicas import Graphs, Pairs, Replicas, flat_tables
from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.methods.gibbs.host_arrays import HostArrays
from spinbench.methods.tempering import ladders, program, pt
from spinbench.methods.tempering.replicas import PairTables

Form = looked_up.LookedUp | Pairs | Graphs
# Added to the seed for the random numbers of swaps.
SWAP_STREAM = 1 << 128


@dataclass
class TemperingState:
    """Ladders of one run; consumed by `advance`, `warm` and `adapt`.

    Attributes:
        step: steps so far, burn-in included.
        chains: ladders, without the idle ones.
        replicas: as their kind of sweep keeps them.
        ladder: where they stand.
        sums: of burn-in, since the last window's end.
    """

    step: int
    chains: int
    replicas: Replicas
    ladder: swaps.Ladder
    sums: ladders.Sums


class TemperingKernel(Kernel[program.Tables, TemperingState]):
    """All settings of `ParallelTempering`; float32 and float64."""

    def __init__(self, method: pt.ParallelTempering, backend: Backend, model: Model, tables: program.Tables) -> None:
        self._method, self._model, self._tables = method, model, tables
        self._real = np.dtype(backend.precision)
        self._made: dict[int, Form] = {}

    def init(self, seed: int, start: States) -> TemperingState:
        rungs, chains = len(self._tables.betas), start.shape[1]
        form = self._form_for(chains)
        starts = start[:, program.assign_start_ladders(np, rungs, chains)]
        ladder = swaps.begin_ladders(seed + SWAP_STREAM, self._tables.betas, form.slots, form.ladders, self._real)
        replicas = form.begin(seed, starts)
        form.weigh(replicas, ladder)
        return TemperingState(1, chains, replicas, ladder, _none(rungs, chains))

    def warm(self, state: TemperingState, steps: int) -> TemperingState:
        if steps:
            tally, _ = self._run(state, steps)
            before, chains_part = state.sums, slice(state.chains)
            state.sums = ladders.Sums(
                before.rejected + tally.rejected[:, chains_part],
                before.at + tally.at[:, chains_part],
                before.steps + steps,
            )
        return state

    def adapt(self, state: TemperingState, last: bool) -> TemperingState:
        ladder = state.ladder
        rungs = ladders.Ladders(HostArrays()).adapt_rungs(ladders.Rungs(ladder.betas, ladder.levels), state.sums)
        np.put_along_axis(ladder.heat, ladder.slot.astype(np.int64), rungs.betas[:, None].astype(self._real), axis=0)
        state.ladder = ladder._replace(betas=rungs.betas, levels=rungs.levels)
        return replace(state, sums=_none(len(rungs.betas), state.chains))

    def advance(self, state: TemperingState, steps: int) -> tuple[TemperingState, dict[str, Array]]:
        tally, p = self._run(state, steps)
        chains_part = slice(state.chains)
        levels = np.repeat(state.ladder.levels[:, None], state.chains, axis=1)
        statistics = {
            name: getattr(tally, name)[..., chains_part] for name in ("up", "down", "rejected", "trips", "lost")
        }
        return state, {"p": p[:, chains_part], "levels": levels, **statistics}

    def states(self, state: TemperingState) -> Array:
        """Of the replicas that stand at β = 1 now."""
        cold = state.ladder.slot[-1, : state.chains]
        return self._form_for(state.chains).states(state.replicas, cold)

    def _form_for(self, chains: int) -> Form:
        """Tables for so many ladders; those of another number are dropped."""
        if chains not in self._made:
            self._made = {chains: self._form(chains)}
        return self._made[chains]

    def _form(self, chains: int) -> Form:
        tables, rungs = self._tables.replicas, len(self._tables.betas)
        if isinstance(tables, PairTables):
            model = to_pairwise(self._model)
            layout = rung_tables.fit_layout(int(np.bincount(model.edges.ravel()).max(initial=0)), rungs, chains)
            if (
                self._method.sweeps <= rung_tables.MOST_SWEEPS
                and layout is not None
                and rung_tables.fit(model.num_variables, layout)
            ):
                flat = flat_tables(model, tables, np.dtype(np.float64))
                return looked_up.LookedUp(flat, tables.order, self._real, rungs, layout)
            return Pairs(model, tables, self._real, rungs, chains)
        return Graphs(factor_tables(self._model), self._real, rungs, chains)

    def _run(self, state: TemperingState, steps: int) -> tuple[swaps.Tally, Array]:
        form = self._form_for(state.chains)
        tally = swaps.zero_tally(len(state.ladder.betas), form.ladders)
        numbered = Steps(state.step, state.step + steps)
        p = form.run(state.replicas, state.ladder, tally, numbered, self._method.sweeps)
        state.step += steps
        return tally, p


def _none(rungs: int, chains: int) -> ladders.Sums:
    return ladders.Sums(np.zeros((rungs - 1, chains)), np.zeros((rungs, chains)), np.zeros(chains))
