"""The barrier ascents of G-BP and G-MF in JAX, for many models of one graph at a time.

A member of a batch is one model, labelling, start or conditioned model. In a pass each member does one thing at its own
place in the schedule: it looks at one point of its line search and, if that will do, at the Hessian there. So no member
waits for the line searches of others, and those that are through leave their place to the next. Hessians are dense.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from spinbench import gauges
from spinbench.api import Backend
from spinbench.methods.gauge import newton as rules
from spinbench.methods.gauge.members import AGAIN, FRESH, TRIAL, Members, Place, Schedule, Structure
from spinbench.methods.gauge.objectives import (
    ANGLE_STEP,
    FAR_LOGIT,
    LEAST_COSINE,
    LOGIT_STEP,
    joint_derivatives,
    product_weights,
)

FloatArray = npt.NDArray[np.float64]
Array = Any


FIRST_SHIFT, RISE = 1e-3, 10.0
"""λ of the Hessian at first, and its growth where that is too little."""
SHORTEST = 0.5**5
"""Of a step; where it gains nothing either, another direction with a larger λ costs less than still shorter steps."""
BLOCK, PASSES = 32, 8
"""So many members at a time go through so many passes; then those that are through are replaced."""


class Ascent:
    """Compiled steps for one graph.

    Args:
        structure: of all members.
        joint: G-MF (angles and logits) instead of G-BP (angles).
        backend: of JAX, in float64.
    """

    def __init__(self, structure: Structure, joint: bool, backend: Backend) -> None:
        import jax

        self._jax, self._xp = jax, backend.xp
        self._own = [np.array(own) for own in structure.own]
        self._other = [own ^ 1 for own in self._own]
        self._edges = [own // 2 for own in self._own]
        self._joint = joint
        self._angles = 2 * structure.num_edges
        self._size = self._angles + joint * structure.num_edges
        first = np.arange(0, self._angles, 2)
        pairs = [first, first + 1]
        index = [np.concatenate([own, other], axis=1) for own, other in zip(self._own, self._other, strict=True)]
        if joint:
            index = [np.concatenate([i, self._angles + e], axis=1) for i, e in zip(index, self._edges, strict=True)]
            pairs.append(np.arange(self._angles, self._size))
        rows = [np.repeat(i, i.shape[1], axis=1).ravel() for i in index]
        columns = [np.tile(i, (1, i.shape[1])).ravel() for i in index]
        self._slopes_at = np.concatenate([i.ravel() for i in index] + pairs)
        rows += [first, first + 1, first, first + 1, *pairs[2:]]
        columns += [first, first + 1, first + 1, first, *pairs[2:]]
        self._bends_at = np.concatenate(rows) * self._size + np.concatenate(columns)
        self._steps = np.full(self._size, ANGLE_STEP)
        self._steps[self._angles :] = LOGIT_STEP
        self._put, self._host = backend.put, backend.host
        self._advance = backend.compile(self._run)

    def start(self, z: npt.ArrayLike, members: Members) -> Place:
        """All members at z (M, size), at the start of the schedule."""
        points = np.asarray(z, dtype=np.float64)
        m = len(points)
        none, zero = np.zeros(m, dtype=np.int32), np.zeros(m)
        return Place(
            z=points,
            tables=tuple(np.zeros_like(table) for table in members.tables),
            value=zero,
            slope=zero,
            move=np.zeros_like(points),
            length=np.ones(m),
            phase=np.full(m, FRESH, dtype=np.int32),
            stage=none,
            steps=none,
            flat=none,
            shift=np.full(m, FIRST_SHIFT),
            residual=np.full(m, 1e300),
            end=none,
            mark=zero,
        )

    def advance(self, members: Members, schedule: Schedule, place: Place, passes: int) -> tuple[int, Place]:
        """At most so many passes, fewer where all members are through: their number, and where members stand then."""
        given = self._put(members), self._put(schedule), self._put(place)
        taken, found = self._advance(*given, passes)
        return int(taken), self._host(found)

    def _run(self, members: Members, schedule: Schedule, place: Place, passes: Any) -> Any:
        lax, xp, tree = self._jax.lax, self._xp, self._jax.tree_util
        one = self._jax.vmap(self._pass, in_axes=(0, None, 0))
        block = min(BLOCK, len(place.stage))

        def going(carry: tuple[Any, Place]) -> Any:
            return (carry[0] < passes) & xp.any(carry[1].stage < schedule.count)

        def some(carry: tuple[Any, Place]) -> tuple[Any, Place]:
            taken, everyone = carry
            chosen = xp.argsort(everyone.stage >= schedule.count, stable=True)[:block]
            mine, here = (tree.tree_map(lambda part: part[chosen], given) for given in (members, everyone))
            last = xp.minimum(taken + PASSES, passes)
            taken, here = lax.while_loop(
                lambda c: going(c) & (c[0] < last), lambda c: (c[0] + 1, one(mine, schedule, c[1])), (taken, here)
            )
            return taken, tree.tree_map(lambda old, new: old.at[chosen].set(new), everyone, here)

        return lax.while_loop(going, some, (0, place))

    def _pass(self, members: Members, schedule: Schedule, place: Place) -> Place:
        """Of one member: the rules of `spinbench.methods.gauge.newton`, a point of the line search at a time."""
        xp, lax = self._xp, self._jax.lax
        k = xp.minimum(place.stage, schedule.count - 1)
        conditioning, weight, tolerance, limit, patience = (schedule.entries[k, j] for j in range(5))
        trial = place.phase == TRIAL
        z = place.z + xp.where(trial, place.length, 0.0) * place.move
        tables = self._tables(z, members)
        floors = [xp.where(trial, rules.KEPT * table, 0.0) for table in place.tables]
        value = self._value(z, tables, members, conditioning, weight, floors)
        taken = trial & (value >= place.value + rules.SUFFICIENT * place.length * place.slope)
        given_up = trial & ~taken & (place.length < SHORTEST)
        here = taken | ~trial
        steps = place.steps + (taken | given_up)
        gained = value - place.value >= rules.FLAT * (1.0 + xp.abs(value))
        flat = xp.where(taken, xp.where(gained, 0, place.flat + 1), xp.where(given_up, 0, place.flat))
        shift = xp.where(taken & (place.length == 1.0), xp.maximum(0.2 * place.shift, 1e-12), place.shift)
        shift = xp.where(taken & (place.length < 0.2), xp.minimum(4.0 * place.shift, 1e6), shift)
        shift = xp.where(given_up, 100.0 * place.shift, shift)

        gradient, hessian = self._derivatives(z, tables, members, conditioning, weight)
        free = self._free(z, gradient, members.free)
        bad = ~(xp.isfinite(value) & xp.all(xp.isfinite(gradient)) & xp.all(xp.isfinite(hessian)))
        gradient = xp.where(bad, 0.0, gradient * free)
        residual = xp.max(xp.abs(gradient))
        negative = xp.where(bad, 0.0, xp.diag(1.0 - free) - hessian * free[:, None] * free[None, :])
        diagonal = xp.where(bad, 1.0, xp.maximum(xp.abs(xp.diagonal(negative)), 1e-8))
        lower = lax.linalg.cholesky(negative + xp.diag(shift * diagonal), symmetrize_input=False)
        sound = xp.all(xp.isfinite(lower))
        move = self._jax.scipy.linalg.cho_solve((xp.where(sound, lower, xp.eye(self._size)), True), gradient)
        move = move / xp.maximum(1.0, xp.max(xp.abs(move) / self._steps))

        looked = (taken | (place.phase == FRESH)) & (steps % rules.SLOW_STEPS == 0)
        slow = looked & (steps >= patience) & (value - place.mark < rules.SLOW * (1.0 + xp.abs(value)))
        reasons = {
            "flat": taken & (flat >= rules.FLAT_STEPS),
            "slow": slow,
            "stalled": (here & bad) | (given_up & (shift > 1e8)),
            "gradient": here & (residual < tolerance),
            "limit": here & (steps >= limit),
        }
        end = xp.select(list(reasons.values()), [rules.ENDS.index(reason) for reason in reasons], 0)
        ended = end > 0
        going_on = here & sound & ~ended
        phase = xp.where(going_on, TRIAL, xp.where(trial & ~here & ~given_up, TRIAL, AGAIN))
        higher = xp.where(here & ~sound, xp.maximum(RISE * shift, 1e-6), shift)
        fresh = Place(
            z=xp.where(here, z, place.z),
            tables=tuple(xp.where(here, new, old) for new, old in zip(tables, place.tables, strict=True)),
            value=xp.where(here, value, place.value),
            slope=xp.where(here, gradient @ move, place.slope),
            move=xp.where(here, move, place.move),
            length=xp.where(here, 1.0, 0.5 * place.length),
            phase=xp.where(ended, FRESH, phase),
            stage=place.stage + ended,
            steps=xp.where(ended, 0, steps),
            flat=xp.where(ended, 0, flat),
            shift=xp.where(ended, FIRST_SHIFT, higher),
            residual=xp.where(here & ~bad, residual, place.residual),
            end=xp.where(ended, end, place.end),
            mark=xp.where(looked, value, place.mark),
        )
        running = place.stage < schedule.count
        tree_map = self._jax.tree_util.tree_map
        return Place(*tree_map(lambda new, old: xp.where(running, new, old).astype(old.dtype), fresh, place))

    def _tables(self, z: Array, members: Members) -> list[Array]:
        """Gauged tables of one member; where a gauge is not defined, of the identity."""
        xp = self._xp
        theta = z[: self._angles]
        fine = xp.cos(theta[0::2] - theta[1::2]) > LEAST_COSINE
        theta = xp.where(xp.repeat(fine, 2), theta, 0.0)
        return [
            gauges.transform(table, theta[own], theta[other], xp)
            for table, own, other in zip(members.tables, self._own, self._other, strict=True)
        ]

    def _weights(self, z: Array, members: Members, weight: Array) -> list[Array]:
        xp = self._xp
        if not self._joint:
            return [weight * share + xp.asarray((np.arange(share.shape[-1]) == 0) * 1.0) for share in members.shares]
        q = self._jax.nn.sigmoid(z[self._angles :])
        return [
            product_weights(q[edges], xp) + weight * share
            for edges, share in zip(self._edges, members.shares, strict=True)
        ]

    def _value(
        self, z: Array, tables: list[Array], members: Members, conditioning: Array, weight: Array, floors: list[Any]
    ) -> Array:
        xp = self._xp
        cosines = xp.cos(z[0 : self._angles : 2] - z[1 : self._angles : 2])
        inside = xp.all(cosines > LEAST_COSINE)
        value = conditioning * xp.sum(xp.log(xp.where(cosines > LEAST_COSINE, cosines, 1.0)))
        for table, weights, floor in zip(tables, self._weights(z, members, weight), floors, strict=True):
            counts = weights > 0
            inside = inside & xp.all((table > floor) | ~counts)
            value = value + xp.sum(weights * xp.log(xp.where(counts & (table > 0), table, 1.0)))
        if self._joint:
            size = xp.abs(z[self._angles :])
            value = value + xp.sum(xp.log1p(xp.exp(-size)) + size * self._jax.nn.sigmoid(-size))
        return xp.where(inside, value, -np.inf)

    def _derivatives(
        self, z: Array, tables: list[Array], members: Members, conditioning: Array, weight: Array
    ) -> tuple[Array, Array]:
        xp = self._xp
        theta = z[: self._angles]
        slopes, bends = [], []
        weights = self._weights(z, members, weight)
        for k, (own, other) in enumerate(zip(self._own, self._other, strict=True)):
            if self._joint:
                q = self._jax.nn.sigmoid(z[self._angles + self._edges[k]])
                local, curved = joint_derivatives(tables[k], q, weight, theta[own], theta[other], xp)
            else:
                _, local, curved = gauges.derivatives(tables[k], weights[k], theta[own], theta[other], xp)
            slopes.append(local.ravel())
            bends.append(curved.ravel())
        difference = theta[0::2] - theta[1::2]
        slope, bend = conditioning * xp.tan(difference), conditioning / xp.cos(difference) ** 2
        slopes += [-slope, slope]
        bends += [-bend, -bend, bend, bend]
        if self._joint:
            logits = z[self._angles :]
            q = self._jax.nn.sigmoid(logits)
            spread = q * (1.0 - q)
            slopes.append(-logits * spread)
            bends.append(-spread * (1.0 + logits * (1.0 - 2.0 * q)))
        gradient = xp.zeros(self._size).at[self._slopes_at].add(xp.concatenate(slopes))
        hessian = xp.zeros(self._size**2).at[self._bends_at].add(xp.concatenate(bends))
        return gradient, hessian.reshape(self._size, self._size)

    def _free(self, z: Array, gradient: Array, angles: Array) -> Array:
        if not self._joint:
            return angles
        xp = self._xp
        logits = z[self._angles :]
        inner = (xp.abs(logits) <= FAR_LOGIT) | (gradient[self._angles :] * logits < 0)
        return xp.concatenate([angles, inner * 1.0])


@lru_cache(maxsize=32)
def ascent(structure: Structure, joint: bool, device: str) -> Ascent:
    """The compiled steps of a graph, kept from one call to the next."""
    from spinbench.backends.jax import JaxBackend

    return Ascent(structure, joint, JaxBackend(precision="float64", device=device))
