"""Verified lower bounds from gauges: every value is that of lower bounds on gauged tables, none of them negative."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spinbench.mathematics.forney import gauges
from spinbench.methods.gauge.ascent.objectives import LEAST_COSINE, Tables, entropies, product_weights
from spinbench.models.forney.model import ForneyModel

FloatArray = npt.NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)
LARGEST_EXPONENT = 900
"""Of 2 in quotients, so that sums and products with matrices of them stay in range."""
UNITS = 16
"""In the last place by which a product and a sum, and an entry of a matrix at cosine 1, are off at most."""


def verified_rows(
    model: ForneyModel,
    theta: FloatArray,
    given: Sequence[FloatArray],
    counted: Sequence[npt.NDArray[np.bool_]] | None = None,
) -> tuple[npt.NDArray[np.bool_], Tables]:
    """Lower bounds on the gauged tables of M models of one graph.

    The gauge is that of the angles at hand, exactly, so that Z is what it was. A computed entry is off by a few units
    in the last place of the sum of its terms' absolute values; less that, it is a lower bound on the true one. Where no
    entry is left negative, no true entry is, and any part of the sum over states, from the lower bounds, is at most Z.

    Args:
        model: for its graph.
        theta: (M, 2E) angles.
        given: tables, (M, n, 2**d) a degree group.
        counted: which of the gauged entries belong to the sum; the others, those of pinned edges, become 0.

    Returns:
        fine (M,): whether the gauge gives a bound; tables (M, n, 2**d), without negative entries where it does.
    """
    cosines = np.cos(theta[:, 0::2] - theta[:, 1::2])
    fine: npt.NDArray[np.bool_] = np.asarray((cosines > LEAST_COSINE).all(axis=1))
    flat = np.where(fine[:, None], theta, 0.0)
    steep = 1.0 / np.where(fine[:, None], cosines, 1.0)  # rounding of an angle's difference, in units of its cosine
    tables = []
    for k, (group, f) in enumerate(zip(model.groups, given, strict=True)):
        own, other = flat[:, group.own], flat[:, group.other]
        units = UNITS * (group.degree + steep[:, group.edges].sum(axis=2))
        lower = gauges.transform(f, own, other) - EPS * units[..., None] * _absolute(f, own, other)
        lower = np.where(np.isfinite(lower), lower, -1.0)
        if counted is not None:
            lower = np.where(counted[k], lower, 0.0)
        fine &= (lower >= 0.0).all(axis=(1, 2))
        tables.append(np.maximum(lower, 0.0))
    return fine, tables


def _absolute(tables: FloatArray, own: FloatArray, other: FloatArray) -> FloatArray:
    """Tables under the absolute values of the matrices of each slot."""
    return np.asarray(gauges.apply_all(tables, np.abs(gauges.matrices(own, other))))


def mean_field_rows(model: ForneyModel, tables: Sequence[FloatArray], q: FloatArray) -> FloatArray:
    """(M,) the objective (6) of G-MF, without constants; -inf where q looks at an entry that is 0.

    Args:
        model: for its graph.
        tables: of M models, (M, n, 2**d) a degree group.
        q: (M, E) q_e(x_e = 1).
    """
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
        there = (gauged > 0) & (weight > 0)
        pulled = np.divide(_within_range(weight, gauged, there), gauged, out=np.zeros_like(gauged), where=there)
        pulled = gauges.apply_all(pulled, gauges.matrices(own, other).swapaxes(-1, -2))
        belief = np.maximum(pulled * f, 0.0)
        total = belief.sum(axis=-1, keepdims=True)
        beliefs.append(np.where(total > 0, belief / np.where(total > 0, total, 1.0), 0.5**group.degree))
    return beliefs


def _within_range(weight: FloatArray, gauged: FloatArray, there: np.ndarray) -> FloatArray:
    """Weights (..., 2**d), those of a node halved so often that none of their quotients with `gauged` overflows."""
    sizes = np.frexp(weight)[1] - np.frexp(gauged)[1]
    most = np.where(there, sizes, 0).max(axis=-1, keepdims=True)
    return np.asarray(np.ldexp(weight, -np.maximum(most - LARGEST_EXPONENT, 0)))
