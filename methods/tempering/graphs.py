"""Replicas of any factor graph: Gibbs sweeps by look-ups over a backend's arrays, each chain at a β of its own.

Hard zeros are soft where β < 1: they weigh `DEPTH` nats less than their factor's least entry, so that replicas may pass
through them. At β = 1 they weigh e^-10000 less still, which is nothing in floating-point numbers: a state that is
possible stays so, and one that is not becomes possible as soon as it can.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.api import Array, Backend, Key
from spinbench.mathematics.graphs.colouring import colouring
from spinbench.mathematics.graphs.factor_tables import FactorTables

IntArray = npt.NDArray[np.int64]

DEPTH = 25.0
"""Nats from a factor's least entry down to its zeros, where β < 1."""
ABYSS = 1e4
"""The same at β = 1, on top of it."""


class GraphTables(NamedTuple):
    """N variables, F factors, T entries; B chunks of w variables that share no factor.

    D is the largest number of a variable's factors, K of its states; what is missing is filled up: variables by the
    chunk's first, factors by number F, whose only entry is number T, and is 0.

    Attributes:
        entries: (2, T + 1) log tables for β < 1 and for β = 1.
        zeros: (T + 1,) 1 where the entry is a hard zero, else 0; None where there are none.
        places: (F + 1,) int32, of each factor's first entry; the last is T.
        holders: (F + 1, O) int32 variables of each factor; strides (F + 1, O) int32, 0 where there are fewer than O.
        variables: (B, w) int32; factors, steps: (B, w, D) int32, of each variable's factors, and its strides there.
        rows: (B, K, w) int32, of p, where a state's probability belongs; row ΣK_v is for states that there are not.
        absent: (B, K, w) 0, or -inf for such states.
        states: (B, K, w) int32, 0 … K_v - 1, and the last again for them.
        blank: (ΣK_v + 1,) 0.
    """

    entries: Array
    zeros: Array | None
    places: Array
    holders: Array
    strides: Array
    variables: Array
    factors: Array
    steps: Array
    rows: Array
    absent: Array
    states: Array
    blank: Array


def graph_tables(graph: FactorTables) -> GraphTables:
    """By colours of the graph in which variables of one factor are neighbours."""
    values, forbidden = graph.values, np.isneginf(graph.values)
    soft = values.copy()
    for low, high in zip(graph.offsets[:-1].tolist(), graph.offsets[1:].tolist(), strict=True):
        part, lost = values[low:high], forbidden[low:high]
        if lost.any():
            soft[low:high][lost] = part[~lost].min() - DEPTH
    exact = soft - ABYSS * forbidden
    chunks = _chunks(graph)
    factors, steps = _padded(graph.starts, [graph.factors, graph.strides], [len(graph.offsets) - 1, 0])
    holders, strides = _padded(graph.scope_starts, [graph.scope_variables, graph.scope_strides], [0, 0])
    none = np.zeros((1, holders.shape[1]), dtype=np.int32)
    states = np.arange(graph.cardinalities.max())[:, None]
    first = np.cumsum([0, *graph.cardinalities])
    missing = states >= graph.cardinalities[chunks][:, None, :]
    return GraphTables(
        entries=np.stack([np.append(soft, 0.0), np.append(exact, 0.0)]),
        zeros=np.append(forbidden, False).astype(np.float64) if forbidden.any() else None,
        places=graph.offsets.astype(np.int32),
        holders=np.concatenate([holders, none]),
        strides=np.concatenate([strides, none]),
        variables=chunks.astype(np.int32),
        factors=factors[chunks],
        steps=steps[chunks],
        rows=np.where(missing, first[-1], first[chunks][:, None, :] + states).astype(np.int32),
        absent=np.where(missing, -np.inf, 0.0),
        states=np.minimum(states, graph.cardinalities[chunks][:, None, :] - 1).astype(np.int32),
        blank=np.zeros(first[-1] + 1),
    )


class GraphReplicas:
    """States (N + F + 1, C) int32: those of the variables, then the place of each factor's entry."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._xp = backend.xp

    def begin(self, t: GraphTables, start: Array) -> Array:
        """From states of the variables (N, C)."""
        xp, take = self._xp, self._backend.take
        x = xp.astype(start, xp.int32)
        places = t.places[:, None] + xp.zeros_like(x[:1, :])
        for k in range(t.holders.shape[1]):
            places = places + t.strides[:, k][:, None] * take(x, t.holders[:, k])
        return xp.concat([x, places], axis=0)

    def unseen(self, t: GraphTables, x: Array) -> Array:
        """(ΣK_v + 1, C) 0."""
        return t.blank[:, None] + self._xp.zeros((1, x.shape[1]), dtype=self._backend.real)

    def sweep(self, key: Key, t: GraphTables, x: Array, beta: Array) -> tuple[Array, Array]:
        """(x, p), p (ΣK_v + 1, C) of p(x_v = k | rest)^β as of the update, the last row nothing; `x` is given up."""
        xp, backend = self._xp, self._backend
        count = x.shape[0] - t.places.shape[0]
        u = backend.uniform(key, (count, x.shape[1]))
        p = self.unseen(t, x)
        lift = xp.astype(beta >= 1, xp.int32) * t.entries.shape[1]
        entries = xp.reshape(t.entries, (-1,))

        def body(b: Any, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            x, p = carry
            variables, factors = backend.take(t.variables, b), backend.take(t.factors, b) + count
            steps, states = backend.take(t.steps, b)[..., None], backend.take(t.states, b)
            before = backend.take(x, factors) - steps * backend.take(x, variables)[:, None, :]
            fields = [
                xp.sum(backend.take(entries, before + states[k, :, None, None] * steps + lift), axis=1)
                for k in range(states.shape[0])
            ]
            absent = backend.take(t.absent, b)[..., None]
            fresh, drawn = self._drawn(xp.stack(fields) * beta + absent, backend.take(u, variables))
            x = backend.update(x, variables, drawn, donate=True)
            after = xp.reshape(before + steps * drawn[:, None, :], (-1, x.shape[1]))
            x = backend.update(x, xp.reshape(factors, (-1,)), after, donate=True)
            rows = xp.reshape(backend.take(t.rows, b), (-1,))
            p = backend.update(p, rows, xp.reshape(fresh, (-1, x.shape[1])), donate=True)
            return x, p

        swept: tuple[Array, Array] = backend.fori_loop(0, t.variables.shape[0], body, (x, p))
        return swept

    def log_weights(self, t: GraphTables, x: Array) -> tuple[Array, Array | None]:
        """(C,) D with soft zeros, less the constant, and how many zeros there are; None where the model has none."""
        xp, take = self._xp, self._backend.take
        places = x[x.shape[0] - t.places.shape[0] :, :]
        lost = None if t.zeros is None else xp.sum(take(t.zeros, places), axis=0)
        return xp.sum(take(t.entries[0, :], places), axis=0), lost

    def _drawn(self, fields: Array, u: Array) -> tuple[Array, Array]:
        """(p, states) of fields (K, w, C) with uniform numbers (w, C); a state without weight is never drawn."""
        xp = self._xp
        weights = xp.exp(fields - xp.max(fields, axis=0))
        below = xp.cumulative_sum(weights, axis=0)
        total = below[-1, ...]
        drawn = xp.sum(xp.astype(below <= u * total, xp.int32), axis=0, dtype=xp.int32)
        return weights / total, drawn


def _chunks(graph: FactorTables) -> IntArray:
    """(B, w) variables of one colour, the first repeated; w as large as at most as many repetitions as variables
    allow."""
    count = len(graph.cardinalities)
    colours = colouring(count, neighbours(graph))
    sizes = np.bincount(colours)
    width = int(sizes.max())
    while width > 1 and (-(-sizes // width) * width).sum() > 2 * count:
        width = -(-width // 2)
    order = np.argsort(colours, kind="stable")
    found = []
    for part in np.split(order, np.cumsum(sizes)[:-1]):
        for low in range(0, len(part), width):
            chunk = part[low : low + width]
            found.append(np.append(chunk, np.repeat(chunk[0], width - len(chunk))))
    return np.array(found, dtype=np.int64)


def neighbours(graph: FactorTables) -> IntArray:
    """(E, 2) pairs of variables that share a factor, each once."""
    from scipy import sparse

    factors = np.repeat(np.arange(len(graph.offsets) - 1), np.diff(graph.scope_starts))
    shape = len(graph.cardinalities), len(graph.offsets) - 1
    holds = sparse.coo_array((np.ones(len(factors)), (graph.scope_variables, factors)), shape=shape).tocsr()
    low, high = sparse.triu(holds @ holds.T, k=1).nonzero()
    return np.stack([low, high], axis=1).astype(np.int64)


def _padded(starts: IntArray, lists: list[IntArray], fill: list[int]) -> list[npt.NDArray[np.int32]]:
    """Each list, cut at `starts`, as rows that are filled up to the longest, at least one long."""
    counts = np.diff(starts)
    column = np.arange(max(int(counts.max(initial=1)), 1))
    there = column < counts[:, None]
    found = []
    for values, other in zip(lists, fill, strict=True):
        rows = np.full(there.shape, other, dtype=np.int32)
        rows[there] = values
        found.append(rows)
    return found
