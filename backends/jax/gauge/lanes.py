"""The barrier objectives of `methods.gauge.ascent.objectives` for many members of one graph at a time, in JAX.

Members stand on the last axis, so that whatever is done to all of them is done to numbers side by side: coordinates are
(size, M) and tables (2**d, n, M), one array a degree group.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spinbench.backends.jax.gauge.members import Members, Structure
from spinbench.methods.gauge.ascent.derivatives import (
    angle_derivatives,
    angle_entries,
    joint_derivatives,
    joint_entries,
    slot_products,
)
from spinbench.methods.gauge.ascent.newton import SHORTER
from spinbench.methods.gauge.ascent.objectives import ANGLE_STEP, FAR_LOGIT, LEAST_COSINE, LOGIT_STEP

Array = Any


class Gauged(NamedTuple):
    """Members at points.

    Attributes:
        inside: (M,) whether gauges are defined; where they are not, all else is finite and without meaning.
        cosine, sine: (E, M) of φ - ψ.
        tables: gauged.
    """

    inside: Array
    cosine: Array
    sine: Array
    tables: list[Array]


class Lanes:
    """Values and derivatives.

    Args:
        structure: of all members.
        joint: G-MF (angles and logits) instead of G-BP (angles).
        jax: the module.

    Attributes:
        size: number of coordinates.
        steps: (size, 1) their largest changes in one step.
    """

    def __init__(self, structure: Structure, joint: bool, jax: Any) -> None:
        self._jax, self._xp, self._joint = jax, jax.numpy, joint
        self._own = [np.array(own).T for own in structure.own]  # (d, n)
        self._edges = [own // 2 for own in self._own]
        self._signs = [1.0 - 2.0 * (own % 2)[..., None] for own in self._own]
        self._angles = 2 * structure.num_edges
        self.size = self._angles + joint * structure.num_edges
        self.steps = np.full((self.size, 1), ANGLE_STEP)
        self.steps[self._angles :] = LOGIT_STEP
        first = np.arange(0, self._angles, 2)
        logits = np.arange(self._angles, self.size)
        slopes, rows, columns = [], [], []
        for own, edges in zip(self._own, self._edges, strict=True):
            index = np.concatenate([own, own ^ 1, *([self._angles + edges] if joint else [])])  # (v, n)
            entries = joint_entries(len(own)) if joint else angle_entries(len(own))
            row, column = np.divmod(np.unique(entries, return_index=True)[1], len(entries))
            slopes.append(index.ravel())
            rows.append(index[row].ravel())
            columns.append(index[column].ravel())
        self._slopes_at = np.concatenate([*slopes, first, first + 1, logits])
        ends = (
            np.concatenate([*rows, first, first + 1, first, logits]),
            np.concatenate([*columns, first, first + 1, first + 1, logits]),
        )
        self._bends_at = np.maximum(*ends), np.minimum(*ends)

    def gauged(self, z: Array, members: Members) -> Gauged:
        """Tables at z (size, M)."""
        xp = self._xp
        theta = z[: self._angles]
        turns = xp.concatenate([theta, theta[0::2] - theta[1::2]])
        c, s = xp.cos(turns), xp.sin(turns)
        fine = c[self._angles :] > LEAST_COSINE
        cosine, sine = xp.where(fine, c[self._angles :], 1.0), xp.where(fine, s[self._angles :], 0.0)
        scale = xp.repeat(1.0 / xp.sqrt(cosine), 2, axis=0)
        scaled = xp.concatenate([c[: self._angles] * scale, s[: self._angles] * scale])
        tables = []
        for table, own in zip(members.tables, self._own, strict=True):
            turned = table.reshape(len(table), -1)  # XLA's loops over the last axis are the better the longer
            ends = scaled[np.stack([own, own + self._angles, own ^ 1, (own ^ 1) + self._angles], axis=1)]
            for k, (own_c, own_s, other_c, other_s) in enumerate(ends.reshape(*ends.shape[:2], -1)):
                # rows (cos own, sin own) and (-sin other, cos other)
                low, high = (turned.reshape(2**k, 2, -1, turned.shape[1])[:, a] for a in (0, 1))
                rows = [own_c * low + own_s * high, other_c * high - other_s * low]
                turned = xp.stack(rows, axis=1).reshape(turned.shape)
            tables.append(turned.reshape(table.shape))
        return Gauged(fine.all(axis=0), cosine, sine, tables)

    def value(
        self, z: Array, at: Gauged, members: Members, conditioning: Array, weight: Array, floors: list[Array]
    ) -> Array:
        """(M,) the objective; -inf where an entry that counts does not exceed its floor."""
        xp = self._xp
        inside, value = at.inside, conditioning * xp.log(at.cosine).sum(axis=0)
        for k, (table, weights) in enumerate(zip(at.tables, self._weights(z, members, weight), strict=True)):
            counts = members.shares[k] > 0
            inside = inside & ((table > floors[k]) | ~counts).all(axis=(0, 1))
            value = value + (weights * xp.log(xp.where(counts & (table > 0), table, 1.0))).sum(axis=(0, 1))
        if self._joint:
            size = xp.abs(z[self._angles :])
            value = value + (xp.log1p(xp.exp(-size)) + size * self._jax.nn.sigmoid(-size)).sum(axis=0)
        return xp.where(inside, value, -np.inf)

    def share(self, start: Sequence[Array], at: Gauged, members: Members, floors: list[Array]) -> Array:
        """(M,) how much of a step from the tables `start` to others comes next, where it was in vain."""
        xp, (least, of_it) = self._xp, SHORTER
        meets = xp.ones(at.inside.shape)
        for old, table, shares, floor in zip(start, at.tables, members.shares, floors, strict=True):
            below = (shares > 0) & (table <= floor)
            share = xp.where(below, (old - floor) / xp.where(below, old - table, 1.0), 1.0)
            meets = xp.minimum(meets, share.min(axis=(0, 1)))
        return xp.where(at.inside & (meets < 1.0), xp.maximum(least, of_it * meets), 0.5)

    def derivatives(
        self, z: Array, at: Gauged, members: Members, conditioning: Array, weight: Array
    ) -> tuple[Array, Array]:
        """Gradient (size, M) and the lower half of the Hessian (size, size, M)."""
        xp = self._xp
        tangent, secant = at.sine / at.cosine, 1.0 / at.cosine
        q = self._jax.nn.sigmoid(z[self._angles :])
        slopes, bends = [], []
        weights = self._weights(z, members, weight)
        for k, (table, edges, signs) in enumerate(zip(at.tables, self._edges, self._signs, strict=True)):
            turns = signs * tangent[edges], secant[edges]
            if self._joint:
                local = joint_derivatives(table, q[edges], weight * members.shares[k], *turns, xp)
            else:
                local = angle_derivatives(table, weights[k], *turns, xp)
            slopes.append(local.gradient.reshape(-1, z.shape[1]))
            bends.append(local.hessian.reshape(-1, z.shape[1]))
        slope, bend = conditioning * tangent, conditioning * secant**2
        slopes += [-slope, slope]
        bends += [-bend, -bend, bend]
        if self._joint:
            logits, spread = z[self._angles :], q * (1.0 - q)
            slopes.append(-logits * spread)
            bends.append(-spread * (1.0 + logits * (1.0 - 2.0 * q)))
        gradient = xp.zeros_like(z).at[self._slopes_at].add(xp.concatenate(slopes))
        hessian = xp.zeros((self.size, *z.shape)).at[self._bends_at].add(xp.concatenate(bends))
        return gradient, hessian

    def free(self, z: Array, gradient: Array, angles: Array) -> Array:
        """(size, M) 1 for coordinates that may move, else 0."""
        if not self._joint:
            return angles
        xp, logits = self._xp, z[self._angles :]
        inner = (xp.abs(logits) <= FAR_LOGIT) | (gradient[self._angles :] * logits < 0)
        return xp.concatenate([angles, inner * 1.0])

    def direction(self, hessian: Array, gradient: Array, free: Array, shift: Array) -> tuple[Array, Array]:
        """(M,) whether A + λD is positive definite, with A minus the Hessian and D = |diag A| over the free
        coordinates, and where it is (A + λD)⁻¹ gradient.
        """
        xp, linalg = self._xp, self._jax.lax.linalg
        diagonal = np.arange(self.size)
        pinned = 1.0 - free
        scale = xp.maximum(xp.abs(pinned - hessian[diagonal, diagonal] * free), 1e-8)
        added = np.eye(self.size)[..., None] * (pinned + shift * scale)
        negative = added - hessian * free * free[:, None]
        factor = linalg.cholesky(xp.moveaxis(negative, -1, 0), symmetrize_input=False)
        sound = xp.isfinite(factor).all(axis=(1, 2))
        factor = xp.where(sound[:, None, None], factor, xp.eye(self.size))
        half = linalg.triangular_solve(factor, gradient.T[..., None], left_side=True, lower=True)
        found = linalg.triangular_solve(factor, half, left_side=True, lower=True, transpose_a=True)
        return sound, found[..., 0].T

    def _weights(self, z: Array, members: Members, weight: Array) -> list[Array]:
        """Of log f, (2**d, n, M) a degree group."""
        if not self._joint:
            return [(weight * share).at[0].add(1.0) for share in members.shares]
        q = self._jax.nn.sigmoid(z[self._angles :])
        return [
            slot_products(q[edges], self._xp) + weight * share
            for edges, share in zip(self._edges, members.shares, strict=True)
        ]
