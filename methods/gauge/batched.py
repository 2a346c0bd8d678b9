"""The barrier ascents of G-BP and G-MF in JAX, for many models of one graph at a time.

A member of a batch is one model, labelling, start or conditioned model; all members take a Newton step together, each
at its own place in the schedule. Hessians are dense.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench import gauges
from spinbench.api import Backend
from spinbench.methods.gauge import newton as rules
from spinbench.methods.gauge.objectives import (
    ANGLE_STEP,
    FAR_LOGIT,
    LEAST_COSINE,
    LOGIT_STEP,
    bits_of,
    joint_derivatives,
    product_weights,
)
from spinbench.models.forney import ForneyModel

FloatArray = npt.NDArray[np.float64]
Array = Any


class Structure(NamedTuple):
    """A graph, as a key: number of edges, and own half edges (n, d) of each degree group as nested tuples."""

    num_edges: int
    own: tuple[tuple[tuple[int, ...], ...], ...]


LONGEST = 16
"""Maximisations of a schedule at most; all schedules are filled up to it, so that steps are compiled once."""


class Entry(NamedTuple):
    """One maximisation.

    Attributes:
        conditioning: weight of Σ log cos(φ - ψ).
        weight: δ of G-BP, the floor ε of G-MF.
        tolerance: of the gradient.
        limit: Newton steps.
        patience: steps after which slow progress ends it.
    """

    conditioning: float
    weight: float
    tolerance: float
    limit: int
    patience: int


class Schedule(NamedTuple):
    """Maximisations, one after the other: a row an `Entry`, (LONGEST, 5), of which the first `count` count."""

    entries: Array
    count: Array


def schedule_of(entries: Sequence[Entry]) -> Schedule:
    """Of at most LONGEST entries."""
    rows = np.array([*entries, *[entries[-1]] * (LONGEST - len(entries))], dtype=np.float64)
    return Schedule(rows, np.array(len(entries)))


class Members(NamedTuple):
    """What differs from member to member; M members.

    Attributes:
        tables: (M, n, 2**d) a degree group.
        shares: (M, n, 2**d) weights that sum to 1 over the entries that count, 0 elsewhere (pinned edges at 1).
        free: (M, size) 0 for angles of pinned edges, which stay, else 1.
    """

    tables: tuple[Array, ...]
    shares: tuple[Array, ...]
    free: Array

    def rows(self, chosen: slice) -> Members:
        """Some of the members."""
        return Members(tuple(t[chosen] for t in self.tables), tuple(s[chosen] for s in self.shares), self.free[chosen])


class Place(NamedTuple):
    """Where each member stands; leading axis M.

    Attributes:
        z: (M, size) angles (2E), then logits (E) for G-MF.
        stage: entry of the schedule, its length once all is done.
        steps, flat: taken in this stage, and those in a row that gained nothing.
        shift: λ of the Hessian.
        residual: of the gradient at the last step's start.
        end: why the last stage that ended did so, an index into `ENDS`.
        mark: the value when slow progress was looked for last.
    """

    z: Array
    stage: Array
    steps: Array
    flat: Array
    shift: Array
    residual: Array
    end: Array
    mark: Array


def structure_of(model: ForneyModel) -> Structure:
    """The key of a model's graph."""
    return Structure(model.num_edges, tuple(tuple(map(tuple, g.own.tolist())) for g in model.groups))


def members_of(models: Sequence[ForneyModel]) -> Members:
    """Models of one structure, nothing pinned."""
    tables = tuple(np.stack(parts) for parts in zip(*([g.tables for g in m.groups] for m in models), strict=True))
    shares = tuple(np.full_like(t, 1.0 / t.shape[-1]) for t in tables)
    return Members(tables, shares, np.ones((len(models), 2 * models[0].num_edges)))


def pinned_members(model: ForneyModel, tables: Sequence[FloatArray]) -> Members:
    """The models of (9): member i has edges before i at 0 and edge i at 1, which becomes its label 0."""
    edges = model.num_edges
    fixed = np.tril(np.ones((edges, edges), dtype=bool))  # [i, e]: e <= i
    found: list[FloatArray] = []
    shares: list[FloatArray] = []
    for group, table in zip(model.groups, tables, strict=True):
        d = group.degree
        entries = np.arange(2**d)
        places = 1 << np.arange(d - 1, -1, -1)
        flips = ((group.edges[None] == np.arange(edges)[:, None, None]) * places).sum(axis=2)  # (E, n)
        found.append(np.take_along_axis(table[None], entries ^ flips[:, :, None], axis=2))
        ones = bits_of(d).T.astype(bool)  # (2**d, d)
        counted = ~(ones & fixed[:, group.edges][:, :, None, :]).any(axis=3)
        shares.append(counted / counted.sum(axis=2, keepdims=True))
    return Members(tuple(found), tuple(shares), np.repeat(~fixed, 2, axis=1).astype(np.float64))


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
        self._steps = np.full(self._size, ANGLE_STEP)
        self._steps[self._angles :] = LOGIT_STEP
        self._put = backend.put
        self._advance = backend.compile(self._run)

    def start(self, z: npt.ArrayLike) -> Place:
        """All members at z (M, size), at the start of the schedule."""
        points = np.asarray(z, dtype=np.float64)
        m = len(points)
        zeros = np.zeros(m, dtype=np.int32)
        return Place(points, zeros, zeros, zeros, np.full(m, 1e-3), np.full(m, 1e300), zeros, np.zeros(m))

    def advance(self, members: Members, schedule: Schedule, place: Place, steps: int) -> tuple[int, Place]:
        """At most so many Newton steps of every member, fewer where all are through: their number, and the end."""
        given = self._put(members), self._put(schedule), self._put(place)
        taken, found = self._advance(*given, steps)
        return int(taken), Place(*(np.asarray(part) for part in found))

    def _run(self, members: Members, schedule: Schedule, place: Place, steps: Any) -> Any:
        lax, xp = self._jax.lax, self._xp
        step = self._jax.vmap(self._step, in_axes=(0, None, 0))

        def going(carry: tuple[Any, Place]) -> Any:
            return (carry[0] < steps) & xp.any(carry[1].stage < schedule.count)

        return lax.while_loop(going, lambda c: (c[0] + 1, step(members, schedule, c[1])), (0, place))

    def _step(self, members: Members, schedule: Schedule, place: Place) -> Place:
        xp, lax = self._xp, self._jax.lax
        k = xp.minimum(place.stage, schedule.count - 1)
        conditioning, weight, tolerance, limit, patience = (schedule.entries[k, j] for j in range(5))
        z = place.z
        tables = self._tables(z, members)
        value = self._value(z, tables, members, conditioning, weight, [0.0] * len(tables))
        gradient, hessian = self._derivatives(z, tables, members, conditioning, weight)
        free = self._free(z, gradient, members.free)
        bad = ~(xp.isfinite(value) & xp.all(xp.isfinite(gradient)) & xp.all(xp.isfinite(hessian)))
        gradient = xp.where(bad, 0.0, gradient * free)
        residual = xp.max(xp.abs(gradient))
        fixed = xp.diag(1.0 - free)
        negative = xp.where(bad, xp.eye(self._size), fixed - hessian * free[:, None] * free[None, :])
        diagonal = xp.maximum(xp.abs(xp.diagonal(negative)), 1e-8)

        def factor(shift: Any) -> Any:
            return lax.linalg.cholesky(negative + xp.diag(shift * diagonal), symmetrize_input=False)

        # Loops whose first pass is the usual case: their bodies are large, and compiled once this way.
        _, shift, lower = lax.while_loop(
            lambda c: ~xp.all(xp.isfinite(c[2])),
            lambda c: (c[0] + 1, fresh := xp.where(c[0] > 0, xp.maximum(4.0 * c[1], 1e-6), c[1]), factor(fresh)),
            (0, place.shift, xp.full_like(negative, np.nan)),
        )
        direction = self._jax.scipy.linalg.cho_solve((lower, True), gradient)
        direction = direction / xp.maximum(1.0, xp.max(xp.abs(direction) / self._steps))
        slope = gradient @ direction
        floors = [rules.KEPT * table for table in tables]

        def measure(length: Any) -> Any:
            moved = z + length * direction
            return self._value(moved, self._tables(moved, members), members, conditioning, weight, floors)

        def short(carry: tuple[Any, Any, Any]) -> Any:
            count, length, found = carry
            return (count < rules.HALVINGS) & ~(found >= value + rules.SUFFICIENT * length * slope)

        def halved(carry: tuple[Any, Any, Any]) -> Any:
            count, length, _ = carry
            fresh = xp.where(count > 0, 0.5 * length, length)
            return count + 1, fresh, measure(fresh)

        _, length, found = lax.while_loop(short, halved, (0, xp.asarray(1.0), xp.asarray(-np.inf)))
        moved = found >= value + rules.SUFFICIENT * length * slope
        flat = xp.where(found - value < rules.FLAT * (1.0 + xp.abs(found)), place.flat + 1, 0)
        quick = xp.where(length == 1.0, xp.maximum(0.2 * shift, 1e-12), shift)
        quick = xp.where(length < 0.2, xp.minimum(4.0 * shift, 1e6), quick)
        shift = xp.where(moved, quick, 100.0 * shift)
        steps = place.steps + 1
        looked = place.steps % rules.SLOW_STEPS == 0
        slow = looked & (place.steps >= patience) & (value - place.mark < rules.SLOW * (1.0 + xp.abs(value)))
        still = bad | slow | (residual < tolerance) | (steps > limit) | ~moved
        reasons = {
            "slow": slow,
            "stalled": bad | (~moved & (shift > 1e8)),
            "gradient": residual < tolerance,
            "limit": steps > limit,
            "flat": moved & (flat >= rules.FLAT_STEPS),
        }
        end = xp.select(list(reasons.values()), [rules.ENDS.index(reason) for reason in reasons], 0)
        ended = end > 0
        running = place.stage < schedule.count
        fresh = Place(
            z=xp.where(still, z, z + length * direction),
            stage=place.stage + ended,
            steps=xp.where(ended, 0, steps),
            flat=xp.where(ended | ~moved, 0, flat),
            shift=xp.where(ended, 1e-3, shift),
            residual=xp.where(bad, place.residual, residual),
            end=xp.where(ended, end, place.end),
            mark=xp.where(looked, value, place.mark),
        )
        kept = [xp.where(running, new, old).astype(old.dtype) for new, old in zip(fresh, place, strict=True)]
        return Place(*kept)

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
        gradient, hessian = xp.zeros(self._size), xp.zeros((self._size, self._size))
        weights = self._weights(z, members, weight)
        for k, (own, other) in enumerate(zip(self._own, self._other, strict=True)):
            if self._joint:
                logits = self._angles + self._edges[k]
                index = np.concatenate([own, other, logits], axis=1)
                q = self._jax.nn.sigmoid(z[logits])
                local, curved = joint_derivatives(tables[k], q, weight, theta[own], theta[other], xp)
            else:
                index = np.concatenate([own, other], axis=1)
                _, local, curved = gauges.derivatives(tables[k], weights[k], theta[own], theta[other], xp)
            gradient = gradient.at[index].add(local)
            hessian = hessian.at[index[:, :, None], index[:, None, :]].add(curved)
        first = np.arange(0, self._angles, 2)
        difference = theta[first] - theta[first + 1]
        slope, bend = conditioning * xp.tan(difference), conditioning / xp.cos(difference) ** 2
        gradient = gradient.at[first].add(-slope).at[first + 1].add(slope)
        hessian = hessian.at[first, first].add(-bend).at[first + 1, first + 1].add(-bend)
        hessian = hessian.at[first, first + 1].add(bend).at[first + 1, first].add(bend)
        if self._joint:
            index = np.arange(self._angles, self._size)
            logits = z[index]
            q = self._jax.nn.sigmoid(logits)
            spread = q * (1.0 - q)
            gradient = gradient.at[index].add(-logits * spread)
            hessian = hessian.at[index, index].add(-spread * (1.0 + logits * (1.0 - 2.0 * q)))
        return gradient, hessian

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
