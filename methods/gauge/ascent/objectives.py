"""The smooth objectives that G-BP and G-MF maximise, with exact Hessians.

Ahn, Chertkov and Shin, "Gauging Variational Inference", NIPS 2017: equation (6) is G-MF, (8) is G-BP. Positivity of
the gauged tables is kept by the objectives themselves: the weight of every log f_{a,G}(x) is positive.

Angles are flat, theta (2E,), indexed 2·edge + side as in `forney.gauges`; tables are (n, 2**d), one array a degree
group.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.mathematics.forney import gauges
from spinbench.methods.gauge.ascent.derivatives import (
    Local,
    angle_derivatives,
    angle_entries,
    joint_derivatives,
    joint_entries,
)
from spinbench.methods.gauge.ascent.linear import Pattern
from spinbench.models.forney.model import DegreeGroup, ForneyModel

FloatArray = npt.NDArray[np.float64]
Tables = list[FloatArray]

LEAST_COSINE = 1e-4
"""Of φ - ψ on every edge: its gauge's condition number is at most twice the inverse."""
ANGLE_STEP, LOGIT_STEP = 0.7, 4.0
"""Largest changes of a coordinate in one step."""
FAR_LOGIT = 16.0
"""Logits beyond, and pushed outwards, stay where they are."""


class Point(NamedTuple):
    """An evaluated point.

    Attributes:
        value: of the objective; -inf where it is not defined.
        tables: gauged tables, one (n, 2**d) array a degree group.
    """

    value: float
    tables: Tables


def bits_of(degree: int) -> FloatArray:
    """(degree, 2**degree) x_k of each table entry."""
    entries = np.arange(2**degree)
    return np.asarray(entries >> np.arange(degree - 1, -1, -1)[:, None] & 1, dtype=np.float64)


def product_weights(p: Any, xp: Any = np) -> Any:
    """(..., 2**d) products Π_k p_k(x_k) from p (..., d), the p_k(x_k = 1)."""
    weights = xp.expand_dims(xp.prod(xp.ones_like(p), axis=-1), axis=-1)  # 1, also where d = 0
    for k in range(p.shape[-1]):
        one = p[..., k : k + 1]
        halves = xp.stack([weights * (1.0 - one), weights * one], axis=-1)
        weights = xp.reshape(halves, (*p.shape[:-1], 2 ** (k + 1)))
    return weights


def barrier_weights(degree: int, delta: float) -> FloatArray:
    """(2**d,) δ 2^-d, and 1 more at x = 0: with equal totals at both ends of an edge the objective is bounded."""
    weights = np.full(2**degree, delta / 2**degree)
    weights[0] += 1.0
    return weights


class Objective:
    """What Newton's method asks for; all of it but the weights of log f is common to G-BP and G-MF.

    Attributes:
        model: of positive tables.
        size: number of coordinates.
        pattern: where the entries of Hessians stand.
        steps: (size,) largest changes in one step.
        conditioning: weight of Σ_e log cos(φ_e - ψ_e), which keeps gauges away from singular ones.
    """

    def __init__(self, model: ForneyModel, pattern: Pattern, conditioning: float, tables: Tables | None = None) -> None:
        self.model = model
        self.pattern = pattern
        self.size = size = pattern.size
        self.steps = np.full(size, ANGLE_STEP)
        self.conditioning = conditioning
        self._source = [group.tables for group in model.groups] if tables is None else tables

    def evaluate(self, z: FloatArray, floors: Tables | None = None) -> Point:
        """Value and tables; -inf where an entry does not exceed its floor (by default 0)."""
        theta = z[: 2 * self.model.num_edges]
        cosines = np.cos(theta[0::2] - theta[1::2])
        if not (cosines > LEAST_COSINE).all():
            return Point(-np.inf, [])
        tables = [
            gauges.transform(f, theta[g.own], theta[g.other])
            for g, f in zip(self.model.groups, self._source, strict=True)
        ]
        for k, table in enumerate(tables):
            if not (table > (0.0 if floors is None else floors[k])).all():
                return Point(-np.inf, tables)
        return Point(self._value(z, tables) + self.conditioning * float(np.log(cosines).sum()), tables)

    def derivatives(self, z: FloatArray, tables: Tables) -> tuple[FloatArray, FloatArray]:
        """Gradient (size,) and the Hessian's entries, as `pattern` takes them."""
        slopes, values = [], []
        for group, table in zip(self.model.groups, tables, strict=True):
            local, hessian = self._local(z, group, table)
            slopes.append(local)
            values.append(hessian.ravel())
        gradient = self.pattern.total(slopes)
        first = slice(0, 2 * self.model.num_edges, 2)
        second = slice(1, 2 * self.model.num_edges, 2)
        difference = z[first] - z[second]
        slope = self.conditioning * np.tan(difference)
        gradient[first] -= slope
        gradient[second] += slope
        bend = self.conditioning / np.cos(difference) ** 2
        values += [-bend, -bend, bend, bend]
        self._add_entropy(z, gradient, values)
        return gradient, np.concatenate(values)

    def free(self, z: FloatArray, gradient: FloatArray) -> npt.NDArray[np.bool_]:
        """(size,) which coordinates may move."""
        return np.ones(self.size, dtype=bool)

    def _value(self, z: FloatArray, tables: Tables) -> float:
        raise NotImplementedError

    def _local(self, z: FloatArray, group: DegreeGroup, table: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient (n, v) and Hessian (n, v, v) of the nodes' own terms, in their coordinates as in `pattern`."""
        raise NotImplementedError

    def _add_entropy(self, z: FloatArray, gradient: FloatArray, values: list[FloatArray]) -> None:
        """Adds to the gradient and to the Hessian's entries; G-BP has no entropy."""


class PointMassObjective(Objective):
    """Σ_a [log f_{a,G}(0) + δ 2^-d Σ_x log f_{a,G}(x)], whose maximum tends to that of G-BP as δ → 0.

    With `zero_weight` 0 it is the analytic centre's objective, for the search of an interior point.
    """

    def __init__(
        self,
        model: ForneyModel,
        delta: float,
        conditioning: float,
        *,
        zero_weight: float = 1.0,
        tables: Tables | None = None,
        pattern: Pattern | None = None,
    ) -> None:
        super().__init__(model, pattern or angle_pattern(model), conditioning, tables)
        self.weights = [barrier_weights(g.degree, delta) for g in model.groups]
        for weights in self.weights:
            weights[0] += zero_weight - 1.0

    def _value(self, z: FloatArray, tables: Tables) -> float:
        return float(sum((np.log(t) @ w).sum() for t, w in zip(tables, self.weights, strict=True)))

    def _local(self, z: FloatArray, group: DegreeGroup, table: FloatArray) -> tuple[FloatArray, FloatArray]:
        weights = next(w for w in self.weights if len(w) == table.shape[1])
        found = angle_derivatives(table.T, np.broadcast_to(weights, table.shape).T, *_turns(z, group))
        return _by_node(found, angle_entries(group.degree))


class MeanFieldObjective(Objective):
    """Σ_a Σ_x (q_a(x) + ε 2^-d) log f_{a,G}(x) + Σ_e H(q_e) in angles and logits, z = (theta, logits) of 3E.

    The floor ε keeps entries positive that q does not look at.
    """

    def __init__(self, model: ForneyModel, conditioning: float, floor: float, pattern: Pattern | None = None) -> None:
        super().__init__(model, pattern or joint_pattern(model), conditioning)
        self.steps[2 * model.num_edges :] = LOGIT_STEP
        self.floor = floor

    def free(self, z: FloatArray, gradient: FloatArray) -> npt.NDArray[np.bool_]:
        first = 2 * self.model.num_edges
        free = np.ones(self.size, dtype=bool)
        free[first:] = (np.abs(z[first:]) <= FAR_LOGIT) | (gradient[first:] * z[first:] < 0)
        return free

    def _value(self, z: FloatArray, tables: Tables) -> float:
        from scipy.special import expit

        logits = z[2 * self.model.num_edges :]
        q = expit(logits)
        value = float(entropies(logits).sum())
        for group, table in zip(self.model.groups, tables, strict=True):
            weights = product_weights(q[group.edges]) + self.floor / table.shape[1]
            value += float((weights * np.log(table)).sum())
        return value

    def _local(self, z: FloatArray, group: DegreeGroup, table: FloatArray) -> tuple[FloatArray, FloatArray]:
        from scipy.special import expit

        q = expit(z[2 * self.model.num_edges + group.edges])
        found = joint_derivatives(table.T, q.T, self.floor / table.shape[1], *_turns(z, group))
        return _by_node(found, joint_entries(group.degree))

    def _add_entropy(self, z: FloatArray, gradient: FloatArray, values: list[FloatArray]) -> None:
        from scipy.special import expit

        first = 2 * self.model.num_edges
        logits = z[first:]
        q = expit(logits)
        spread = q * (1.0 - q)
        gradient[first:] -= logits * spread
        values.append(-spread * (1.0 + logits * (1.0 - 2.0 * q)))


def angle_pattern(model: ForneyModel) -> Pattern:
    """Of Hessians in the angles."""
    return Pattern([np.concatenate([g.own, g.other], axis=1) for g in model.groups], _owners(model, 2), _pairs(model))


def joint_pattern(model: ForneyModel) -> Pattern:
    """Of Hessians in the angles and logits."""
    logits = np.arange(2 * model.num_edges, 3 * model.num_edges)
    nodes = [np.concatenate([g.own, g.other, logits[g.edges]], axis=1) for g in model.groups]
    return Pattern(nodes, _owners(model, 3), [*_pairs(model), (logits, logits)])


def _owners(model: ForneyModel, width: int) -> npt.NDArray[np.int64]:
    """(width · E,) the edge of each coordinate."""
    edges = np.arange(model.num_edges)
    return np.concatenate([np.repeat(edges, 2), edges][: width - 1])


def _pairs(model: ForneyModel) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Entries of Σ log cos(φ - ψ)."""
    first = np.arange(0, 2 * model.num_edges, 2)
    return [(first, first), (first + 1, first + 1), (first, first + 1), (first + 1, first)]


def _turns(z: FloatArray, group: DegreeGroup) -> tuple[FloatArray, FloatArray]:
    """(d, n) tangent and secant of the own angles minus the opposite ones."""
    difference = (z[group.own] - z[group.other]).T
    return np.tan(difference), 1.0 / np.cos(difference)


def _by_node(found: Local, entries: npt.NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
    return found.gradient.T, np.moveaxis(found.hessian[entries], -1, 0)


def entropies(logits: FloatArray) -> FloatArray:
    """H(q) of q = σ(logit), elementwise; 0 at ±inf."""
    from scipy.special import expit

    size = np.abs(logits)
    with np.errstate(invalid="ignore"):
        return np.where(size > 700.0, 0.0, np.log1p(np.exp(-size)) + size * expit(-size))
