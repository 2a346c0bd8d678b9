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
them. Derivatives: `spinbench.methods.gauge.ascent.derivatives`.

All functions take the array namespace as `xp` and broadcast over leading axes; they neither branch on values nor
write in place, so that they can be compiled.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
Array = Any
Namespace = Any


def matrices(own: Array, other: Array, xp: Namespace = np) -> Array:
    """G[new state, old state], (..., 2, 2), from the angles (...) of the two ends, |own - other| < π/2."""
    scale = 1.0 / xp.sqrt(xp.cos(own - other))
    entries = [xp.cos(own) * scale, xp.sin(own) * scale, -xp.sin(other) * scale, xp.cos(other) * scale]
    return xp.stack(entries, axis=-1).reshape(*own.shape, 2, 2)


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


class _Entries(NamedTuple):
    """Of tables of d slots.

    Attributes:
        ones: (d, 2**d) float64, x_k of each entry.
        partner: (d, 2**d) the entry with x_k flipped.
    """

    ones: FloatArray
    partner: npt.NDArray[np.int64]


@lru_cache(maxsize=32)
def _entries(degree: int) -> _Entries:
    places = 1 << np.arange(degree - 1, -1, -1)[:, None]
    index = np.arange(2**degree)
    return _Entries(((index & places) > 0).astype(np.float64), index ^ places)


def _by_entry(matrix: Array, ones: FloatArray, xp: Namespace) -> tuple[Array, Array]:
    """(..., d, 2**d) coefficients of f(x) and of f(x with x_k flipped), for matrices (..., d, 2, 2)."""
    high = ones > 0
    same = xp.where(high, matrix[..., 1, 1][..., None], matrix[..., 0, 0][..., None])
    crossed = xp.where(high, matrix[..., 1, 0][..., None], matrix[..., 0, 1][..., None])
    return same, crossed
