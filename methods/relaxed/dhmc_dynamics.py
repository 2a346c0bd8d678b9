"""The trajectories of DHMC's generic program: leapfrog steps with unit mass, and rotations with mass Q⁻¹."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from spinbench.api import Array, Backend, Key
from spinbench.methods.relaxed import family
from spinbench.methods.relaxed.dhmc_tables import MAX_ANGLE, DHMCTables

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
        self.harmonium = method.form == "harmonium"

    def bounded(self, log_step: Array) -> Array:
        return log_step

    def product(self, tables: DHMCTables, v: Array) -> Array:
        raise AssertionError("only the rotating forms are tilted")

    def draw(self, key: Key, tables: DHMCTables, s: Array) -> Array:
        """x ~ p(x|s)."""
        root: Array = tables.root
        z = self.xp.matmul(root.T, s) + self.backend.normal(key, s.shape)
        return z if self.harmonium else self.xp.matmul(root, z)

    def evaluate(self, tables: DHMCTables, tilt: Tilt | None, x: Array) -> Point:
        u, p, Kx, push = self._gradient(tables, x)
        potential = 0.5 * self.xp.sum(x * Kx, axis=0) - family.log_normaliser(self.xp, tables.sites, u)
        return Point(x, u, p, push, potential)

    def travel(self, key: Key, tables: DHMCTables, tilt: Tilt | None, start: Point, step: Array) -> tuple[Point, Array]:
        """The end of the trajectory and the energy it gained, (C,)."""
        xp = self.xp
        r = self.backend.normal(key, start.position.shape)
        energy = start.potential + 0.5 * xp.sum(r * r, axis=0)

        def leap(_: Any, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            x = carry[0] + step * carry[1]
            return x, carry[1] - step * self._gradient(tables, x)[3]

        r = r - 0.5 * step * start.push
        x, r = self.backend.fori_loop(0, self.steps - 1, leap, (start.position, r))
        end = self.evaluate(tables, None, x + step * r)
        r = r - 0.5 * step * end.push
        return end, end.potential + 0.5 * xp.sum(r * r, axis=0) - energy

    def _gradient(self, tables: DHMCTables, x: Array) -> tuple[Array, Array, Array, Array]:
        """u, p, Kx and Kx - A⁻ᵀp."""
        bias = tables.bias[:, None]
        if self.harmonium:
            root: Array = tables.root
            u = self.xp.matmul(root, x) + bias
            p = family.unit_means(self.xp, tables.sites, u)
            return u, p, x, x - self.xp.matmul(root.T, p)
        u = x + bias
        p = family.unit_means(self.xp, tables.sites, u)
        Kx = self.xp.matmul(tables.precision, x)
        return u, p, Kx, Kx - p


class Rotation:
    """Mass Q⁻¹ on y = α - Qm: H = ½ yᵀQ⁻¹y + ½ wᵀQ⁻¹w + V(y), V = m·u - log Π (1 + exp(u_i)), w the velocity.

    The quadratic part turns (y, w) by the angle of the step; V kicks w by Q(p - m). The kinetic energy of each kick is
    counted from w·f and f·Qf, so that Q⁻¹ never appears.
    """

    def __init__(self, method: DHMC, backend: Backend) -> None:
        self.backend, self.xp = backend, backend.xp
        self.steps = method.leapfrog_steps

    def bounded(self, log_step: Array) -> Array:
        return self.xp.minimum(log_step, self.xp.log(self.xp.zeros_like(log_step) + MAX_ANGLE))

    def product(self, tables: DHMCTables, v: Array) -> Array:
        """Qv."""
        if tables.edges is not None:
            return family.edge_product(self.xp, tables.edges, v)
        return self.xp.matmul(tables.gram, v)

    def draw(self, key: Key, tables: DHMCTables, s: Array) -> Array:
        """α ~ N(Qs, Q)."""
        return self.product(tables, s) + self._velocity(key, tables, s.shape)

    def evaluate(self, tables: DHMCTables, tilt: Tilt | None, field: Array) -> Point:
        assert tilt is not None
        u, p, _f, push = self._kick(tables, tilt, field)
        potential = self.xp.sum(tilt.m * u, axis=0) - family.log_normaliser(self.xp, tables.sites, u)
        return Point(field, u, p, push, potential)

    def travel(self, key: Key, tables: DHMCTables, tilt: Tilt | None, start: Point, step: Array) -> tuple[Point, Array]:
        """The end of the trajectory and the energy it gained, (C,)."""
        assert tilt is not None
        xp = self.xp
        cos, sin = xp.cos(step), xp.sin(step)

        def kick(size: Array, w: Array, f: Array, push: Array) -> tuple[Array, Array]:
            gained = xp.sum(f * (size * w + 0.5 * size * size * push), axis=0)
            return w + size * push, gained

        def turn(y: Array, w: Array) -> tuple[Array, Array]:
            return cos * y + sin * w, cos * w - sin * y

        def advance(_: Any, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            y, w = turn(carry[0], carry[1])
            _u, _p, f, push = self._kick(tables, tilt, y + tilt.shift)
            w, gained = kick(step, w, f, push)
            return y, w, carry[2] + gained

        w = self._velocity(key, tables, start.position.shape)
        w, gained = kick(0.5 * step, w, start.p - tilt.m, start.push)
        y, w, gained = self.backend.fori_loop(0, self.steps - 1, advance, (start.position - tilt.shift, w, gained))
        y, w = turn(y, w)
        end = self.evaluate(tables, tilt, y + tilt.shift)
        _, last = kick(0.5 * step, w, end.p - tilt.m, end.push)
        return end, end.potential - start.potential + gained + last

    def _kick(self, tables: DHMCTables, tilt: Tilt, field: Array) -> tuple[Array, Array, Array, Array]:
        """u, p, f = p - m and Qf."""
        u = field + tables.bias[:, None]
        p = family.unit_means(self.xp, tables.sites, u)
        f = p - tilt.m
        return u, p, f, self.product(tables, f)

    def _velocity(self, key: Key, tables: DHMCTables, shape: tuple[int, int]) -> Array:
        """A draw of N(0, Q)."""
        if tables.edges is not None:
            count = tables.edges.weights.shape[0] + shape[0]
            return family.edge_noise(self.xp, tables.edges, self.backend.normal(key, (count, shape[1])))
        return self.xp.matmul(tables.root, self.backend.normal(key, shape))
