"""Gradients and Hessians of sums of log f_{a,G}, node by node, in closed form.

With angles u, v as in `forney.gauges`, ∂G = L G with 2 × 2 matrices L that depend on u - v alone, so that every
derivative acts on the transformed table itself. The diagonal part of L multiplies entries and so drops out of second
derivatives of logarithms between two slots. What is left flips labels: with v = w / f² and, for the entries f_ab
of the labels (a, b) of slots k and m, Δ = f_00 f_11 - f_01 f_10,

    ∂² Σ_x w log f / ∂(angle of k) ∂(angle of m) = sec_k sec_m Σ_rest v_ab Δ,

a = 0 for the own angle of slot k and 1 for the opposite one, b likewise for m.

Arrays have what belongs to a node first and whatever is side by side after it: tables (2**d, ...), first slot slowest,
and angles (d, ...), where (...) are nodes, or nodes and members of a batch. `xp` is the array namespace; nothing
branches on values.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
Array = Any


class _Places(NamedTuple):
    """Where the entries of a table stand, R = 2**(d-1) or 2**(d-2) labels of the other slots, P pairs of slots.

    Attributes:
        halves: (2, d, R) entries with label a in slot k.
        quarters: (2, 2, P, R) entries with labels (a, b) in the slots of a pair.
        first, second: (P,) the slots of each pair, first < second.
        others: (d, 2, d, R) label of slot k in `halves`, 0. or 1.
    """

    halves: IntArray
    quarters: IntArray
    first: IntArray
    second: IntArray
    others: npt.NDArray[np.float64]


class Local(NamedTuple):
    """Of one sum, in the v coordinates of each node: d own angles, d opposite ones, d logits if any.

    Attributes:
        gradient: (v, ...).
        hessian: (K, ...) the entries that may differ; `angle_entries` and `joint_entries` say which stands where.
    """

    gradient: Array
    hessian: Array


def angle_derivatives(tables: Array, weights: Array, tangent: Array, secant: Array, xp: Any = np) -> Local:
    """Of Σ_x w(x) log f(x) in the 2d angles.

    Args:
        tables: (2**d, ...) gauged, positive wherever the weight is not 0.
        weights: (2**d, ...), constants.
        tangent, secant: (d, ...) of the own angle minus the opposite one.
        xp: array namespace.
    """
    return Local(*_angles(tables, weights, tangent, secant, xp)[:2])


def joint_derivatives(tables: Array, q: Array, floors: Array, tangent: Array, secant: Array, xp: Any = np) -> Local:
    """Of Σ_x (Π_k q_k(x_k) + floors(x)) log f(x) in the 2d angles and the d logits of q.

    Args:
        tables: (2**d, ...) gauged, positive.
        q: (d, ...) q_k(x_k = 1).
        floors: (2**d, ...) or one for all, weights that do not change.
        tangent, secant: (d, ...) of the own angle minus the opposite one.
        xp: array namespace.
    """
    places = _places(q.shape[0])
    product = slot_products(q, xp)
    gradient, hessian, ratio = _angles(tables, product + floors, tangent, secant, xp)
    # ∂q_a(x) / ∂logit_k = q_a(x) (x_k - q_k), and what the angles' gradient is made of is linear in the weights
    flipped = product[places.halves] * ratio  # (2, d, R, ...)
    given = places.others.reshape(*places.others.shape, *[1] * (tables.ndim - 1))
    moved = (given * flipped).sum(axis=3) - q[:, None, None] * flipped.sum(axis=2)  # (d, 2, d, ...)
    spread = q * (1.0 - q)
    turned = xp.asarray(np.eye(len(q)).reshape(len(q), len(q), *[1] * (q.ndim - 1))) * (tangent * spread)
    crossed = xp.stack([secant * moved[:, 0] + turned, turned - secant * moved[:, 1]], axis=1)  # (d, 2, d, ...)
    energy = product * xp.log(tables)
    all_, one = energy.sum(axis=0), energy[places.halves[1]].sum(axis=1)
    logits = one - q * all_
    first, second = places.first, places.second
    both = energy[places.quarters[1, 1]].sum(axis=1)
    both = both - q[first] * one[second] - q[second] * one[first] + q[first] * q[second] * all_
    hessian = xp.concatenate([hessian, (1.0 - 2.0 * q) * logits, both, crossed.reshape(-1, *q.shape[1:])])
    return Local(xp.concatenate([gradient, logits]), hessian)


def angle_entries(degree: int) -> IntArray:
    """(2d, 2d) of `angle_derivatives`: the entry of `Local.hessian` at each place of the Hessian."""
    return joint_entries(degree)[: 2 * degree, : 2 * degree]


@lru_cache(maxsize=32)
def joint_entries(degree: int) -> IntArray:
    """(3d, 3d) of `joint_derivatives`: the entry of `Local.hessian` at each place of the Hessian.

    The entries are own-own, opposite-opposite and own-opposite angles of a slot (d each), angles of two slots
    (2, 2, P), logits with themselves (d), with each other (P), and with angles (d, 2, d).
    """
    first, second = np.triu_indices(degree, 1)
    slots, pairs = np.arange(degree), np.arange(len(first))
    where = np.zeros((3 * degree, 3 * degree), dtype=np.int64)
    own, other, logit = slots, slots + degree, slots + 2 * degree
    start = 0

    def put(rows: IntArray, columns: IntArray) -> None:
        nonlocal start
        where[rows, columns] = where[columns, rows] = start + np.arange(rows.size).reshape(rows.shape)
        start += rows.size

    put(own, own)
    put(other, other)
    put(own, other)
    for a in (0, degree):
        for b in (0, degree):
            put(first[pairs] + a, second[pairs] + b)
    put(logit, logit)
    put(logit[first], logit[second])
    rows, columns = np.broadcast_arrays(logit[:, None, None], np.stack([own, other])[None])
    put(rows, columns)
    return where


def slot_products(q: Array, xp: Any = np) -> Array:
    """(2**d, ...) products Π_k q_k(x_k) from q (d, ...), the q_k(x_k = 1)."""
    weights = xp.ones_like(q[:1])
    for one in q:
        weights = xp.stack([weights * (1.0 - one), weights * one], axis=1).reshape(-1, *one.shape)
    return weights


@np.errstate(over="ignore", divide="ignore", invalid="ignore")  # where tables all but vanish; no step ends there
def _angles(tables: Array, weights: Array, tangent: Array, secant: Array, xp: Any) -> tuple[Array, Array, Array]:
    """As in `Local`, and (2, d, R, ...) f(x with x_k flipped) / f(x) as in `_Places.halves`."""
    places = _places(tangent.shape[0])
    safe = xp.where(weights != 0, tables, 1.0)
    halves = weights[places.halves]
    ratio = tables[places.halves[::-1]] / safe[places.halves]
    pulls = halves * ratio
    total, pull, pull2 = halves.sum(axis=2), pulls.sum(axis=2), (pulls * ratio).sum(axis=2)  # (2, d, ...)
    signed, squared = (total[1] - total[0]) / 2, secant * secant
    gradient = [tangent * signed + secant * pull[0], tangent * signed - secant * pull[1]]
    within = [
        squared * (signed - pull2[0]) + 2.0 * secant * tangent * pull[0],
        2.0 * secant * tangent * pull[1] - squared * (signed + pull2[1]),
        -squared * (total[0] + total[1]) / 2,
    ]
    f = tables[places.quarters]
    minors = f[0, 0] * f[1, 1] - f[0, 1] * f[1, 0]  # (P, R, ...)
    bends = ((weights / (safe * safe))[places.quarters] * minors).sum(axis=3)  # (2, 2, P, ...)
    between = secant[places.first] * secant[places.second] * bends
    return xp.concatenate(gradient), xp.concatenate([*within, between.reshape(-1, *tangent.shape[1:])]), ratio


@lru_cache(maxsize=32)
def _places(degree: int) -> _Places:
    entries = np.arange(2**degree)
    ones = entries >> np.arange(degree - 1, -1, -1)[:, None] & 1  # (d, 2**d)
    halves = np.array([[entries[row == a] for row in ones] for a in (0, 1)])
    first, second = np.triu_indices(degree, 1)
    pairs = list(zip(first, second, strict=True))
    quarters = np.array(
        [[[entries[(ones[k] == a) & (ones[m] == b)] for k, m in pairs] for b in (0, 1)] for a in (0, 1)]
    ).reshape(2, 2, len(pairs), max(2**degree // 4, 1))
    return _Places(halves, quarters.astype(np.int64), first, second, ones[:, halves].astype(np.float64))
