"""Sum-product over a backend's arrays, in the log domain: flooding updates, beliefs and Bethe's log Z.

Messages are log ratios, see `graphs.message_layouts`; the chain axis is last everywhere. A factor's message to its
variable i is, with cavities c_j = θ_j + Σ_{g ≠ f} m_{g→j},

    m_{f→i}(x_i) = log Σ_{x_f without x_i} f(x_f) exp Σ_{j ≠ i} c_j(x_j) - the same at x_i = 0,

for a pair exp(w x_i x_j): softplus(c_j + w) - softplus(c_j). No state is said to be less likely, relative to the
likeliest, than `Graph.floor`: what zeros exclude on loops would otherwise grow geometrically. Reweighted messages
(Wainwright, Jaakkola and Willsky, "A new class of upper bounds on the log partition function", 2005) count ρ_f times in
the sums and once in the cavity.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from spinbench.api import Array, Namespace
from spinbench.foundation.arithmetic import take
from spinbench.mathematics.graphs.message_layouts import FloatArray, Graph, Group, Incidence, IntArray


class MessagePassing:
    """Functions over the arrays of a namespace `xp`; on the host, NumPy."""

    def __init__(self, xp: Namespace) -> None:
        self._xp = xp

    def totals(self, graph: Graph, incidence: Incidence, messages: Array) -> Array:
        """(R, C) θ + Σ messages, by rows; messages (M, C), already weighted."""
        xp = self._xp
        padded = xp.concat([messages, xp.zeros_like(messages[:1, :])], axis=0)
        sums = [xp.sum(take(xp, padded, bucket), axis=1) for bucket in incidence.buckets]
        if not sums:
            return xp.broadcast_to(graph.theta[:, None], (graph.theta.shape[0], messages.shape[1]))
        rows = xp.concat([*sums, xp.zeros_like(sums[0][:1, :])], axis=0)
        return graph.theta[:, None] + xp.take(rows, incidence.place, axis=0)

    def updated(self, graph: Graph, totals: Array, messages: Array) -> Array:
        """(M, C) all messages anew from the old ones."""
        xp = self._xp
        edges = graph.pairs.weights.shape[0]
        parts = []
        if edges:
            cavity = self.pair_cavities(graph, totals, messages)
            weights = graph.pairs.weights[:, None]
            for other in (cavity[1], cavity[0]):
                zero = xp.zeros_like(other)
                # softplus(c + w) - softplus(c), the message of a pair, whose table has one entry beside 1.
                parts.append(xp.logaddexp(zero, other + weights) - xp.logaddexp(zero, other))
        start = 2 * edges
        for group in graph.groups:
            cavities, start = self.cavities(group, totals, messages, start)
            for slot in range(len(cavities)):
                log = self._sum_out_others(group, cavities, slot)
                parts.append(xp.reshape(self._log_ratios(log, graph.floor), (-1, log.shape[-1])))
        if not parts:
            return messages
        return xp.concat(parts, axis=0)

    def pair_cavities(self, graph: Graph, totals: Array, messages: Array) -> tuple[Array, Array]:
        """(E, C) of the first and of the second ends."""
        edges = graph.pairs.weights.shape[0]
        first, second = (self._xp.take(totals, graph.pairs.rows[end, :], axis=0) for end in (0, 1))
        return first - messages[:edges, :], second - messages[edges : 2 * edges, :]

    def cavities(self, group: Group, totals: Array, messages: Array, start: int) -> tuple[list[Array], int]:
        """(n, K_s, C) of each slot, 0 at state 0, and where the next group's messages begin; these begin at `start`."""
        xp = self._xp
        count, *sizes = group.log_tables.shape
        cavities = []
        for slot, size in enumerate(sizes):
            end = start + count * (size - 1)
            group_messages = xp.reshape(messages[start:end, :], (count, size - 1, messages.shape[1]))
            rows = group.rows[slot, :][:, None] + xp.arange(size - 1)[None, :]
            cavity = take(xp, totals, rows) - group_messages
            cavities.append(xp.concat([xp.zeros_like(cavity[:, :1, :]), cavity], axis=1))
            start = end
        return cavities, start

    def joint(self, group: Group, cavities: list[Array], without: int = -1) -> Array:
        """(n, K_1, …, K_d, C) log f plus the cavities of all slots but one."""
        count, *sizes = group.log_tables.shape
        log = group.log_tables[..., None]
        for slot, cavity in enumerate(cavities):
            if slot != without:
                shape = (count, *(k if s == slot else 1 for s, k in enumerate(sizes)), cavity.shape[-1])
                log = log + self._xp.reshape(cavity, shape)
        return log

    def _log_ratios(self, log: Array, floor: Array) -> Array:
        """(n, K - 1, C) log ratios of states to the first, none of which is left below `floor`, from (n, K, C)."""
        xp = self._xp
        if log.shape[1] == 2:
            return xp.clip(log[:, 1:, :] - log[:, :1, :], floor, -floor)
        log = xp.maximum(log - xp.max(log, axis=1, keepdims=True), floor)
        return log[:, 1:, :] - log[:, :1, :]

    def _sum_out_others(self, group: Group, cavities: list[Array], slot: int) -> Array:
        """(n, K_s, C) log Σ over all other slots."""
        axes = tuple(s + 1 for s in range(len(cavities)) if s != slot)
        return log_sum_exp(self._xp, self.joint(group, cavities, slot), axes)


def log_sum_exp(xp: Namespace, values: Array, axes: tuple[int, ...]) -> Array:
    """log Σ exp over axes, each slice of which has a finite entry."""
    peak = xp.max(values, axis=axes, keepdims=True)
    total = xp.log(xp.sum(xp.exp(values - peak), axis=axes, keepdims=True)) + peak
    rest = tuple(k for axis, k in enumerate(total.shape) if axis not in axes)
    return xp.reshape(total, rest)


def state_log_weights(graph: Graph, totals: FloatArray) -> tuple[FloatArray, IntArray]:
    """(S, C) log weights of all states from those (R, C) of rows, and the first state (n,) of each variable."""
    first = graph.first + np.arange(len(graph.first))
    states = np.zeros((len(totals) + len(first), totals.shape[1]))
    states[np.arange(len(totals)) + graph.variable + 1] = totals
    return states, first


def normalise(states: FloatArray, first: IntArray) -> tuple[FloatArray, FloatArray]:
    """Probabilities (S, C) of all states and log normalisers (n, C) of variables, from log weights (S, C)."""
    if not len(first):
        return states, np.zeros((0, states.shape[1]))
    counts = np.diff(np.append(first, len(states)))
    peak = np.maximum.reduceat(states, first, axis=0)
    weights = np.exp(states - np.repeat(peak, counts, axis=0))
    totals = np.add.reduceat(weights, first, axis=0)
    return weights / np.repeat(totals, counts, axis=0), np.log(totals) + peak


def bethe(graph: Graph, incidence: Incidence, messages: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Beliefs (S, C) of all states and Bethe's log Z (C,) of messages (M, C), in float64 on the host.

    log Z = const + Σ_v log Z_v + Σ_f (log Z_f - Σ_{v in f} log Z_v) with Z_v and Z_f the normalisers of the beliefs
    (Yedidia, Freeman and Weiss, "Constructing free-energy approximations and generalized belief propagation
    algorithms", 2005, at a fixed point; stationary in the messages).

    NaN where messages are not finite, or contradict each other: where they leave a variable or a factor no state that
    one of them does not exclude, the normaliser is 0.
    """
    passing = MessagePassing(np)
    graph = graph._replace(theta=np.asarray(graph.theta, dtype=np.float64))
    with np.errstate(invalid="ignore", over="ignore"):
        totals = passing.totals(graph, incidence, messages)
        probabilities, log_v = normalise(*state_log_weights(graph, totals))
        terms = list(_factor_terms(passing, graph, totals, messages))
        log_z = float(graph.constant) + log_v.sum(axis=0)
        variable, loud_sums = graph.variable, np.zeros_like(log_v)
        least = np.zeros(messages.shape[1])
        for rows, log_f, cavities, loudest in terms:
            scope = variable[rows]
            log_z = log_z + (log_f - log_v[scope].sum(axis=0)).sum(axis=0)
            least = np.minimum(least, (log_f - cavities).min(axis=0))
            for v, loud in zip(scope, loudest, strict=True):
                np.add.at(loud_sums, v, loud)
        least = np.minimum(least, (log_v - loud_sums).min(axis=0, initial=0.0))
        # Messages that exclude different states give a normaliser of about the floor instead of 0; half the floor
        # separates that from small positive probabilities.
        return probabilities, np.where(least > graph.floor / 2, log_z, np.nan)


def pair_log_z(graph: Graph, first: FloatArray, second: FloatArray) -> FloatArray:
    """(E, C) log normalisers of the pairs' beliefs, from their cavities."""
    both = second + np.logaddexp(0.0, first + graph.pairs.weights[:, None])
    return np.asarray(np.logaddexp(np.logaddexp(0.0, first), both))


def _factor_terms(
    passing: MessagePassing, graph: Graph, totals: FloatArray, messages: FloatArray
) -> Iterator[tuple[IntArray, FloatArray, FloatArray, FloatArray]]:
    """Of the pairs and of each group: rows (d, n), log Z_f (n, C), the largest of each factor's sums of cavities, and
    of each message (d, n, C), by the slots that receive them."""
    edges = len(graph.pairs.weights)
    if edges:
        a, b = passing.pair_cavities(graph, totals, messages)
        log_f = pair_log_z(graph, a, b)
        group_messages = messages[: 2 * edges].reshape(2, edges, -1)
        yield graph.pairs.rows, log_f, np.maximum(a, 0.0) + np.maximum(b, 0.0), np.maximum(group_messages, 0.0)
    start = 2 * edges
    for group in graph.groups:
        begin = start
        cavities, start = passing.cavities(group, totals, messages, start)
        joint = passing.joint(group, cavities)
        log_f = log_sum_exp(np, joint, tuple(range(1, joint.ndim - 1)))
        parts = np.split(messages[begin:start], np.cumsum([c[:, 1:, 0].size for c in cavities])[:-1])
        received = [part.reshape(len(c), -1, c.shape[-1]) for part, c in zip(parts, cavities, strict=True)]
        loudest = np.stack([part.max(axis=1, initial=0.0) for part in received])
        yield group.rows, log_f, np.sum([c.max(axis=1) for c in cavities], axis=0), loudest
