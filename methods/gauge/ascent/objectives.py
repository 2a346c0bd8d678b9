"""The smooth objectives that G-BP and G-MF maximise, with exact gradients and Hessians.

Ahn, Chertkov and Shin, "Gauging Variational Inference", NIPS 2017: equation (6) is G-MF, (8) is G-BP. Both are

    Σ_a Σ_x w_a(x) log f_{a,G}(x) + conditioning · Σ_e log cos(φ_e - ψ_e) [+ Σ_e H(q_e)].

In G-BP, w_a is `barrier` · 2^-d, and `zero_weight` more at x = 0: its maximum tends to that of (8) as the barrier falls
to 0, and with `zero_weight` 0 it is the analytic centre. In G-MF, w_a is q_a(x) + `barrier` · 2^-d. Positivity of the
gauged tables is kept by the objectives themselves: the weight of every log f_{a,G}(x) is positive.

Coordinates z are the angles theta (2E,), indexed 2·edge + side as in `forney.gauges`, and in G-MF the logits (E,) of q;
tables are (2**d, n), one array a degree group, and `slots` the own half edges (d, n) of each group. The functions
neither branch on values nor write in place, so that they can be compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from spinbench.api import Array, Namespace
from spinbench.methods.gauge.ascent.derivatives import (
    IntArray,
    angle_derivatives,
    hessian_places,
    joint_derivatives,
    slot_products,
)

# Smallest cos(φ - ψ) of an edge: the condition number of its gauge is at most twice the inverse.
LEAST_COSINE = 1e-4
# A table entry may fall at most to this share of itself in one step (fraction to the boundary): entries that shrink to
# 1e-17 at once change their sign by rounding.
KEPT = 0.01


class Weights(NamedTuple):
    """Of the terms of an objective, see above; `zero_weight` counts in G-BP alone."""

    conditioning: float
    barrier: float
    zero_weight: float = 1.0


class Formulas(NamedTuple):
    """The two functions that an ascent calls, for one array library.

    Attributes:
        evaluate: see there; without `xp`.
        differentiate: see there; without `xp`.
    """

    evaluate: Callable[..., tuple[Array, Sequence[Array]]]
    differentiate: Callable[..., tuple[Array, Array]]


class Places(NamedTuple):
    """Which coordinates the results of `differentiate` belong to.

    Attributes:
        slopes: (S,) of each summand of the gradient.
        rows, columns: (B,) of each summand of the Hessian, which stands for both halves.
    """

    slopes: IntArray
    rows: IntArray
    columns: IntArray


def formulas_of(xp: Namespace, compile_function: Callable[[Any], Any] = lambda function: function) -> Formulas:
    """Those of an array namespace, as a backend compiles them."""
    return Formulas(compile_function(partial(evaluate, xp=xp)), compile_function(partial(differentiate, xp=xp)))


def evaluate(
    slots: Sequence[Array],
    z: Array,
    ungauged: Sequence[Array],
    start: Sequence[Array],
    weights: Weights,
    xp: Namespace = np,
) -> tuple[Array, list[Array]]:
    """The objective and the gauged tables at z; -inf where an entry does not exceed its floor.

    Args:
        slots: the graph.
        z: coordinates.
        ungauged: tables without a gauge.
        start: tables where a step began, of whose entries `KEPT` remains; zeros: all entries are to be positive.
        weights: of the terms.
        xp: array namespace.
    """
    edges = _num_edges(slots)
    theta, logits = z[: 2 * edges], z[2 * edges :]
    # `cosine` lists every edge twice, hence the half below.
    cosine = xp.cos(theta - _opposite(theta))
    cosine = xp.where((cosine > LEAST_COSINE).all(), cosine, np.nan)
    tables = _gauge(slots, theta, cosine, ungauged, xp)
    inside = cosine[0] > 0
    for table, old in zip(tables, start, strict=True):
        inside = inside & (table > KEPT * old).all()
    value = weights.conditioning * xp.log(cosine).sum() / 2
    q = _sigmoid(logits, xp)
    if len(logits):
        value = value + (xp.logaddexp(0.0, logits) - logits * q).sum()
    for slot, table in zip(slots, tables, strict=True):
        # Logarithms of entries that are not positive would be NaN; the value is set to -∞ at the end.
        logs = xp.log(xp.where(inside, table, 1.0))
        value = value + weights.barrier / len(table) * logs.sum()
        if len(logits):
            value = value + (slot_products(q[slot // 2], xp) * logs).sum()
        else:
            value = value + weights.zero_weight * logs[0].sum()
    return xp.where(inside, value, -np.inf), tables


def differentiate(
    slots: Sequence[Array], z: Array, tables: Sequence[Array], weights: Weights, xp: Namespace = np
) -> tuple[Array, Array]:
    """Summands of the gradient and of the Hessian, in the order of `derivative_places`.

    Args:
        slots: the graph.
        z: coordinates.
        tables: gauged ones at z.
        weights: of the terms.
        xp: array namespace.
    """
    edges = _num_edges(slots)
    theta, logits = z[: 2 * edges], z[2 * edges :]
    difference = theta - _opposite(theta)
    tangent, secant = xp.tan(difference), 1.0 / xp.cos(difference)
    q = _sigmoid(logits, xp)
    slopes, bends = [], []
    for slot, table in zip(slots, tables, strict=True):
        turns = tangent[slot], secant[slot]
        if len(logits):
            local = joint_derivatives(table, q[slot // 2], weights.barrier / len(table), *turns, xp)
        else:
            shares = barrier_weights(len(slot), weights.barrier, weights.zero_weight, xp)
            local = angle_derivatives(table, shares[:, None], *turns, xp)
        slopes.append(local.gradient.reshape(-1))
        bends.append(local.hessian.reshape(-1))
    slopes.append(-weights.conditioning * tangent)
    bends += [-weights.conditioning * secant * secant, weights.conditioning * (secant * secant)[::2]]
    if len(logits):
        spread = q * (1.0 - q)
        slopes.append(-logits * spread)
        bends.append(-spread * (1.0 + logits * (1.0 - 2.0 * q)))
    return xp.concat(slopes), xp.concat(bends)


def derivative_places(slots: Sequence[IntArray], joint: bool) -> Places:
    """The places of what `differentiate` returns, for G-MF (`joint`) or G-BP."""
    edges = _num_edges(slots)
    angles, logits = np.arange(2 * edges), np.arange(2 * edges, 3 * edges)
    slopes, rows, columns = [], [], []
    for slot in slots:
        coordinates = np.concatenate([slot, slot ^ 1, *([2 * edges + slot // 2] if joint else [])])
        row, column = hessian_places(len(slot), joint)
        slopes.append(coordinates.ravel())
        rows.append(coordinates[row].ravel())
        columns.append(coordinates[column].ravel())
    slopes.append(angles)
    rows += [angles, angles[::2]]
    columns += [angles, angles[1::2]]
    if joint:
        for places in (slopes, rows, columns):
            places.append(logits)
    return Places(np.concatenate(slopes), np.concatenate(rows), np.concatenate(columns))


def barrier_weights(degree: int, barrier: Array, zero_weight: Array = 1.0, xp: Namespace = np) -> Array:
    """(2**d,) w_a of G-BP: with equal totals at both ends of an edge the objective is bounded."""
    return xp.where(np.arange(2**degree) == 0, zero_weight, 0.0) + barrier / 2**degree


def _num_edges(slots: Sequence[Array]) -> int:
    """Every half edge stands in one slot."""
    return int(sum(slot.shape[0] * slot.shape[1] for slot in slots)) // 2


def _opposite(angles: Array) -> Array:
    """(2E,) of the other ends of the edges."""
    return angles.reshape(-1, 2)[:, ::-1].reshape(-1)


def _gauge(
    slots: Sequence[Array], theta: Array, cosine: Array, ungauged: Sequence[Array], xp: Namespace
) -> list[Array]:
    """Tables with the axis of every slot multiplied by the matrix of its half edge."""
    # Both matrices of an edge are scaled by the same factor, so that their product is the identity.
    scale = 1.0 / xp.sqrt(cosine)
    cosines, sines = xp.cos(theta) * scale, xp.sin(theta) * scale
    # axes: old label, new label; the rows are (cos own, sin own) and (-sin other, cos other)
    entries = xp.concat([cosines, -_opposite(sines), sines, _opposite(cosines)]).reshape(2, 2, -1)
    gauged = []
    for slot, table in zip(slots, ungauged, strict=True):
        matrices, n = entries[:, :, slot], slot.shape[1]
        for k in range(len(slot)):
            split = table.reshape(2**k, 2, -1, n)
            # Axes of `low` and `high`: (2, 1, n).
            low, high = matrices[0, :, None, k], matrices[1, :, None, k]
            table = (low * split[:, :1] + high * split[:, 1:]).reshape(-1, n)
        gauged.append(table)
    return gauged


def _sigmoid(logits: Array, xp: Namespace) -> Array:
    return 1.0 / (1.0 + xp.exp(-logits))
