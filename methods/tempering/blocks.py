"""Replicas of any factor graph: sweeps of blocks, each drawn exactly given the rest, each chain at a β of its own."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from spinbench.api import Array, Backend, Key
from spinbench.mathematics.graphs.factor_tables import FactorTables
from spinbench.methods.blocks.buckets import Buckets
from spinbench.methods.blocks.tables import Tables, make_tables


class BlockTables(NamedTuple):
    """Attributes: tables of `blocks`; zeros (1,), or None where the model has none; blank (N K,) 0."""

    tables: Tables
    zeros: Array | None
    blank: Array


def block_tables(graph: FactorTables, size: int) -> BlockTables:
    """Blocks whose tables have `size` entries at most."""
    tables = make_tables(graph, size, 2)
    zeros = np.zeros(1) if np.isneginf(graph.values).any() else None
    return BlockTables(tables, zeros, np.zeros(len(graph.cardinalities) * len(tables.states)))


class BlockReplicas:
    """States x (N, C), integers; p (N K, C), in row v K + k of p(x_v = k | rest)."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._buckets = Buckets(backend)

    def begin(self, t: BlockTables, start: Array) -> Array:
        """From states of the variables (N, C)."""
        return self._backend.xp.astype(start, t.tables.variable.dtype)

    def unseen(self, t: BlockTables, x: Array) -> Array:
        """(N K, C) 0."""
        return t.blank[:, None] + self._backend.xp.zeros((1, x.shape[1]), dtype=self._backend.real)

    def sweep(self, key: Key, t: BlockTables, x: Array, beta: Array) -> tuple[Array, Array]:
        """(x, p): every block once, and the probabilities before each draw."""
        backend, tables, chains = self._backend, t.tables, x.shape[1]

        def body(i: Any, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            x, p = carry
            block = backend.take(tables.sweep, i)
            summed = self._buckets.forward(tables, block, x, beta)
            p = self._buckets.add_marginals(tables, block, summed, p)
            u = backend.uniform(backend.fold_in(key, i), (tables.places.shape[0], chains))
            return self._buckets.draw(tables, block, summed, x, u), p

        swept: tuple[Array, Array] = backend.fori_loop(0, tables.sweep.shape[0], body, (x, self.unseen(t, x)))
        return swept

    def log_weights(self, t: BlockTables, x: Array) -> tuple[Array, Array | None]:
        """(C,) D with soft zeros, less the constant, and whether x meets a hard one; None where the model has none."""
        xp, take, tables = self._backend.xp, self._backend.take, t.tables
        steps = tables.strides[:, :, None] * take(x, tables.members)
        entries = take(tables.values, tables.offsets[:, None] + xp.sum(steps, axis=1))
        found = xp.sum(xp.maximum(entries, tables.floors[:, None]), axis=0)
        if t.zeros is None:
            return found, None
        return found, xp.astype(xp.any(entries == -xp.inf, axis=0), found.dtype)

    def states(self, t: BlockTables, x: Array) -> Array:
        """(N, C)."""
        return x
