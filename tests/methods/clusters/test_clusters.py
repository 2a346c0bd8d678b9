"""Coupling from the past gives exact draws; cluster moves, the connected components of open bonds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from small_graphs import attractive, bound, keeps_law, law

import spinbench
from spinbench.backends.numpy import NumpyBackend
from spinbench.methods.clusters import cftp
from spinbench.methods.clusters.bonds import build_bonds
from spinbench.methods.clusters.cftp import CouplingFromThePast, find_flips, flip_model
from spinbench.methods.clusters.moves import ClusterMoves
from spinbench.models import PairwiseModel

EDGES = np.array([(0, 1), (1, 2), (2, 3), (3, 4), (0, 4), (1, 4), (2, 5)])
SIGNS = np.where(np.isin(np.arange(6), [1, 4]), -1.0, 1.0)
# Couplings of both signs, which flips of two variables turn.
MODEL = attractive(EDGES, np.random.default_rng(1).uniform(0.5, 3.0, size=len(EDGES)) * SIGNS[EDGES].prod(axis=1), 2)


def exact_draws(backend: str, steps: int, chains: int) -> np.ndarray:
    """(steps, N, C) by variable."""
    tables, engine = bound(MODEL, backend, CouplingFromThePast())
    state, draws = engine.init(3, np.zeros((6, chains), dtype=np.int8)), []
    for _ in range(steps):
        state, statistics = engine.advance(state, 1)
        draws.append(statistics["draw"][np.argsort(tables.order)])
    return np.array(draws)


@pytest.mark.parametrize(("backend", "steps"), [("numpy", 20), ("jax", 6)])
def test_draws_have_the_exact_law(backend: str, steps: int) -> None:
    assert keeps_law(MODEL, np.rint(np.hstack(exact_draws(backend, steps, 500))))


def test_a_draw_does_not_depend_on_where_doubling_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """From 64 sweeps before now on instead of 4; each sweep has its own numbers, whatever the epoch."""
    before = exact_draws("numpy", 2, 40)
    monkeypatch.setattr(cftp, "FIRST_SWEEPS", 64)
    np.testing.assert_array_equal(before, exact_draws("numpy", 2, 40))


@pytest.mark.parametrize("marginals", ["rao_blackwell", "empirical"])
def test_errors_are_those_of_independent_draws(marginals: str) -> None:
    states, p, _ = law(MODEL)
    result = spinbench.run(MODEL, "cftp", "numpy", 40, chains=64, seed=5, marginals=marginals)
    exact = np.sqrt(result.marginals * (1 - result.marginals) / (40 * 64))
    assert result.status == "ok"
    assert (np.abs(result.marginals - states @ p) < 4 * result.marginals_se).all()
    assert (result.marginals_se < 1.2 * exact).all()
    assert marginals == "rao_blackwell" or (result.marginals_se >= exact).all()
    assert result.draws[0].shape[0] == 6


def test_draws_that_never_meet_are_doubted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cftp, "MAX_DOUBLINGS", 1)
    result = spinbench.run(MODEL, "cftp", "numpy", 20, chains=32)
    assert result.diagnostics["never_met"] > 0
    assert result.status == "marginals not mixed"


def test_no_more_sweeps_are_made_where_all_chains_will_hardly_meet() -> None:
    """Twelve spins at a third of the critical temperature, of which the one well is left in some 10^8 sweeps."""
    edges = np.array([(i, j) for i in range(12) for j in range(i)])
    result: Any = spinbench.run(attractive(edges, np.full(len(edges), 1.6), 7), "cftp", "numpy", 1, chains=16)
    assert result.status == "marginals not mixed"
    assert result.diagnostics["never_met"] == 16
    assert result.diagnostics["sweeps"] < 2**13


def test_flips_make_couplings_attractive_and_keep_the_law() -> None:
    turned, flip = flip_model(MODEL, find_flips("cftp", MODEL)), find_flips("cftp", MODEL)
    assert 0 < flip.sum() < 6
    assert (turned.couplings >= 0).all()
    states, p, _ = law(MODEL)
    weights = turned.log_weight(np.where(flip, 1 - states.T, states.T))
    np.testing.assert_allclose(np.exp(weights - np.logaddexp.reduce(weights)), p, rtol=1e-10)


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
