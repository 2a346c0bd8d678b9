"""Verified lower bounds from gauges: every value here is that of gauged tables without negative entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.mathematics.forney import gauges
from spinbench.methods.gauge.ascent.objectives import LEAST_COSINE, Tables, entropies, product_weights
from spinbench.models.forney.model import ForneyModel

FloatArray = npt.NDArray[np.float64]

ROUNDING = 1e-13
"""A negative entry up to this share of its table's largest is rounding, and counts as 0."""
EPS = float(np.finfo(np.float64).eps)


class Verified(NamedTuple):
    """Gauged tables that give bounds.

    Attributes:
        tables: (n, 2**d) a degree group, without negative entries.
        slack: log of their own partition function exceeds log Z by no more; to be taken off every bound.
    """

    tables: Tables
    slack: float


def verify(model: ForneyModel, theta: npt.ArrayLike) -> Verified | None:
    """Gauged tables from the angles theta (2E,), entries that are 0 but for rounding set to 0; see `verified_rows`.

    None where the gauge gives no bound: an entry is negative or not finite, a matrix is nearly singular, or rounding
    spoils everything.
    """
    flat = np.asarray(theta, dtype=np.float64).reshape(1, -1)
    fine, tables, slack = verified_rows(model, flat, [group.tables[None] for group in model.groups])
    return Verified([table[0] for table in tables], float(slack[0])) if fine[0] else None


def verified_rows(
    model: ForneyModel,
    theta: FloatArray,
    given: Sequence[FloatArray],
    counted: Sequence[npt.NDArray[np.bool_]] | None = None,
) -> tuple[npt.NDArray[np.bool_], Tables, FloatArray]:
    """Gauged tables of M models of one graph, and what they may exceed Z by.

    Rounding is accounted for: the tables at hand are exact gauges of tables f + η, and where |η| <= ε_a f_a their
    partition function is at most Π (1 + ε_a) Z. Each level of the transformation errs by a few units in the last place
    of the sum of absolute values; what that means for f follows from the inverse matrices. Where f is 0, η is compared
    with the largest entry of its table instead.

    Args:
        model: for its graph.
        theta: (M, 2E) angles.
        given: tables, (M, n, 2**d) a degree group.
        counted: which of the gauged entries belong to the sum; the others, those of pinned edges, become 0.

    Returns:
        fine (M,): whether the gauge gives a bound; tables (M, n, 2**d), without negative entries where it does; slack
        (M,), to be taken off the bound.
    """
    cosines = np.cos(theta[:, 0::2] - theta[:, 1::2])
    fine: npt.NDArray[np.bool_] = np.asarray((cosines > LEAST_COSINE).all(axis=1))
    flat = np.where(fine[:, None], theta, 0.0)
    slack = 8.0 * EPS * (1.0 / np.where(fine[:, None], cosines, 1.0)).sum(axis=1)
    tables = []
    for k, (group, f) in enumerate(zip(model.groups, given, strict=True)):
        own, other = flat[:, group.own], flat[:, group.other]
        gauged = gauges.transform(f, own, other)
        fine &= np.isfinite(gauged).all(axis=(1, 2))
        gauged = np.where(np.isfinite(gauged), gauged, 0.0)
        if counted is not None:
            gauged = np.where(counted[k], gauged, 0.0)
        fine &= (gauged >= -ROUNDING * np.abs(gauged).max(axis=2, keepdims=True)).all(axis=(1, 2))
        error = 8.0 * group.degree * EPS * _absolute(f, own, other) + np.maximum(-gauged, 0.0)
        # G_abᵀ G_ba = I: the inverse of an end's matrix is the transpose of the other end's.
        back = _absolute(error, other, own, transposed=True)
        relative = np.divide(back, f, out=back / f.max(axis=2, keepdims=True), where=f > 0)
        slack = slack + np.log1p(relative.max(axis=2)).sum(axis=1)
        tables.append(np.maximum(gauged, 0.0))
    return fine & np.isfinite(slack), tables, slack


def _absolute(tables: FloatArray, own: FloatArray, other: FloatArray, *, transposed: bool = False) -> FloatArray:
    """Tables under the absolute values of the matrices of each slot, or of their transposes."""
    matrices = np.abs(gauges.matrices(own, other))
    if transposed:
        matrices = matrices.swapaxes(-1, -2)
    return np.asarray(gauges.apply_all(tables, matrices))


def point_mass_bound(model: ForneyModel, tables: Sequence[FloatArray]) -> float:
    """log Π_a f_{a,G}(0), the objective (8) of G-BP."""
    return gauges.zero_term(model, tables)


def mean_field_bound(model: ForneyModel, tables: Sequence[FloatArray], q: FloatArray) -> float:
    """The objective (6) of G-MF for q (E,) = q_e(x_e = 1); -inf where q looks at an entry that is 0."""
    return model.log_constant + float(mean_field_rows(model, [table[None] for table in tables], q[None])[0])


def mean_field_rows(model: ForneyModel, tables: Sequence[FloatArray], q: FloatArray) -> FloatArray:
    """(M,) as `mean_field_bound`, of tables (M, n, 2**d) and q (M, E) of models of one graph, without constants."""
    with np.errstate(divide="ignore"):
        logits = np.log(q) - np.log1p(-q)
    value = entropies(logits).sum(axis=1)
    for group, table in zip(model.groups, tables, strict=True):
        weights = product_weights(q[:, group.edges])
        with np.errstate(divide="ignore", invalid="ignore"):
            value = value + np.where(weights > 0, weights * np.log(table), 0.0).sum(axis=(1, 2))
    return np.asarray(value)


def node_beliefs(
    model: ForneyModel, theta: FloatArray, given: Sequence[FloatArray], weights: Sequence[FloatArray]
) -> Tables:
    """Derivatives of Σ_a Σ_x w_a(x) log f_{a,G}(x) in log f_a(x') at fixed gauge, normalised: (M, n, 2**d) a group.

    At a maximum over the gauges these are the derivatives of the maximum itself, and the beliefs of the two ends of an
    edge agree; where the bound is exact they are the marginals. Small negative values are cut off.

    Args:
        model: for its graph.
        theta: (M, 2E) angles.
        given: tables f, (M, n, 2**d) a degree group.
        weights: w, of shapes that broadcast to the same.
    """
    beliefs = []
    for group, f, weight in zip(model.groups, given, weights, strict=True):
        own, other = theta[:, group.own], theta[:, group.other]
        gauged = gauges.transform(f, own, other)
        pulled = np.divide(weight, gauged, out=np.zeros_like(gauged), where=(gauged > 0) & (weight > 0))
        pulled = gauges.apply_all(pulled, gauges.matrices(own, other).swapaxes(-1, -2))
        belief = np.maximum(pulled * f, 0.0)
        total = belief.sum(axis=-1, keepdims=True)
        beliefs.append(np.where(total > 0, belief / np.where(total > 0, total, 1.0), 0.5**group.degree))
    return beliefs
