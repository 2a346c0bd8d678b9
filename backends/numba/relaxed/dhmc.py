"""The Numba kernel of DHMC: what a run needs, made on the host; `trajectories` has the compiled part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spinbench.api import Backend, PairwiseModel, States
from spinbench.backends.numba.gibbs.form import Copies
from spinbench.backends.numba.relaxed import block_gibbs, factors, tiles, trajectories, units
from spinbench.backends.numba.simd import Array
from spinbench.backends.numpy import NumpyBackend
from spinbench.methods.relaxed import dhmc, dhmc_program
from spinbench.methods.relaxed.step_size import StepSize, final_step_size, restart_step_size
from spinbench.methods.relaxed.tables import RelaxedTables, gram_product, unit_log_odds


@dataclass
class DHMCState(block_gibbs.TiledState):
    """What chains follow, and where they are.

    total: sums of p over the window of burn-in, all tiles.
    """

    system: trajectories.System
    chains: trajectories.Chains
    step_size: StepSize
    total: Array


class DHMCKernel(block_gibbs.RelaxedKernel[DHMCState]):
    """`spinbench.methods.relaxed.dhmc.DHMC` with the same law, adaptation and statistics as its program."""

    _method: dhmc.DHMC

    def __init__(self, method: dhmc.DHMC, backend: Backend, model: PairwiseModel, tables: RelaxedTables) -> None:
        super().__init__(method, backend, model, tables)
        self._dynamics = dhmc_program.make_dynamics(method, NumpyBackend())
        self._settings = trajectories.Settings(
            leaps=method.leapfrog_steps,
            jitter=method.relative_jitter,
            adapts=method.adapts,
            target=method.target_acceptance,
            log_limit=method.log_limit,
        )

    def init(self, seed: int, start: States) -> DHMCState:
        """x ~ p(x|s) and all that follows from it are computed on the host, once."""
        layout, tables, m = self._layout(start.shape[1]), self._tables, np.full(len(start), 0.5)
        factor, groups = (
            factors.make_factor(tables, self._halves, layout),
            units.tile_one_of_k_groups(tables.sites, layout),
        )
        position = self._first_position(seed, start)
        frame, points = self._at(layout, position, m)
        return DHMCState(
            layout=layout,
            counter=np.uint64(0),
            system=trajectories.System(factor, frame, groups, layout.n),
            chains=trajectories.Chains(layout.chains, layout.keys(seed), points, layout.energies()),
            step_size=self._restart(tables.first_step),
            total=layout.zeros(),
        )

    def warm(self, state: DHMCState, steps: int) -> DHMCState:
        state.total += self._run(state, steps, self._copies(state.layout, steps + 1, 1, 0), warm=True).p
        return state

    def adapt(self, state: DHMCState, last: bool) -> DHMCState:
        layout, now = state.layout, state.step_size
        step = final_step_size(np, now) if self._method.adapts else now.step
        # Dual averaging ends with the average of the last window's steps (Hoffman and Gelman 2014), since the step must
        # not change while sampling.
        if last:
            state.step_size = now._replace(step=float(step))
        # The tilt follows the running marginals (docs/explanations/relaxation.md). A new tilt changes the potential, so
        # that dual averaging restarts.
        elif self._method.rotates:
            if now.count > 0:
                m = layout.gather(state.total).mean(axis=1) / now.count
                frame, points = self._at(layout, layout.gather(state.chains.points.position), m)
                state.system, state.chains = state.system._replace(frame=frame), state.chains._replace(points=points)
            state.step_size, state.total = self._restart(step), layout.zeros()
        return state

    def positions(self, state: DHMCState) -> Array:
        return state.chains.points.position

    def _alpha(self, positions: Array) -> Array:
        return super()._alpha(unit_log_odds(np, self._tables, positions))

    def sample(self, state: DHMCState, steps: int, copies: Copies) -> dict[str, Array]:
        sums, layout = self._run(state, steps, copies, warm=False), state.layout
        accept = layout.gather_energies(sums.accept)
        step_size = np.full_like(accept, state.step_size.step)
        return {"p": layout.gather(sums.p), "accept": accept, "step_size": step_size}

    def _restart(self, step: Array) -> StepSize:
        """Of plain numbers, as compiled code takes them."""
        return StepSize(*map(float, restart_step_size(np, step)))

    def _at(self, layout: tiles.Layout, position: Array, m: Array) -> tuple[trajectories.Frame, trajectories.Point]:
        """The columns of a tilt, and everything at a position (N, C), in float64; see the two `travel`."""
        tables, column = self._tables, layout.column
        shift = gram_product(np, tables, m[:, None]) if self._method.rotates else np.zeros((layout.n, 1))
        frame = trajectories.Frame(
            column(tables.bias, tiles.NEVER),
            column(m),
            column(shift[:, 0]),
            column(shift[:, 0] + tables.bias, tiles.NEVER),
        )
        tilt = dhmc_program.Tilt(m[:, None], shift, np.zeros_like(position))
        # Positions are rounded to the kernel's precision first, so that the evaluated point is that of the stored
        # position.
        state_point = self._dynamics.evaluate(tables, tilt, position.astype(self._real).astype(np.float64))
        x, p, push = (layout.scatter(v) for v in (state_point.position, state_point.p, state_point.push))
        return frame, trajectories.Point(x, p, push, layout.spread_energies(state_point.potential))

    def _run(self, state: DHMCState, steps: int, copies: Copies, *, warm: bool) -> trajectories.StepSums:
        layout = state.layout
        sums = trajectories.StepSums(layout.zeros(), layout.energies(), copies)
        u, velocity, work, position, p, push = (layout.tile() for _ in range(6))
        energy, potential = np.zeros((2, layout.lanes))
        target = trajectories.Point(position, p, push, potential)
        scratch = trajectories.Scratch(layout.tile(state.system.factor.noise), u, velocity, work, energy, target)
        counter, state.step_size = trajectories.take_samples(
            *(state.system, self._settings, state.chains, state.step_size, scratch, sums),
            *(state.counter, warm, steps),
        )
        state.counter = np.uint64(counter)
        return sums
