"""Cluster moves: labels and sums are those of the connected components of open bonds."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from spinbench.backends.numpy import NumpyBackend
from spinbench.methods.clusters.bonds import build_bonds
from spinbench.methods.clusters.moves import ClusterMoves
from spinbench.models import PairwiseModel


def test_labels_and_sums_are_those_of_connected_components():
    """On a path in random order, and with hubs whose neighbours fill several rows of the table."""
    rng, n = np.random.default_rng(5), 120
    order = rng.permutation(n)
    path = np.stack([order[:-1], order[1:]], axis=1)
    hubs = np.array([(h, i) for h in (0, 1) for i in range(2, n)])
    edges = np.unique(np.sort(np.concatenate([path, hubs]), axis=1), axis=0)
    bonds = build_bonds(PairwiseModel.from_edges(np.zeros(n), edges, np.ones(len(edges))), rng.permutation(n))
    assert bonds.neighbours.shape[1] > n
    backend = NumpyBackend(precision="float64")
    shares = np.array([0.0, 0.02, 0.3, 1.0])
    opened = rng.random((len(edges), len(shares))) < shares
    values = rng.normal(size=(n, len(shares)))
    labels = ClusterMoves(backend).label_clusters(bonds, opened)
    sums = ClusterMoves(backend).sum_over_clusters(labels, values)
    for c in range(len(shares)):
        ends = bonds.ends[opened[:, c]]
        graph = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n))
        _, component = connected_components(graph, directed=False)
        lowest = np.array([np.flatnonzero(component == k)[0] for k in component])
        np.testing.assert_array_equal(labels[:, c], lowest)
        np.testing.assert_allclose(sums[:, c], np.bincount(component, values[:, c])[component], atol=1e-12)
