"""Both passes over mini-buckets, on arrays.

Liu and Ihler, "Bounding the partition function using Hölder's inequality", ICML 2011. With θ_c the shifts of weight,
which add up to 0 in each bucket, and weights w_c > 0 that add up to 1:

    ψ_c = factors + messages + θ_c,   m_c(rest) = w_c log Σ_x exp(ψ_c(x, rest) / w_c),   log Z <= U = Σ_roots m_c

by Hölder's inequality, bucket by bucket. The conditionals p_c(x | rest) = exp((ψ_c - m_c) / w_c) give both the
gradient, ∂U/∂θ_c = g_c = p_c Σ g_parent and ∂U/∂w_c = H_c = -Σ g_c log p_c, and the draws.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spinbench.foundation import deadline
from spinbench.methods.buckets.layout import Array, Buckets, FloatArray


class Work(NamedTuple):
    """What the passes write.

    Attributes:
        logs: (E,) log p_c, -inf where p_c is 0.
        probabilities: (E,) p_c after the forward pass, 0 where a message is -inf; g_c after the backward pass.
        messages, upward: (M,) m_c, and Σ g of the parent.
        shifts: (T,) marginals of g_c on the variables over which weight is shifted.
        entropies: (C,) H_c.
    """

    logs: Array
    probabilities: Array
    messages: Array
    upward: Array
    shifts: Array
    entropies: Array


class Passes:
    """Both passes, in NumPy; other code overrides them.

    Attributes:
        at: the mini-buckets.
        work: what is written.
    """

    def __init__(self, at: Buckets) -> None:
        sizes = at.entries[-1], at.entries[-1], at.messages[-1], at.messages[-1], at.shifts[-1], len(at.variable)
        self.at, self.work = at, Work(*(np.zeros(int(size)) for size in sizes))

    def forward(self, theta: FloatArray, weights: FloatArray) -> float:
        """The bound U, without what rounding may add."""
        at, work, total = self.at, self.work, self.at.constant
        for c, v in enumerate(at.variable):
            deadline.check()
            entries = slice(at.entries[c], at.entries[c + 1])
            size, card, psi = entries.stop - entries.start, at.cards[v], at.base[entries].copy()
            for child in at.children[at.child_starts[c] : at.child_starts[c + 1]]:
                message_map = at.maps[at.parent_map[child] : at.parent_map[child] + size]
                psi += work.messages[at.messages[child] + message_map]
            if at.shift_maps[c] >= 0:
                psi += theta[at.shifts[c] + at.maps[at.shift_maps[c] : at.shift_maps[c] + size]]
            rows = psi.reshape(-1, card) / weights[c]
            top = rows.max(axis=1, keepdims=True)
            alive = top > -np.inf
            rows -= np.where(alive, top, 0.0)
            values = np.exp(rows)
            sums = np.where(alive, values.sum(axis=1, keepdims=True), 1.0)
            logs = np.log(sums)
            work.logs[entries] = (rows - logs).ravel()
            work.probabilities[entries] = (values / sums).ravel()
            work.messages[at.messages[c] : at.messages[c + 1]] = (weights[c] * (top + logs))[:, 0]
            if at.parent[c] < 0:
                total += work.messages[at.messages[c]]
        return float(total)

    def backward(self) -> tuple[FloatArray, FloatArray]:
        """The gradient, after a forward pass: marginals on the shared variables (T,) and H (C,); p_c becomes g_c."""
        at, work = self.at, self.work
        for c in range(len(at.variable) - 1, -1, -1):
            entries, sent = slice(at.entries[c], at.entries[c + 1]), slice(at.messages[c], at.messages[c + 1])
            parent, size = at.parent[c], at.entries[c + 1] - at.entries[c]
            if parent < 0:
                work.upward[sent] = 1.0
            else:
                above = work.probabilities[at.entries[parent] : at.entries[parent + 1]]
                message_map = at.maps[at.parent_map[c] : at.parent_map[c] + len(above)]
                work.upward[sent] = np.bincount(message_map, above, minlength=sent.stop - sent.start)
            g = (work.probabilities[entries].reshape(-1, at.cards[at.variable[c]]) * work.upward[sent][:, None]).ravel()
            work.probabilities[entries] = g
            positive = g > 0
            work.entropies[c] = -(g[positive] @ work.logs[entries][positive])
            if at.shift_maps[c] >= 0:
                message_map = at.maps[at.shift_maps[c] : at.shift_maps[c] + size]
                width = at.shifts[c + 1] - at.shifts[c]
                work.shifts[at.shifts[c] : at.shifts[c + 1]] = np.bincount(message_map, g, minlength=width)
        return work.shifts, work.entropies


def beliefs(at: Buckets, gradient: Array) -> FloatArray:
    """(Σ (K_v - 1),) of states 1, 2, …: means of g_c over mini-buckets; marginals if none is split."""
    means = []
    for v, card in enumerate(at.cards):
        cliques = range(at.buckets[v], at.buckets[v + 1])
        parts = [gradient[at.entries[c] : at.entries[c + 1]].reshape(-1, card).sum(axis=0) for c in cliques]
        mean = np.mean(parts, axis=0)
        means.append(mean[1:] / mean.sum())
    return np.concatenate([np.zeros(0), *means])
