"""Replicas of binary pairwise models, and of any factor graph, by look-ups: Gibbs sweeps over a backend's arrays, each
chain at a β of its own.

Where β < 1, hard zeros are soft, so that replicas may pass them; at β = 1 they are zeros, see
`mathematics.heat_bath.table_updates`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spinbench.api import Array, Backend, Key, PairwiseModel
from spinbench.mathematics.graphs.factor_tables import FactorTables
from spinbench.mathematics.graphs.rows import compressed_rows
from spinbench.mathematics.graphs.sweep_layouts import (
    Scan,
    Sweep,
    choose_tables,
    layout,
)
from spinbench.mathematics.graphs.table_layouts import TableSweep, marginal_rows, table_sweep
from spinbench.methods.gibbs.sweeps import GraphSweeps, PairSweeps


class GraphTables(NamedTuple):
    """Attributes: sweep; zeros (1,), or None where the model has none; blank (R + 1,) 0, R rows being reported."""

    sweep: TableSweep
    zeros: Array | None
    blank: Array

    def over(self, backend: Backend) -> GraphReplicas:
        """What sweeps them."""
        return GraphReplicas(backend)


def build_graph_tables(graph: FactorTables) -> GraphTables:
    """Colour by colour."""
    sweep = table_sweep(graph, "chromatic", single=False)
    zeros = np.zeros(1) if np.isneginf(graph.values).any() else None
    return GraphTables(sweep, zeros, np.zeros(len(marginal_rows(graph.cardinalities)[0]) + 1))


class GraphReplicas(GraphSweeps):
    """What tempering calls of `GraphSweeps`."""

    def sweep(self, key: Key, t: GraphTables, x: Array, beta: Array) -> tuple[Array, Array]:
        """(x, p), p of p(x_v = k | rest)^β as of the update; `x` is given up."""
        return self.sweep_forward(key, t, x, self.initial_conditionals(t, x), beta)

    def log_weights(self, t: GraphTables, x: Array) -> tuple[Array, Array | None]:
        """(C,) D with soft zeros, less the constant, and whether x meets a hard one; None where the model has none."""
        log_weights = self.slope(t, x)
        if t.zeros is None:
            return log_weights, None
        exact = self._bath.log_weights(t.sweep.entries, x)
        return log_weights, self._xp.astype(exact == -self._xp.inf, log_weights.dtype)


class PairTables(NamedTuple):
    """Attributes: order (N,) the variable of each row; sweep: its tables."""

    order: Array
    sweep: Sweep | Scan

    def over(self, backend: Backend) -> PairReplicas:
        """What sweeps them."""
        return PairReplicas(backend)


def build_pair_tables(model: PairwiseModel) -> PairTables:
    """Of a model without groups, colour by colour."""
    plan = layout(model, "chromatic")
    rows = compressed_rows(model, plan.order)
    return PairTables(plan.order, choose_tables(model, plan, rows))


class PairReplicas(PairSweeps):
    """What tempering calls of `PairSweeps`."""

    def sweep(self, key: Key, t: PairTables, s: Array, beta: Array) -> tuple[Array, Array]:
        """(s, p), p (N, C) of p(s_i = 1 | rest)^β as of the update; `s` is given up."""
        return self.sweep_forward(key, t, s, self.initial_conditionals(t, s), beta)

    def log_weights(self, t: PairTables, s: Array) -> tuple[Array, None]:
        """(C,) D, less the model's constant; there are no hard zeros."""
        return self.slope(t, s), None
