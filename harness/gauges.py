"""Gauge transformations of Forney models (Ahn, Chertkov and Shin, "Gauging Variational Inference", NIPS 2017).

Every edge ab carries two 2 × 2 matrices with G_abᵀ G_ba = I. The tables

    f_{a,G}(x) = Σ_x' f_a(x') Π_b G_ab(x_ab, x'_ab)

have Σ_x Π_a f_{a,G}(x_a) = Z for every G; entries may be negative. The matrices come from two angles an edge, one
for each end; with u the end's own angle, v that of the opposite end and c = cos(u - v) > 0,

    G = c^(-1/2) [[cos u, sin u], [-sin v, cos v]],   det G = 1,

the identity at u = v = 0. This reaches all gauges of positive determinant, up to diagonal factors that cancel
between the two ends; `ForneyModel.relabel` reaches the others.

Angles are stored as (E, 2), one column a side, and indexed flat, 2·edge + side, by `DegreeGroup.own` and `.other`.
Tables are flat, (..., 2**d) with the first edge slowest, and d is the last length of the angles (..., d) given with
them. Derivatives with respect to angles come in the order (u_1, …, u_d, v_1, …, v_d), own angles first. Since
∂G = L G with 2 × 2 matrices L that depend on u - v alone, every derivative acts on the transformed table itself.

All functions take the array namespace as `xp` and broadcast over leading axes; they neither branch on values nor
write in place, so that they can be compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.models.forney import ForneyModel

FloatArray = npt.NDArray[np.float64]
Array = Any
Namespace = Any


def matrices(own: Array, other: Array, xp: Namespace = np) -> Array:
    """G[new state, old state], (..., 2, 2), from the angles (...) of the two ends, |own - other| < π/2."""
    scale = 1.0 / xp.sqrt(xp.cos(own - other))
    entries = [xp.cos(own) * scale, xp.sin(own) * scale, -xp.sin(other) * scale, xp.cos(other) * scale]
    return xp.stack(entries, axis=-1).reshape(*own.shape, 2, 2)


def apply(tables: Array, slot: int, degree: int, matrix: Array, xp: Namespace = np) -> Array:
    """Tables (..., 2**degree) with the axis of one slot multiplied by matrices (..., 2, 2)."""
    entries = _entries(degree)
    same, crossed = _by_entry(matrix[..., None, :, :], entries.ones[slot][None], xp)
    return same[..., 0, :] * tables + crossed[..., 0, :] * xp.take(tables, entries.partner[slot], axis=-1)


def apply_all(tables: Array, matrix: Array, xp: Namespace = np) -> Array:
    """Tables (..., 2**d) with the axis of every slot multiplied by its matrix, (..., d, 2, 2)."""
    degree = matrix.shape[-3]
    entries = _entries(degree)
    same, crossed = _by_entry(matrix, entries.ones, xp)
    for k in range(degree):
        tables = same[..., k, :] * tables + crossed[..., k, :] * xp.take(tables, entries.partner[k], axis=-1)
    return tables


def transform(tables: Array, own: Array, other: Array, xp: Namespace = np) -> Array:
    """f_{a,G}, (..., 2**d), of tables (..., 2**d) under angles (..., d)."""
    return apply_all(tables, matrices(own, other, xp), xp) if own.shape[-1] else tables


def transformed(model: ForneyModel, angles: npt.ArrayLike) -> list[FloatArray]:
    """f_{a,G} of all nodes, one (n, 2**d) array a degree group, under angles (E, 2)."""
    flat = np.asarray(angles, dtype=np.float64).reshape(-1)
    return [transform(g.tables, flat[g.own], flat[g.other]) for g in model.groups]


def generators(own: Array, other: Array, xp: Namespace = np) -> tuple[Array, Array]:
    """L with ∂G/∂angle = L G for the own and the opposite angle, both (..., 2, 2)."""
    t, s = _tangent_and_secant(own, other, xp)
    zero = xp.zeros_like(t)
    return _matrix(-t / 2, s, zero, t / 2, xp), _matrix(-t / 2, zero, -s, t / 2, xp)


def second_generators(own: Array, other: Array, xp: Namespace = np) -> tuple[Array, Array, Array]:
    """M with ∂²G = M G for (own, own), (own, opposite) and (opposite, opposite), each (..., 2, 2)."""
    t, s = _tangent_and_secant(own, other, xp)
    zero = xp.zeros_like(t)
    low, high, slope = t * t / 4 - s * s / 2, t * t / 4 + s * s / 2, s * t
    return (
        _matrix(low, slope, zero, high, xp),
        _matrix(low, -slope / 2, -slope / 2, low, xp),
        _matrix(high, zero, slope, low, xp),
    )


def first_derivatives(gauged: Array, own: Array, other: Array, xp: Namespace = np) -> Array:
    """∂f_{a,G}(x)/∂angle, (..., 2d, 2**d), from gauged tables (..., 2**d) and their angles (..., d)."""
    entries = _entries(own.shape[-1])
    t, s = _tangent_and_secant(own, other, xp)
    own_part, other_part = _with_generators(gauged, t, s, entries.ones, entries, xp)
    return xp.concatenate([own_part, other_part], axis=-2)


def second_derivatives(gauged: Array, own: Array, other: Array, xp: Namespace = np) -> Array:
    """∂²f_{a,G}(x)/∂angle∂angle, (..., 2d, 2d, 2**d): large; `derivatives` sums over x on the way."""
    degree = own.shape[-1]
    first = first_derivatives(gauged, own, other, xp)
    L, M = generators(own, other, xp), second_generators(own, other, xp)
    rows = []
    for i in range(2 * degree):
        side, k = divmod(i, degree)
        row = []
        for j in range(2 * degree):
            other_side, m = divmod(j, degree)
            row.append(
                apply(gauged, k, degree, M[side + other_side][..., k, :, :], xp)
                if k == m
                else apply(first[..., j, :], k, degree, L[side][..., k, :, :], xp)
            )
        rows.append(xp.stack(row, axis=-2))
    return xp.stack(rows, axis=-3)


class Derivatives(NamedTuple):
    """Of Σ_x w(x) log f_{a,G}(x), one row a node.

    Attributes:
        value: (...).
        gradient: (..., 2d), own angles first.
        hessian: (..., 2d, 2d).
    """

    value: Array
    gradient: Array
    hessian: Array


def derivatives(gauged: Array, weights: Array, own: Array, other: Array, xp: Namespace = np) -> Derivatives:
    """Value, gradient and Hessian of Σ_x weights(x) log f_{a,G}(x) with respect to the 2d angles of each node.

    Args:
        gauged: (..., 2**d) from `transform`, positive wherever the weight is not 0.
        weights: (..., 2**d), constants.
        own: (..., d) angles of the nodes' own ends.
        other: (..., d) angles of the opposite ends.
        xp: array namespace.
    """
    return derivatives_and_first(gauged, weights, own, other, xp)[0]


def derivatives_and_first(
    gauged: Array, weights: Array, own: Array, other: Array, xp: Namespace = np
) -> tuple[Derivatives, Array]:
    """`derivatives`, and the `first_derivatives` (..., 2d, 2**d) that they come from."""
    entries = _entries(own.shape[-1])
    used = weights != 0
    safe = xp.where(used, gauged, 1.0)
    ratio = weights / safe
    t, s = _tangent_and_secant(own, other, xp)
    first = xp.concatenate(_with_generators(gauged, t, s, entries.ones, entries, xp), axis=-2)
    gradient = xp.matmul(first, ratio[..., None])[..., 0]
    # ∂_i ∂_j f = L_i L_j f + (∂_j L_i) f, and Σ_x r(x) (L_i L_j f)(x) = Σ_x (L_iᵀ r)(x) (L_j f)(x); the transposes swap
    # the roles of 0 and 1
    pulled = xp.concatenate(_with_generators(ratio, t, s, 1.0 - entries.ones, entries, xp), axis=-2)
    hessian = xp.matmul(pulled - first * (ratio / safe)[..., None, :], xp.swapaxes(first, -1, -2))
    # ∂_j L_i is not 0 where both angles are of one slot; with A = Σ_x r(x) f(x) (2 x_k - 1), and since tan² + 1 = sec²,
    # Σ_x r(x) ((∂_u L_i) f)(x) = A/2 + tan · gradient_i, and ∂_v L_i = -∂_u L_i
    signed = xp.matmul(weights, xp.asarray((2.0 * entries.ones - 1.0).T))
    turned = xp.concatenate([signed, signed], axis=-1) / 2 + xp.concatenate([t, t], axis=-1) * gradient
    value = (weights * xp.log(safe)).sum(axis=-1)
    return Derivatives(value, gradient, hessian + turned[..., :, None] * entries.same), first


class _Entries(NamedTuple):
    """Of tables of d slots.

    Attributes:
        ones: (d, 2**d) float64, x_k of each entry.
        partner: (d, 2**d) the entry with x_k flipped.
        same: (2d, 2d) of two angles of one slot 1 if the second is the own one, -1 if the opposite one; else 0.
    """

    ones: FloatArray
    partner: npt.NDArray[np.int64]
    same: FloatArray


@lru_cache(maxsize=32)
def _entries(degree: int) -> _Entries:
    places = 1 << np.arange(degree - 1, -1, -1)[:, None]
    index = np.arange(2**degree)
    diagonal = np.eye(degree)
    same = np.tile(np.concatenate([diagonal, -diagonal], axis=1), (2, 1))
    return _Entries(((index & places) > 0).astype(np.float64), index ^ places, same)


def _by_entry(matrix: Array, ones: FloatArray, xp: Namespace) -> tuple[Array, Array]:
    """(..., d, 2**d) coefficients of f(x) and of f(x with x_k flipped), for matrices (..., d, 2, 2)."""
    high = ones > 0
    same = xp.where(high, matrix[..., 1, 1][..., None], matrix[..., 0, 0][..., None])
    crossed = xp.where(high, matrix[..., 1, 0][..., None], matrix[..., 0, 1][..., None])
    return same, crossed


def _with_generators(
    tables: Array, t: Array, s: Array, ones: FloatArray, entries: _Entries, xp: Namespace
) -> tuple[Array, Array]:
    """L f for the own and the opposite angle of every slot, (..., d, 2**d) each, with t and s (..., d).

    L = [[-t/2, s], [0, t/2]] and [[-t/2, 0], [-s, t/2]].
    """
    straight = (t / 2)[..., None] * (entries.ones * 2.0 - 1.0) * tables[..., None, :]
    crossed = s[..., None] * xp.take(tables, entries.partner, axis=-1)
    return straight + (1.0 - ones) * crossed, straight - ones * crossed


def zero_term(model: ForneyModel, gauged: Sequence[npt.ArrayLike]) -> float:
    """log of the term of x = 0, log_constant + Σ_a log f_{a,G}(0); nan where an f_{a,G}(0) is negative."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return model.log_constant + float(sum(np.log(np.asarray(t)[:, 0]).sum() for t in gauged))


def smallest_entry(gauged: Sequence[npt.ArrayLike]) -> float:
    """min_{a,x} f_{a,G}(x) / max_x |f_{a,G}(x)|: a bound needs it not to be negative beyond rounding (-1e-13)."""
    arrays = [np.asarray(t) for t in gauged]
    return min((float((t.min(axis=1) / np.abs(t).max(axis=1)).min()) for t in arrays), default=0.0)


def relabelled_angles(angles: npt.ArrayLike, flips: npt.ArrayLike) -> FloatArray:
    """Angles (E, 2) for `model.relabel(flips)` that give the same tables, permuted: (u, v) becomes (-v, -u)."""
    theta = np.asarray(angles, dtype=np.float64)
    return np.where(np.asarray(flips).astype(bool)[:, None], -theta[:, ::-1], theta)


def random_angles(num_edges: int, rng: np.random.Generator, spread: float = 0.9) -> FloatArray:
    """(E, 2) angles of which the first is anywhere and the second at most spread · π/2 (spread < 1) away."""
    first = rng.uniform(-np.pi, np.pi, num_edges)
    return np.stack([first, first + rng.uniform(-0.5, 0.5, num_edges) * np.pi * spread], axis=1)


def _tangent_and_secant(own: Array, other: Array, xp: Namespace) -> tuple[Array, Array]:
    difference = own - other
    return xp.tan(difference), 1.0 / xp.cos(difference)


def _matrix(a: Array, b: Array, c: Array, d: Array, xp: Namespace) -> Array:
    return xp.stack([xp.stack([a, b], axis=-1), xp.stack([c, d], axis=-1)], axis=-2)
