"""Houdayer's move over a backend's arrays: ladders 2 j and 2 j + 1 exchange, at one rung, where they differ.

Of the variables in which two replicas differ one is drawn, and with it all that hang together with it among such
variables. On their boundary both agree, so that the sum of their D stays, and the product of their laws: Houdayer,
European Physical Journal B 2001; Zhu, Ochoa, Katzgraber, Physical Review Letters 2015.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spinbench.api import Array, Backend, Key
from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.mathematics.graphs.table_layouts import conflicts
from spinbench.methods.clusters.bonds import Bonds, bonds_of
from spinbench.methods.clusters.moves import Clusters
from spinbench.methods.tempering.graphs import GraphTables
from spinbench.methods.tempering.pairs import PairTables
from spinbench.models import Model, PairwiseModel

HOTTEST = 3
"""Moves are made at all but the lowest third of the rungs, where components are nearly everything."""


def neighbours(model: Model, replicas: PairTables | GraphTables) -> Bonds:
    """Who has a factor in common with whom, by the replicas' rows."""
    n, edges = len(model.cardinalities), conflicts(factor_tables(model))
    joined = PairwiseModel.from_edges(np.zeros(n), edges, np.ones(len(edges)))
    return bonds_of(joined, replicas.order if isinstance(replicas, PairTables) else np.arange(n))


class Exchanges:
    """Moves of P = L / 2 pairs of ladders."""

    def __init__(self, backend: Backend, moves: int) -> None:
        """`moves` of each pair."""
        self._backend, self._xp = backend, backend.xp
        self._moves, self._clusters = moves, Clusters(backend)

    def move(self, key: Key, near: Bonds, x: Array, slot: Array) -> Array:
        """x (N, R L) after the moves; slot (R, L) of each rung. x is given up."""
        backend = self._backend
        if slot.shape[1] < 2:
            return x

        def body(i: Any, x: Array) -> Array:
            return self._moved(backend.fold_in(key, i), near, x, slot)

        moved: Array = backend.fori_loop(0, self._moves, body, x)
        return moved

    def _moved(self, key: Key, near: Bonds, x: Array, slot: Array) -> Array:
        xp, backend, (rungs, ladders) = self._xp, self._backend, slot.shape
        pairs = 2 * xp.arange(ladders // 2, dtype=slot.dtype)
        u, lowest = backend.uniform(key, (2, pairs.shape[0])), rungs // HOTTEST
        rung = lowest + self._below(u[0, :], rungs - lowest + xp.zeros_like(pairs))
        slots = xp.reshape(slot, (-1,))
        mine, others = (backend.take(slots, rung * ladders + c) * ladders + c for c in (pairs, pairs + 1))
        first, second = xp.take(x, mine, axis=1), xp.take(x, others, axis=1)
        swapped = self._component(near, first != second, u[1, :])
        rows = xp.arange(x.shape[0], dtype=slot.dtype)[:, None] * x.shape[1]
        places = xp.concat([rows + mine, rows + others], axis=1)
        found = xp.concat([xp.where(swapped, second, first), xp.where(swapped, first, second)], axis=1)
        flat, places = xp.reshape(x, (-1,)), xp.reshape(places, (-1,))
        return xp.reshape(backend.update(flat, places, xp.reshape(found, (-1,)), donate=True), x.shape)

    def _component(self, near: Bonds, differ: Array, u: Array) -> Array:
        """(N, P) what hangs together with a row that u (P,) draws of those that differ; nothing where none does."""
        xp = self._xp
        joined = xp.take(differ, near.ends[:, 0], axis=0) & xp.take(differ, near.ends[:, 1], axis=0)
        labels = self._clusters.labels(near, joined)
        upto = xp.cumulative_sum(xp.astype(differ, xp.int32), axis=0, dtype=xp.int32)
        goal = self._below(u, upto[-1, :])
        drawn = xp.sum(xp.astype(upto <= goal, xp.int32), axis=0, dtype=xp.int32)
        drawn = xp.minimum(drawn, xp.zeros_like(drawn) + (differ.shape[0] - 1))
        own = xp.take_along_axis(labels, xp.astype(drawn, labels.dtype)[None, :], axis=0)
        return differ & (labels == own)

    def _below(self, u: Array, count: Array) -> Array:
        """A number from 0 to count - 1 for each u; rounding up of the largest u is undone."""
        xp = self._xp
        found = xp.astype(xp.floor(u * xp.astype(count, u.dtype)), count.dtype)
        return xp.minimum(found, count - 1)
