"""Verified lower bounds from gauges: every value here is that of gauged tables without negative entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench import gauges
from spinbench.methods.gauge.objectives import LEAST_COSINE, Tables, entropies, product_weights
from spinbench.models.forney import ForneyModel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

ROUNDING = 1e-13
"""A negative entry up to this share of its table's largest is rounding, and counts as 0."""
ROWS = 256
"""Of pairs of edges at a time."""
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
    with np.errstate(divide="ignore"):
        logits = np.log(q) - np.log1p(-q)
    value = model.log_constant + float(entropies(logits).sum())
    for group, table in zip(model.groups, tables, strict=True):
        weights = product_weights(q[group.edges])
        with np.errstate(divide="ignore", invalid="ignore"):
            value += float(np.where(weights > 0, weights * np.log(table), 0.0).sum())
    return value


def corrections(model: ForneyModel, tables: Sequence[FloatArray]) -> tuple[float, float]:
    """G-BP-single and G-BP-multiple, equations (10) and (11): log of the terms of x with at most one, at most two 1s.

    All terms are non-negative, so both are lower bounds on log Z. With r_e = Π f(e flipped) / f(0) over the two ends
    of e, the pairs are r_e r_e' but for pairs with a common node, which are looked up.
    """
    zero = point_mass_bound(model, tables)
    if not np.isfinite(zero) or not model.num_edges:
        return zero, zero
    one = np.empty(2 * model.num_edges)  # of each half edge: log of the flipped entry over that of 0
    pairs: list[tuple[IntArray, IntArray, FloatArray]] = []
    with np.errstate(divide="ignore"):
        for group, table in zip(model.groups, tables, strict=True):
            places = 1 << np.arange(group.degree - 1, -1, -1)
            relative = np.log(table) - np.log(table[:, :1])
            one[group.own] = relative[:, places]
            for k in range(group.degree):
                for m in range(k + 1, group.degree):
                    e, f = group.own[:, k], group.own[:, m]
                    both = relative[:, places[k] + places[m]]
                    pairs.append((np.minimum(e, f), np.maximum(e, f), both))
    ratio = one[0::2] + one[1::2]
    near = _common_nodes(pairs, one, model.num_edges)
    scale = max(0.0, float(ratio.max()), 0.5 * float(near[2].max(initial=-np.inf)))
    single = float(np.exp(ratio - scale).sum())
    double = _distant_pairs(np.exp(ratio - scale), near) + float(np.exp(near[2] - 2.0 * scale).sum())
    with np.errstate(divide="ignore"):
        terms = np.array([0.0, scale + np.log(single), 2.0 * scale + np.log(double)])
    return zero + float(np.logaddexp.reduce(terms[:2])), zero + float(np.logaddexp.reduce(terms))


def _common_nodes(
    pairs: Sequence[tuple[IntArray, IntArray, FloatArray]], one: FloatArray, num_edges: int
) -> tuple[IntArray, IntArray, FloatArray]:
    """Edges e < f with a common node, ascending in e, and the log of the relative weight of both being 1.

    Parallel edges have two common nodes: the product of their two-flip entries.
    """
    if not pairs:
        none = np.zeros(0, dtype=np.int64)
        return none, none, np.zeros(0)
    first, second, both = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    key = first // 2 * num_edges + second // 2
    found, inverse, count = np.unique(key, return_inverse=True, return_counts=True)
    outside = np.where(count[inverse] == 1, one[first ^ 1] + one[second ^ 1], 0.0)
    value = np.zeros(len(found))
    np.add.at(value, inverse, both + outside)
    return found // num_edges, found % num_edges, value


def _distant_pairs(ratio: FloatArray, near: tuple[IntArray, IntArray, FloatArray]) -> float:
    """Σ r_e r_f over e < f without a common node, without subtractions: terms can differ by many orders."""
    total = 0.0
    for low in range(0, len(ratio), ROWS):
        rows = np.arange(low, min(low + ROWS, len(ratio)))
        others = np.where(rows[:, None] < np.arange(len(ratio)), ratio, 0.0)
        start, end = np.searchsorted(near[0], (low, low + ROWS))
        others[near[0][start:end] - low, near[1][start:end]] = 0.0
        total += float(ratio[rows] @ others.sum(axis=1))
    return total


def node_beliefs(model: ForneyModel, theta: npt.ArrayLike, weights: Sequence[FloatArray]) -> Tables:
    """Derivatives of Σ_a Σ_x w_a(x) log f_{a,G}(x) in log f_a(x') at fixed gauge, normalised: (n, 2**d) a group.

    At a maximum over the gauges these are the derivatives of the maximum itself, and the beliefs of the two ends of an
    edge agree; where the bound is exact they are the marginals. Small negative values are cut off.
    """
    flat = np.asarray(theta, dtype=np.float64).reshape(-1)
    beliefs = []
    for group, weight in zip(model.groups, weights, strict=True):
        own, other = flat[group.own], flat[group.other]
        gauged = gauges.transform(group.tables, own, other)
        pulled = np.divide(weight, gauged, out=np.zeros_like(gauged), where=(gauged > 0) & (weight > 0))
        pulled = gauges.apply_all(pulled, gauges.matrices(own, other).swapaxes(-1, -2))
        belief = np.maximum(pulled * group.tables, 0.0)
        total = belief.sum(axis=1, keepdims=True)
        beliefs.append(np.where(total > 0, belief / np.where(total > 0, total, 1.0), 0.5**group.degree))
    return beliefs
