"""The generic program of DHMC: samples, dual averaging of the step size, and the tilt of burn-in.

Its trajectories are leapfrog steps with unit mass, and rotations with mass Q⁻¹.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from spinbench.api import Array, Backend, Index, Key
from spinbench.methods.chain_program import ChainProgram
from spinbench.methods.relaxed import family
from spinbench.methods.relaxed.step_size import StepSize, dual_averaging, final_step_size, restart_step_size
from spinbench.methods.relaxed.tables import (
    RelaxedTables,
    draw_position,
    draw_velocity,
    gram_product,
    normals_per_draw,
    record_alpha,
    unit_log_odds,
)

if TYPE_CHECKING:
    from spinbench.methods.relaxed.dhmc import DHMC


class Tilt(NamedTuple):
    """m (N, 1), Qm (N, 1), and the sum (N, C) of p over the burn-in's present window."""

    m: Array
    shift: Array
    total: Array


class Point(NamedTuple):
    """Where a trajectory stands.

    position: (N, C): x for A = I, x = A α for the harmonium, α for the rotating forms.
    u, p: (N, C): α + b and σ(u). push: (N, C): -∇ log p(x), or Q(p - m) for the rotating forms.
    potential: (C,): -log p(x), or m·u - log Π (1 + exp(u_i)), up to constants.
    """

    position: Array
    u: Array
    p: Array
    push: Array
    potential: Array


class Leapfrog:
    """Unit mass on x: H = -log p(x) + r·r/2."""

    def __init__(self, method: DHMC, backend: Backend) -> None:
        self.backend, self.xp = backend, backend.xp
        self.steps = method.leapfrog_steps

    def evaluate(self, tables: RelaxedTables, tilt: Tilt | None, x: Array) -> Point:
        u, p, Kx, push = self._gradient(tables, x)
        potential = 0.5 * self.xp.sum(x * Kx, axis=0) - family.log_normaliser(self.xp, tables.sites, u)
        return Point(x, u, p, push, potential)

    def integrate_trajectory(
        self, key: Key, tables: RelaxedTables, tilt: Tilt | None, start: Point, step: Array
    ) -> tuple[Point, Array]:
        """The end of the trajectory and the energy it gained, (C,)."""
        xp = self.xp
        r = self.backend.normal(key, start.position.shape)
        energy = start.potential + 0.5 * xp.sum(r * r, axis=0)

        def leap(_: Index, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            x = carry[0] + step * carry[1]
            return x, carry[1] - step * self._gradient(tables, x)[3]

        r = r - 0.5 * step * start.push
        # Leapfrog: a half kick at either end and whole kicks between, which is reversible and preserves volume.
        x, r = self.backend.fori_loop(0, self.steps - 1, leap, (start.position, r))
        end = self.evaluate(tables, None, x + step * r)
        r = r - 0.5 * step * end.push
        return end, end.potential + 0.5 * xp.sum(r * r, axis=0) - energy

    def _gradient(self, tables: RelaxedTables, x: Array) -> tuple[Array, Array, Array, Array]:
        """u, p, Kx and Kx - A⁻ᵀp."""
        u = unit_log_odds(self.xp, tables, x)
        p = family.unit_means(self.xp, tables.sites, u)
        if tables.precision is not None:
            Kx = self.xp.matmul(tables.precision, x)
            return u, p, Kx, Kx - p
        root: Array = tables.root
        return u, p, x, x - self.xp.matmul(root.T, p)


class Rotation:
    """Mass Q⁻¹ on y = α - Qm: H = ½ yᵀQ⁻¹y + ½ wᵀQ⁻¹w + V(y), V = m·u - log Π (1 + exp(u_i)), w the velocity.

    The quadratic part turns (y, w) by the angle of the step; V kicks w by Q(p - m). The kinetic energy of each kick is
    counted from w·f and f·Qf, so that Q⁻¹ never appears.
    """

    def __init__(self, method: DHMC, backend: Backend) -> None:
        self.backend, self.xp = backend, backend.xp
        self.steps = method.leapfrog_steps

    def evaluate(self, tables: RelaxedTables, tilt: Tilt | None, field: Array) -> Point:
        assert tilt is not None
        u, p, _f, push = self._field_and_force(tables, tilt, field)
        potential = self.xp.sum(tilt.m * u, axis=0) - family.log_normaliser(self.xp, tables.sites, u)
        return Point(field, u, p, push, potential)

    def integrate_trajectory(
        self, key: Key, tables: RelaxedTables, tilt: Tilt | None, start: Point, step: Array
    ) -> tuple[Point, Array]:
        """The end of the trajectory and the energy it gained, (C,)."""
        assert tilt is not None
        xp = self.xp
        cos, sin = xp.cos(step), xp.sin(step)

        def kick(size: Array, w: Array, f: Array, push: Array) -> tuple[Array, Array]:
            # The kick w → w + h Qf changes ½ wᵀQ⁻¹w by h f·w + ½ h² f·Qf, which needs no Q⁻¹: Q may be singular.
            gained = xp.sum(f * (size * w + 0.5 * size * size * push), axis=0)
            return w + size * push, gained

        def turn(y: Array, w: Array) -> tuple[Array, Array]:
            return cos * y + sin * w, cos * w - sin * y

        def advance(_: Index, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            y, w = turn(carry[0], carry[1])
            _u, _p, f, push = self._field_and_force(tables, tilt, y + tilt.shift)
            w, gained = kick(step, w, f, push)
            return y, w, carry[2] + gained

        w = draw_velocity(xp, tables, self.backend.normal(key, (normals_per_draw(tables), start.position.shape[1])))
        w, gained = kick(0.5 * step, w, start.p - tilt.m, start.push)
        y, w, gained = self.backend.fori_loop(0, self.steps - 1, advance, (start.position - tilt.shift, w, gained))
        y, w = turn(y, w)
        end = self.evaluate(tables, tilt, y + tilt.shift)
        _, last = kick(0.5 * step, w, end.p - tilt.m, end.push)
        return end, end.potential - start.potential + gained + last

    def _field_and_force(self, tables: RelaxedTables, tilt: Tilt, field: Array) -> tuple[Array, Array, Array, Array]:
        """u, p, f = p - m and Qf."""
        u = unit_log_odds(self.xp, tables, field)
        p = family.unit_means(self.xp, tables.sites, u)
        f = p - tilt.m
        return u, p, f, gram_product(self.xp, tables, f)


def make_dynamics(method: DHMC, backend: Backend) -> Leapfrog | Rotation:
    """Those of the method's form."""
    if method.rotates:
        return Rotation(method, backend)
    return Leapfrog(method, backend)


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
