"""Gradients and Hessians of sums of log f_{a,G}, node by node, in closed form.

With angles u, v as in `forney.gauges`, ∂G = L G with 2 × 2 matrices L that depend on u - v alone, so that every
derivative acts on the transformed table itself. The diagonal part of L multiplies entries and so drops out of second
derivatives of logarithms between two slots. What is left flips labels: with v = w / f² and, for the entries f_ab
of the labels (a, b) of slots k and m, Δ = f_00 f_11 - f_01 f_10,

    ∂² Σ_x w log f / ∂(angle of k) ∂(angle of m) = sec_k sec_m Σ_rest v_ab Δ,

a = 0 for the own angle of slot k and 1 for the opposite one, b likewise for m.

Nodes stand on the last axis: tables are (2**d, n), first slot slowest, and angles (d, n). `xp` is the array namespace;
nothing branches on values.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.api import Array, Namespace

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


class Derivatives(NamedTuple):
    """Of one sum a node, in the node's coordinates: d own angles, d opposite ones, d logits if any.

    Attributes:
        gradient: (2d or 3d, n).
        hessian: (K, n) the entries that may differ, at the places that `hessian_places` names.
    """

    gradient: Array
    hessian: Array


class _Layout(NamedTuple):
    """Of tables of d slots, P pairs of them; sums over entries are products with its matrices of 0 and 1.

    Attributes:
        flipped: (d, 2**d) the entry with the label of slot k flipped.
        halves: (d, 2, 2**d) whether slot k has label a.
        halves_with_one: (d, 2·d, 2**d) whether slot k has label a and slot m label 1, a slower than m.
        ones: (1 + d + P, 2**d) 1, whether slot k has label 1, and whether both slots of a pair have.
        quarters: (2, 2, P, 2**(d-2)) the entries with labels (a, b) in the slots of a pair.
        first, second: (P,) the slots of each pair, first < second.
    """

    flipped: IntArray
    halves: FloatArray
    halves_with_one: FloatArray
    ones: FloatArray
    quarters: IntArray
    first: IntArray
    second: IntArray


# At singular gauges entries of the tables vanish and quotients overflow; the search accepts no step that ends there.
@np.errstate(over="ignore", divide="ignore", invalid="ignore")
def angle_derivatives(tables: Array, weights: Array, tangent: Array, secant: Array, xp: Namespace = np) -> Derivatives:
    """Of Σ_x w(x) log f(x) in the 2d angles.

    Args:
        tables: (2**d, n) gauged, positive wherever the weight is not 0.
        weights: (2**d, n) or (2**d, 1), constants.
        tangent, secant: (d, n) of the own angle minus the opposite one.
        xp: array namespace.
    """
    layout = _layout(tangent.shape[0])
    safe = xp.where(weights != 0, tables, 1.0)
    ratio = tables[layout.flipped] / safe
    pulls = weights * ratio
    # Axes of `pull` and `pull2`: (d, 2, n).
    pull, pull2 = layout.halves @ pulls, layout.halves @ (pulls * ratio)
    low, high = pull[:, 0], pull[:, 1]
    total = layout.halves @ weights
    signed, squared = (total[:, 1] - total[:, 0]) / 2, secant * secant
    turn, bend = tangent * signed, 2.0 * secant * tangent
    gradient = xp.concat([turn + secant * low, turn - secant * high])
    within = [
        squared * (signed - pull2[:, 0]) + bend * low,
        bend * high - squared * (signed + pull2[:, 1]),
        -squared * (total[:, 0] + total[:, 1]) / 2,
    ]
    f = tables[layout.quarters]
    # Axes of `minors`: (P, 2**(d-2), n), P pairs of slots; of `bends`: (2, 2, P, n).
    minors = f[0, 0] * f[1, 1] - f[0, 1] * f[1, 0]
    bends = ((weights / (safe * safe))[layout.quarters] * minors).sum(axis=3)  # (2, 2, P, n)
    between = secant[layout.first] * secant[layout.second] * bends
    return Derivatives(gradient, xp.concat([*within, between.reshape(-1, tangent.shape[1])]))


@np.errstate(over="ignore", divide="ignore", invalid="ignore")
def joint_derivatives(
    tables: Array, q: Array, floor: float, tangent: Array, secant: Array, xp: Namespace = np
) -> Derivatives:
    """Of Σ_x (Π_k q_k(x_k) + floor) log f(x) in the 2d angles and the d logits of q.

    Args:
        tables: (2**d, n) gauged, positive.
        q: (d, n) q_k(x_k = 1).
        floor: weight that does not change.
        tangent, secant: (d, n) of the own angle minus the opposite one.
        xp: array namespace.
    """
    degree, n = q.shape
    layout = _layout(degree)
    product = slot_products(q, xp)
    angles = angle_derivatives(tables, product + floor, tangent, secant, xp)
    # ∂q_a(x) / ∂logit_k = q_a(x) (x_k - q_k); the gradient in the angles is linear in the weights q_a(x).
    pulls = product * (tables[layout.flipped] / tables)
    pull = (layout.halves @ pulls)[:, :, None]
    # Axes of `moved` and `turned`: (slot of angles, a, logit, n); of `crossed`: (2d, logit, n).
    moved = (layout.halves_with_one @ pulls).reshape(degree, 2, degree, n) - q * pull
    turned = np.eye(degree)[:, :, None] * (tangent * q * (1.0 - q))
    secant = secant[:, None]
    crossed = xp.concat([secant * moved[:, 0] + turned, turned - secant * moved[:, 1]])  # (2d, logit, n)
    moments = layout.ones @ (product * xp.log(tables))
    singles = moments[1 : degree + 1]
    logits = singles - q * moments[0]
    first, second = layout.first, layout.second
    both = moments[degree + 1 :] - q[first] * singles[second] - q[second] * logits[first]
    parts = [angles.hessian, (1.0 - 2.0 * q) * logits, both, crossed.reshape(-1, n)]
    return Derivatives(xp.concat([angles.gradient, logits]), xp.concat(parts))


@lru_cache(maxsize=32)
def hessian_places(degree: int, joint: bool) -> tuple[IntArray, IntArray]:
    """(K,) the node's two coordinates of each entry of `Derivatives.hessian`.

    The entries are own-own, opposite-opposite and own-opposite angles of a slot (d each), angles of two slots
    (2, 2, P), and for G-MF logits with themselves (d), with each other (P), and with angles (2, d, d).
    """
    slots = np.arange(degree)
    same, other, logit = slots, slots + degree, slots + 2 * degree
    first, second = np.triu_indices(degree, 1)
    pairs = [(first + a, second + b) for a in (0, degree) for b in (0, degree)]
    places = [(same, same), (other, other), (same, other), *pairs]
    if joint:
        angles = np.concatenate([same, other])
        places += [(logit, logit), (logit[first], logit[second])]
        places += [(np.repeat(angles, degree), np.tile(logit, 2 * degree))]
    rows, columns = (np.concatenate(parts) for parts in zip(*places, strict=True))
    return rows, columns


def slot_products(q: Array, xp: Namespace = np) -> Array:
    """(2**d, ...) products Π_k q_k(x_k) from q (d, ...), the q_k(x_k = 1); d is at least 1."""
    # NumPy's `stack` takes four times as long.
    labels = xp.reshape(xp.concat([1.0 - q, q]), (2, *q.shape))
    products = labels[:, 0, ...]
    for k in range(1, q.shape[0]):
        products = xp.reshape(products[:, None, ...] * labels[:, k, ...], (2 ** (k + 1), *q.shape[1:]))
    return products


@lru_cache(maxsize=32)
def _layout(degree: int) -> _Layout:
    entries = np.arange(2**degree)
    places = 1 << np.arange(degree - 1, -1, -1)[:, None]
    is_one = entries & places > 0  # (d, 2**d)
    halves = np.stack([~is_one, is_one], axis=1)
    with_one = (halves[:, :, None] & is_one).reshape(degree, 2 * degree, -1)
    first, second = np.triu_indices(degree, 1)
    ones = np.concatenate([np.ones((1, 2**degree), dtype=bool), is_one, is_one[first] & is_one[second]])
    quarters = [
        [[entries[(is_one[k] == a) & (is_one[m] == b)] for k, m in zip(first, second, strict=True)] for b in (0, 1)]
        for a in (0, 1)
    ]
    index = np.array(quarters, dtype=np.int64).reshape(2, 2, len(first), max(2**degree // 4, 1))
    return _Layout(entries ^ places, halves * 1.0, with_one * 1.0, ones * 1.0, index, first, second)
