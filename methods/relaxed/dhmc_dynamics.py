"""The trajectories of DHMC's generic program: leapfrog steps with unit mass, and rotations with mass Q⁻¹."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from spinbench.api import Array, Backend, Index, Key
from spinbench.methods.relaxed import family
from spinbench.methods.relaxed.tables import RelaxedTables, draw_velocity, gram_product, normals_per_draw, unit_log_odds

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
