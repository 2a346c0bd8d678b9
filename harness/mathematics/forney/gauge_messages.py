"""Sum-product on Forney models, and the gauge that a fixed point of it defines.

Ahn, Chertkov and Shin (NIPS 2017): fixed points of sum-product are the stationary points over gauges of the term of
x = 0, and that term is the Bethe approximation of Z.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.models.forney.model import DegreeGroup, ForneyModel

FloatArray = npt.NDArray[np.float64]


class Messages(NamedTuple):
    """State of sum-product.

    Attributes:
        messages: (E, 2, 2): [e, s] is the message into the node on side s of edge e, over the states, of sum 1.
        converged: whether an update changes no entry by more than the tolerance.
        iterations: updates made.
    """

    messages: FloatArray
    converged: bool
    iterations: int


def sum_product(
    model: ForneyModel,
    *,
    iterations: int = 5000,
    damping: float = 0.3,
    tolerance: float = 1e-13,
    start: npt.ArrayLike | None = None,
) -> Messages:
    """Damped flooding from uniform messages, or from `start`.

    Args:
        model: the model.
        iterations: at most.
        damping: weight of the old messages, 0 <= damping < 1.
        tolerance: largest change of a message that counts as none.
        start: (E, 2, 2) messages.
    """
    flat = np.full((2 * model.num_edges, 2), 0.5)
    if start is not None:
        flat = np.array(start, dtype=np.float64).reshape(-1, 2)
    for iteration in range(1, iterations + 1):
        fresh = np.empty_like(flat)
        for group in model.groups:
            fresh[group.other] = _outgoing(group, flat[group.own])
        change = float(np.abs(fresh - flat).max(initial=0.0))
        if change <= tolerance:
            return Messages(fresh.reshape(-1, 2, 2), True, iteration)
        flat = (1 - damping) * fresh + damping * flat
    return Messages(flat.reshape(-1, 2, 2), False, iterations)


def bethe(model: ForneyModel, messages: npt.ArrayLike) -> float:
    """log Z of the Bethe approximation, from messages (E, 2, 2)."""
    into = np.asarray(messages, dtype=np.float64)
    flat = into.reshape(-1, 2)
    value = model.log_constant - float(np.log((into[:, 0] * into[:, 1]).sum(axis=-1)).sum())
    for group in model.groups:
        value += float(np.log(joint_weights(group, flat[group.own]).sum(axis=1)).sum())
    return value


def node_beliefs(model: ForneyModel, messages: npt.ArrayLike) -> list[FloatArray]:
    """Beliefs b_a(x) ~ f_a(x) Π m(x), one (n, 2**d) array a degree group."""
    flat = np.asarray(messages, dtype=np.float64).reshape(-1, 2)
    weights = [joint_weights(group, flat[group.own]) for group in model.groups]
    return [w / w.sum(axis=1, keepdims=True) for w in weights]


def message_angles(messages: npt.ArrayLike) -> FloatArray:
    """(E, 2) angles of the gauge of messages (E, 2, 2).

    The first row of each matrix is the message into its node; at a fixed point, entries of the gauged tables with
    exactly one 1 vanish, and the term of x = 0 is the Bethe approximation.
    """
    into = np.asarray(messages, dtype=np.float64)
    return np.asarray(np.arctan2(into[:, :, 1], into[:, :, 0]))


def joint_weights(group: DegreeGroup, into: FloatArray) -> FloatArray:
    """f_a(x) Π_k m_k(x_k), (n, 2**d), of messages (n, d, 2) into the nodes."""
    weights = group.tables
    for k in range(group.degree):
        split = weights.reshape(len(weights), 2**k, 2, -1)
        weights = (split * into[:, k, None, :, None]).reshape(len(weights), -1)
    return weights


def _outgoing(group: DegreeGroup, into: FloatArray) -> FloatArray:
    """(n, d, 2) messages out of the nodes."""
    n, d = into.shape[:2]
    out = np.empty((n, d, 2))
    for k in range(d):
        table = group.tables
        for j in range(d - 1, k, -1):
            table = np.einsum("nax,nx->na", table.reshape(n, -1, 2), into[:, j])
        for j in range(k):
            table = np.einsum("nxa,nx->na", table.reshape(n, 2, -1), into[:, j])
        out[:, k] = table
    total = out.sum(axis=2, keepdims=True)
    return out / np.where(total > 0, total, 1.0)
