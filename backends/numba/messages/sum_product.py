"""Sum-product on many binary pairwise models at once, each iterated until it stands still."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy.typing as npt

from spinbench.backends.numba.kernel_cache import njit

Array = npt.NDArray[Any]


class Slots(NamedTuple):
    """Edges from both ends, node after node.

    Attributes:
        starts: (N + 1,) slots of each node. neighbours: (2E,) the node at the other end.
        reverse: (2E,) that node's slot of the same edge. weights: (2E,) W.
    """

    starts: Array
    neighbours: Array
    reverse: Array
    weights: Array


@njit(cache=True, error_model="numpy")
def softplus(x):
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@njit(cache=True, error_model="numpy")
def message(c, w):
    """softplus(c + w) - softplus(c), without cancellation: log(1 + σ(c) (e^w - 1)), or its mirror image for w < 0."""
    if w < 0.0:
        return -math.log1p(math.expm1(-w) / (1.0 + math.exp(-(c + w))))
    return math.log1p(math.expm1(w) / (1.0 + math.exp(-c)))


@njit(error_model="numpy")
def _send(starts, reverse, weights, incoming, i, field, damping):
    """All messages of node i; the largest change."""
    change = 0.0
    for e in range(starts[i], starts[i + 1]):
        field += incoming[e]
    for e in range(starts[i], starts[i + 1]):
        old = incoming[reverse[e]]
        new = (1.0 - damping) * message(field - incoming[e], weights[e]) + damping * old
        change = max(change, abs(new - old))
        incoming[reverse[e]] = new
    return change


@njit(cache=True, error_model="numpy")
def run(bounds, slots, biases, incoming, sweeps, damping, tolerance):
    """Send messages in the order of the nodes and back, model by model, until none changes by more than `tolerance`.

    Each node sends to all its neighbours what follows from its newest messages, so that a chain takes two sweeps.

    Args:
        bounds: (M + 1,) the nodes of each model; no edge joins two models.
        slots: a `Slots`. biases: (N,) a.
        incoming: (2E,) changed in place: log odds of the message into the slot's owner.
        sweeps: there and back counts as one; at most.
        damping: share of the old message that is kept.

    Returns:
        How many models did not converge.
    """
    starts, _, reverse, weights = slots
    left = 0
    for m in range(bounds.size - 1):
        low, high = bounds[m], bounds[m + 1]
        change = math.inf
        for _ in range(sweeps):
            change = 0.0
            for step in range(2 * (high - low)):
                i = low + step if step < high - low else 2 * high - low - 1 - step
                change = max(change, _send(starts, reverse, weights, incoming, i, biases[i], damping))
            if change <= tolerance:
                break
        if not change <= tolerance:
            left += 1
    return left


@njit(cache=True, error_model="numpy")
def beliefs(slots, biases, incoming, nodes, pairs):
    """Beliefs from messages; slots, biases and incoming as in `run`.

    Args:
        nodes: (N,) filled in, p(s_i = 1). pairs: (2E,) filled in, p(s_i = s_j = 1) of each slot.

    Returns:
        log Z of Bethe, summed over models: Σ_i log z_i + Σ_ij (log z_ij - log z_i - log z_j), with z_i = 1 + exp(θ_i)
        and z_ij from the cavity fields of both ends.
    """
    starts, neighbours, reverse, weights = slots
    fields = biases.copy()
    for i in range(biases.size):
        for e in range(starts[i], starts[i + 1]):
            fields[i] += incoming[e]
    total = 0.0
    for i in range(biases.size):
        total += softplus(fields[i])
        nodes[i] = 1.0 / (1.0 + math.exp(-fields[i]))
        for e in range(starts[i], starts[i + 1]):
            j = neighbours[e]
            if j < i:
                continue
            a, b = fields[i] - incoming[e], fields[j] - incoming[reverse[e]]
            both = a + b + weights[e]
            top = max(0.0, a, b, both)
            log_z = top + math.log(math.exp(-top) + math.exp(a - top) + math.exp(b - top) + math.exp(both - top))
            total += log_z - softplus(fields[i]) - softplus(fields[j])
            pairs[e] = pairs[reverse[e]] = math.exp(both - log_z)
    return total
