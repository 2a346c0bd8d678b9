"""Replicas of binary pairwise models: Gibbs sweeps over a backend's arrays, each chain at a β of its own."""

from __future__ import annotations

from typing import NamedTuple

from spinbench.api import Array, Key
from spinbench.mathematics.graphs.rows import compressed_rows
from spinbench.mathematics.graphs.sweep_layouts import (
    Scan,
    Sweep,
    chosen_tables,
    layout,
)
from spinbench.methods.gibbs.sweeps import PairSweeps
from spinbench.models import PairwiseModel


class PairTables(NamedTuple):
    """Attributes: order (N,) the variable of each row; sweep: its tables."""

    order: Array
    sweep: Sweep | Scan


def pair_tables(model: PairwiseModel) -> PairTables:
    """Of a model without groups, colour by colour."""
    plan = layout(model, "chromatic")
    rows = compressed_rows(model, plan.order)
    return PairTables(plan.order, chosen_tables(model, plan, rows))


class PairReplicas(PairSweeps):
    """What tempering calls of `PairSweeps`."""

    def sweep(self, key: Key, t: PairTables, s: Array, beta: Array) -> tuple[Array, Array]:
        """(s, p), p (N, C) of p(s_i = 1 | rest)^β as of the update; `s` is given up."""
        return self.advance(key, t, s, self.unseen(t, s), beta)

    def log_weights(self, t: PairTables, s: Array) -> tuple[Array, None]:
        """(C,) D, less the model's constant; there are no hard zeros."""
        return self.slope(t, s), None
