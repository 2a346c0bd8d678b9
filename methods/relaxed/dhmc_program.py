"""The generic program of DHMC: samples, dual averaging of the step size, and the tilt of burn-in."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from spinbench.api import Array, Backend, Key
from spinbench.methods.chain_program import ChainProgram
from spinbench.methods.relaxed.dhmc_dynamics import Point, Tilt, make_dynamics
from spinbench.methods.relaxed.step_size import StepSize, dual_averaging, final_step_size, restart_step_size
from spinbench.methods.relaxed.tables import (
    RelaxedTables,
    draw_position,
    gram_product,
    normals_per_draw,
    record_alpha,
)

if TYPE_CHECKING:
    from spinbench.methods.relaxed.dhmc import DHMC


class DHMCState(NamedTuple):
    """A point, the acceptance probability (C,) of the last proposal, and what burn-in adapts."""

    point: Point
    accept: Array
    step_size: StepSize
    tilt: Tilt | None


class DHMCProgram(ChainProgram):
    """The program's functions, which are pure: what belongs to chains is in their state."""

    def __init__(self, method: DHMC, backend: Backend) -> None:
        super().__init__(backend)
        self.method = method
        self.update_step_size = dual_averaging(backend.xp)
        self.dynamics = make_dynamics(method, backend)

    def init(self, key: Key, tables: RelaxedTables, start: Array) -> DHMCState:
        """x ~ p(x|s)."""
        xp, noise = self._xp, self._backend.normal(key, (normals_per_draw(tables), start.shape[1]))
        field = draw_position(xp, tables, start, noise)
        tilt = None
        if self.method.rotates:
            # Means of ½ before the first window of burn-in; any m leaves the law invariant, and a good one centres the
            # Gaussian.
            m = xp.zeros_like(field[:, :1]) + 0.5
            tilt = Tilt(m, gram_product(xp, tables, m), xp.zeros_like(field))
        point = self.dynamics.evaluate(tables, tilt, field)
        return DHMCState(point, xp.zeros_like(field[0, :]), restart_step_size(xp, tables.first_step), tilt)

    def step(self, key: Key, tables: RelaxedTables, state: DHMCState) -> DHMCState:
        """One trajectory and its Metropolis test."""
        xp, backend, jitter = self._xp, self._backend, self.method.relative_jitter
        old, step = state.point, state.step_size.step
        if jitter:
            v = backend.uniform(backend.fold_in(key, 2), state.accept.shape)
            step = step * (1.0 + jitter * (2.0 * v - 1.0))
        new, change = self.dynamics.integrate_trajectory(backend.fold_in(key, 0), tables, state.tilt, old, step)
        # A trajectory that diverged to NaN is rejected with acceptance 0: the comparison would reject it anyhow, but
        # NaN would enter the mean acceptance and then the step size.
        chance = xp.where(xp.isnan(change), 0.0 * step, xp.exp(xp.minimum(-change, 0.0)))
        accepted = backend.uniform(backend.fold_in(key, 1), chance.shape) < chance
        point = Point(*(xp.where(accepted, b, a) for a, b in zip(old, new, strict=True)))
        return state._replace(point=point, accept=chance)

    def warm(self, key: Key, tables: RelaxedTables, state: DHMCState) -> DHMCState:
        """A sample, then a step of dual averaging."""
        xp, method = self._xp, self.method
        state = self.step(key, tables, state)
        # All chains share one step size: C chains give as much information in one step as one chain in C steps.
        miss = method.target_acceptance - xp.mean(state.accept)
        step_size = self.update_step_size(state.step_size, method.adapts, miss, method.log_limit)
        tilt = state.tilt
        if tilt is not None:
            tilt = tilt._replace(total=tilt.total + state.point.p)
        return state._replace(step_size=step_size, tilt=tilt)

    def adapt(self, tables: RelaxedTables, state: DHMCState, last: bool) -> DHMCState:
        """A new tilt from a window's means; in the end the step size that is kept."""
        xp, step_size, tilt = self._xp, state.step_size, state.tilt
        step = step_size.step
        if self.method.adapts:
            step = final_step_size(xp, step_size)
        if last:
            return state._replace(step_size=step_size._replace(step=step))
        if tilt is None:
            return state
        mean = xp.mean(tilt.total, axis=1, keepdims=True) / xp.maximum(step_size.count, xp.ones_like(step_size.count))
        m = xp.where(step_size.count > 0.0, mean, tilt.m)
        tilt = Tilt(m, gram_product(xp, tables, m), xp.zeros_like(tilt.total))
        point = self.dynamics.evaluate(tables, tilt, state.point.position)
        return state._replace(point=point, step_size=restart_step_size(xp, step), tilt=tilt)

    def observe(self, tables: RelaxedTables, state: DHMCState) -> dict[str, Array]:
        """What `DHMC.reductions` lists."""
        point = state.point
        step = state.step_size.step + self._xp.zeros_like(state.accept)
        return {"p": point.p, "accept": state.accept, "step_size": step}

    def look(self, key: Key, tables: RelaxedTables, state: DHMCState) -> dict[str, Array]:
        """α, of which log Z is made."""
        return record_alpha(tables, state.point.u, self.method.log_z)
