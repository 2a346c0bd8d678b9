"""Replicas of binary pairwise models: a move of clusters, then a Gibbs sweep, each chain at a β of its own."""

from __future__ import annotations

from typing import NamedTuple

from spinbench.api import Array, Backend, Key
from spinbench.methods.clusters.bonds import Bonds
from spinbench.methods.clusters.moves import Clusters
from spinbench.methods.clusters.swendsen_wang import SwendsenWang
from spinbench.methods.tempering.pairs import PairReplicas, PairTables
from spinbench.models import PairwiseModel


class ClusterTables(NamedTuple):
    """Attributes: pairs, of the sweeps; bounds (B + 1,) rows updated together; bonds, between the same rows."""

    pairs: PairTables
    bounds: Array
    bonds: Bonds


def cluster_tables(model: PairwiseModel) -> ClusterTables:
    """Those of the method `swendsen_wang`, of a model without groups."""
    planned = SwendsenWang().plan(model)
    return ClusterTables(PairTables(planned.order, planned.sweep), planned.bounds, planned.bonds)


class ClusterReplicas:
    """States s (N, C) of 0 and 1 in the backend's real type; p (N, C) that clusters give to 1 before the sweep."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._pairs, self._clusters = PairReplicas(backend), Clusters(backend)

    def begin(self, t: ClusterTables, start: Array) -> Array:
        """From states of the variables (N, C)."""
        return self._pairs.begin(t.pairs, start)

    def unseen(self, t: ClusterTables, s: Array) -> Array:
        """(N, C) 0."""
        return self._pairs.unseen(t.pairs, s)

    def sweep(self, key: Key, t: ClusterTables, s: Array, beta: Array) -> tuple[Array, Array]:
        """(s, p); `s` is given up."""
        s, p = self._clusters.move(self._backend.fold_in(key, 0), t.bonds, s, beta)
        return self._pairs.sweep(self._backend.fold_in(key, 1), t.pairs, s, beta)[0], p

    def log_weights(self, t: ClusterTables, s: Array) -> tuple[Array, None]:
        """(C,) D, less the model's constant; there are no hard zeros."""
        return self._pairs.log_weights(t.pairs, s)

    def states(self, t: ClusterTables, s: Array) -> Array:
        """(N, C), variable by variable."""
        return self._pairs.states(t.pairs, s)
