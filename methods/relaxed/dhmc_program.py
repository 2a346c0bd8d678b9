"""The generic program of DHMC: samples, dual averaging of the step size, and the tilt of burn-in."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from spinbench.api import Array, Backend, Key, Program
from spinbench.methods.relaxed import family
from spinbench.methods.relaxed.dhmc_dynamics import Leapfrog, Point, Rotation, Tilt
from spinbench.methods.relaxed.dhmc_tables import GAMMA, KAPPA, T0, DHMCTables

if TYPE_CHECKING:
    from spinbench.methods.relaxed.dhmc import DHMC


class StepSize(NamedTuple):
    """Dual averaging; all scalars of the backend's real type.

    step: used now. centre: μ = log(10 step at the start). error: H, mean of target - acceptance. log_average: of the
    iterates. count: burn-in steps since the start.
    """

    step: Array
    centre: Array
    error: Array
    log_average: Array
    count: Array


class DHMCState(NamedTuple):
    """A point, the acceptance probability (C,) of the last proposal, and what burn-in adapts."""

    point: Point
    accept: Array
    step_size: StepSize
    tilt: Tilt | None


def build(method: DHMC, backend: Backend) -> Program:
    """The program for `method` on `backend`."""
    chains = _Chains(method, backend)
    return Program(init=chains.init, step=chains.sample, observe=chains.observe, warm=chains.warm, adapt=chains.adapt)


class _Chains:
    """The program's functions, which are pure: what belongs to chains is in their state."""

    def __init__(self, method: DHMC, backend: Backend) -> None:
        self.method, self.backend, self.xp = method, backend, backend.xp
        self.dynamics: Leapfrog | Rotation = (Rotation if method.rotates else Leapfrog)(method, backend)

    def init(self, key: Key, tables: DHMCTables, start: Array) -> DHMCState:
        """x ~ p(x|s)."""
        xp, field = self.xp, self.dynamics.draw(key, tables, start)
        tilt = None
        if self.method.rotates:
            m = xp.zeros_like(field[:, :1]) + 0.5
            tilt = Tilt(m, self.dynamics.product(tables, m), xp.zeros_like(field))
        point = self.dynamics.evaluate(tables, tilt, field)
        return DHMCState(point, xp.zeros_like(field[0, :]), self._restart(tables.first_step), tilt)

    def sample(self, key: Key, tables: DHMCTables, state: DHMCState) -> DHMCState:
        """One trajectory and its Metropolis test."""
        xp, backend, jitter = self.xp, self.backend, self.method.relative_jitter
        old, step = state.point, state.step_size.step
        if jitter:
            v = backend.uniform(backend.fold_in(key, 2), state.accept.shape)
            step = step * (1.0 + jitter * (2.0 * v - 1.0))
        new, change = self.dynamics.travel(backend.fold_in(key, 0), tables, state.tilt, old, step)
        # a trajectory that diverged to NaN is refused
        chance = xp.where(xp.isnan(change), 0.0 * step, xp.exp(xp.minimum(-change, 0.0)))
        taken = backend.uniform(backend.fold_in(key, 1), chance.shape) < chance
        point = Point(*(xp.where(taken, b, a) for a, b in zip(old, new, strict=True)))
        return state._replace(point=point, accept=chance)

    def warm(self, key: Key, tables: DHMCTables, state: DHMCState) -> DHMCState:
        """A sample, then a step of dual averaging."""
        xp, method = self.xp, self.method
        state = self.sample(key, tables, state)
        now = state.step_size
        count = now.count + 1.0
        if method.adapts:
            weight = 1.0 / (count + T0)
            miss = method.target_acceptance - xp.mean(state.accept)
            error = (1.0 - weight) * now.error + weight * miss
            log_step = self.dynamics.bounded(now.centre - xp.sqrt(count) / GAMMA * error)
            trust = count**-KAPPA
            average = trust * log_step + (1.0 - trust) * now.log_average
            now = StepSize(xp.exp(log_step), now.centre, error, average, count)
        tilt = state.tilt
        if tilt is not None:
            tilt = tilt._replace(total=tilt.total + state.point.p)
        return state._replace(step_size=now._replace(count=count), tilt=tilt)

    def adapt(self, tables: DHMCTables, state: DHMCState, last: bool) -> DHMCState:
        """A new tilt from a window's means; in the end the step size that is kept."""
        xp, now, tilt = self.xp, state.step_size, state.tilt
        seen = now.count > 0.0
        settled = xp.where(seen, xp.exp(now.log_average), now.step) if self.method.adapts else now.step
        if last:
            return state._replace(step_size=now._replace(step=settled))
        if tilt is None:
            return state
        mean = xp.mean(tilt.total, axis=1, keepdims=True) / xp.maximum(now.count, xp.ones_like(now.count))
        m = xp.where(seen, mean, tilt.m)
        tilt = Tilt(m, self.dynamics.product(tables, m), xp.zeros_like(tilt.total))
        point = self.dynamics.evaluate(tables, tilt, state.point.position)
        return state._replace(point=point, step_size=self._restart(settled), tilt=tilt)

    def observe(self, tables: DHMCTables, state: DHMCState) -> dict[str, Array]:
        """What `DHMC.reductions` lists."""
        point = state.point
        step = state.step_size.step + self.xp.zeros_like(state.accept)
        seen: dict[str, Array] = {"p": point.p, "accept": state.accept, "step_size": step}
        if self.method.log_z == "zero_state":
            seen["zero_state"] = -family.log_normaliser(self.xp, tables.sites, point.u)
        if self.method.log_z != "none":
            seen["alpha"] = point.u - tables.bias[:, None]
        return seen

    def _restart(self, step: Array) -> StepSize:
        zero = self.xp.zeros_like(step)
        return StepSize(step + zero, self.xp.log(10.0 * step), zero, self.xp.log(step), zero)
