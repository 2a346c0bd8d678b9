"""Verified lower bounds from gauges: every value is that of lower bounds on gauged tables, none of them negative."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spinbench.api import ForneyModel
from spinbench.mathematics import forney as gauges
from spinbench.methods.gauge.ascent.derivatives import slot_products
from spinbench.methods.gauge.ascent.objectives import LEAST_COSINE

FloatArray = npt.NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)
# Largest exponent of 2 in quotients for which sums and products with gauge matrices stay within float64 (2^1023).
LARGEST_EXPONENT = 900
# Bound on the rounding error, in units in the last place, of a product and a sum and of a matrix entry at cosine 1.
UNITS = 16


def lower_bound_tables(model: ForneyModel, theta: FloatArray) -> list[FloatArray] | None:
    """Lower bounds on the gauged tables, (n, 2**d) a degree group, none negative; None where the gauge gives no bound.

    The gauge is that of the angles theta (2E,), exactly, so that Z is what it was. A computed entry is off by a few
    units in the last place of the sum of its terms' absolute values; less that, it is a lower bound on the true one.
    Where no entry is left negative, no true entry is, and any part of the sum over states, from the lower bounds, is at
    most Z.
    """
    cosines = np.cos(theta[0::2] - theta[1::2])
    if not (cosines > LEAST_COSINE).all():
        return None
    tables = []
    for group in model.groups:
        matrix = gauges.matrices(theta[group.own], theta[group.other])
        # rounding error of an angle difference, relative to its cosine
        units = UNITS * (group.degree + (1.0 / cosines[group.edges]).sum(axis=1, keepdims=True))
        absolute = gauges.apply_all(group.tables, np.abs(matrix))
        lower = gauges.apply_all(group.tables, matrix) - EPS * units * absolute
        # A single entry that may be negative invalidates the bound: a partial sum could exceed Z.
        if not ((lower >= 0.0) & np.isfinite(lower)).all():
            return None
        tables.append(lower)
    return tables


def mean_field_bound(model: ForneyModel, tables: Sequence[FloatArray], q: FloatArray) -> float:
    """The objective (6) of G-MF; -inf where q looks at an entry that is 0.

    Args:
        model: for its graph and its constant.
        tables: gauged, (n, 2**d) a degree group.
        q: (E,) q_e(x_e = 1).
    """
    from scipy.special import entr

    value = model.log_constant + float((entr(q) + entr(1.0 - q)).sum())
    for group, table in zip(model.groups, tables, strict=True):
        weights = slot_products(q[group.edges].T).T
        with np.errstate(divide="ignore", invalid="ignore"):
            value += float(np.where(weights > 0, weights * np.log(table), 0.0).sum())
    return value


def node_beliefs(model: ForneyModel, theta: FloatArray, weights: Sequence[FloatArray]) -> list[FloatArray]:
    """Derivatives of Σ_a Σ_x w_a(x) log f_{a,G}(x) in log f_a(x') at fixed gauge, normalised: (n, 2**d) a group.

    At a maximum over the gauges these are the derivatives of the maximum itself, and the beliefs of the two ends of an
    edge agree; where the bound is exact they are the marginals. Small negative values are cut off.

    Args:
        model: with its tables f.
        theta: (2E,) angles.
        weights: w, of shapes that broadcast to (n, 2**d), a degree group each.
    """
    beliefs = []
    for group, weight in zip(model.groups, weights, strict=True):
        matrix = gauges.matrices(theta[group.own], theta[group.other])
        gauged = gauges.apply_all(group.tables, matrix)
        is_positive = (gauged > 0) & (weight > 0)
        pulled = np.divide(
            _within_range(weight, gauged, is_positive), gauged, out=np.zeros_like(gauged), where=is_positive
        )
        belief = np.maximum(gauges.apply_all(pulled, matrix.swapaxes(-1, -2)) * group.tables, 0.0)
        total = belief.sum(axis=-1, keepdims=True)
        beliefs.append(np.where(total > 0, belief / np.where(total > 0, total, 1.0), 0.5**group.degree))
    return beliefs


def _within_range(weight: FloatArray, gauged: FloatArray, is_positive: np.ndarray) -> FloatArray:
    """Weights (..., 2**d), those of a node halved so often that none of their quotients with `gauged` overflows."""
    sizes = np.frexp(weight)[1] - np.frexp(gauged)[1]
    largest = np.where(is_positive, sizes, 0).max(axis=-1, keepdims=True)
    return np.asarray(np.ldexp(weight, -np.maximum(largest - LARGEST_EXPONENT, 0)))
