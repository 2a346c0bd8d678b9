"""Verified lower bounds from gauges: every value is that of lower bounds on gauged tables, none of them negative.

Partial sums of Z = Σ_x Π_a f_{a,G}(x_a) over the states with at most two 1s give G-BP-single and G-BP-multiple,
equations (10) and (11). No term of a feasible gauge is negative, so that every partial sum is a lower bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.api import ForneyModel
from spinbench.mathematics import forney as gauges
from spinbench.methods.gauge.ascent.derivatives import FloatArray, IntArray, slot_products
from spinbench.methods.gauge.ascent.objectives import LEAST_COSINE

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


# Rows of pairs of edges per block: all pairs at once would take E² numbers.
ROWS = 256


class Sums(NamedTuple):
    """Logarithms of sums of terms; -inf where the term of x = 0 is 0.

    Attributes:
        zero: the term of x = 0.
        single: and of every x with one 1.
        multiple: and of every x with two 1s.
    """

    zero: float
    single: float
    multiple: float


class _Pairs(NamedTuple):
    """Pairs of edges e < f with a common node.

    Attributes:
        first, second: (P,) half edges, one entry a common node.
        which: (P,) the pair of each entry, K in all.
        alone: (P,) whether it is the pair's only common node.
        number: K.
        near: (2, K) the pairs, ascending.
    """

    first: IntArray
    second: IntArray
    which: IntArray
    alone: npt.NDArray[np.bool_]
    number: int
    near: IntArray


def partial_sums(model: ForneyModel, tables: Sequence[FloatArray]) -> Sums:
    """From gauged tables (n, 2**d) a degree group, non-negative.

    With r_e = Π f(e flipped) / f(0) over the two ends of e, the pairs are r_e r_e' but for pairs with a common node,
    which are looked up.

    Args:
        model: gives the graph and the constant; its tables are not used.
        tables: of the gauge.
    """
    if not model.num_edges:
        return Sums(*[model.log_constant] * 3)
    if not all((table[:, 0] > 0).all() for table in tables):
        return Sums(-np.inf, -np.inf, -np.inf)
    zero = model.log_constant
    # For each half edge: log of the flipped entry minus log of the entry of 0.
    log_ratios = np.empty(2 * model.num_edges)
    both: list[FloatArray] = [np.zeros(0)]
    with np.errstate(divide="ignore"):
        for group, table in zip(model.groups, tables, strict=True):
            relative = np.log(table) - np.log(table[:, :1])
            zero += float(np.log(table[:, 0]).sum())
            places = 1 << np.arange(group.degree - 1, -1, -1)
            log_ratios[group.own] = relative[:, places]
            both += [relative[:, a + b] for k, a in enumerate(places) for b in places[k + 1 :]]
    ratio = log_ratios[0::2] + log_ratios[1::2]
    pairs = _pairs_of_edge_ends(model)
    outside = np.where(pairs.alone, log_ratios[pairs.first ^ 1] + log_ratios[pairs.second ^ 1], 0.0)
    # float64 explicitly: without pairs bincount returns integers.
    near = np.zeros(pairs.number)
    np.add.at(near, pairs.which, np.concatenate(both) + outside)
    scale = max(float(ratio.max()), 0.5 * float(near.max(initial=-np.inf)), 0.0)
    plain = np.exp(ratio - scale)
    # r_e r_f is the term of two flips unless e and f share a node, whose table has an entry for both: equation (11) of
    # the paper.
    double = _distant(plain, pairs) + float(np.exp(near - 2.0 * scale).sum())
    with np.errstate(divide="ignore"):
        logs = [0.0, scale + np.log(plain.sum()), 2.0 * scale + np.log(double)]
    return Sums(*(zero + np.logaddexp.accumulate(logs)).tolist())


def _distant(ratio: FloatArray, pairs: _Pairs) -> float:
    """Σ r_e r_f over e < f without a common node, without subtractions: terms can differ by many orders."""
    edges = len(ratio)
    total = 0.0
    for low in range(0, edges, ROWS):
        rows = np.arange(low, min(low + ROWS, edges))
        distant = (rows[:, None] < np.arange(edges)).astype(np.float64)
        start, end = np.searchsorted(pairs.near[0], (low, low + ROWS))
        distant[pairs.near[0][start:end] - low, pairs.near[1][start:end]] = 0.0
        total += float(ratio[rows] @ distant @ ratio)
    return total


def _pairs_of_edge_ends(model: ForneyModel) -> _Pairs:
    firsts, seconds = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for group in model.groups:
        for k in range(group.degree):
            for m in range(k + 1, group.degree):
                e, f = group.own[:, k], group.own[:, m]
                firsts.append(np.minimum(e, f))
                seconds.append(np.maximum(e, f))
    first, second = np.concatenate(firsts), np.concatenate(seconds)
    edges = model.num_edges
    keys, numbers, count = np.unique(first // 2 * edges + second // 2, return_inverse=True, return_counts=True)
    return _Pairs(first, second, numbers, count[numbers] == 1, len(keys), np.stack([keys // edges, keys % edges]))
