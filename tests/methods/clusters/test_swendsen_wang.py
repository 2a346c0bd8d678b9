"""Cluster moves on every backend, against enumeration: fixed seeds, tolerances in standard errors."""

from __future__ import annotations

import numpy as np
import pytest
from compiled_parts import called
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

import spinbench
from spinbench.backends.numba import clusters as moves
from spinbench.backends.numba.simd.random import chain_keys, fill_rows
from spinbench.backends.numpy import NumpyBackend
from spinbench.errors import SpinbenchError, UnsupportedError
from spinbench.mathematics.graphs.rows import compressed_rows
from spinbench.methods.clusters.bonds import bonds_of
from spinbench.methods.clusters.moves import Clusters
from spinbench.methods.clusters.swendsen_wang import SwendsenWang
from spinbench.models import PairwiseModel
from spinbench.testing import limits

DRAWS = 20_000


def random_model(n, density, scale, seed, *, attractive=False):
    """With half of the fields balanced, so that neither state of a variable has all of the mass."""
    rng = np.random.default_rng(seed)
    W = np.triu(rng.normal(size=(n, n)) * scale, 1) * (rng.random((n, n)) < density)
    W = np.abs(W) if attractive else W
    edges = np.argwhere(W)
    return PairwiseModel.from_edges(
        0.7 * rng.normal(size=n) - 0.5 * (W + W.T).sum(axis=0), edges, W[edges[:, 0], edges[:, 1]]
    )


MODELS = {
    "attractive": random_model(7, 0.5, 2.0, 1, attractive=True),
    "frustrated": random_model(6, 1.0, 1.5, 2),
}


def law(model):
    states = (np.arange(2**model.num_variables)[:, None] >> np.arange(model.num_variables)) & 1
    weights = model.log_weight(states)
    return states, np.exp(weights - np.logaddexp.reduce(weights))


PAIRS = [*((name, backend) for name in MODELS for backend in ("numpy", "numba")), ("frustrated", "jax")]


@pytest.mark.parametrize(("name", "backend"), PAIRS)
def test_marginals(name, backend):
    states, p = law(MODELS[name])
    found = spinbench.run(MODELS[name], "swendsen_wang", backend, 600, chains=64, seed=1)
    assert found.status == "ok"
    assert found.marginals_se.max() < 0.01
    assert (np.abs(found.marginals - p @ states) < 4 * found.marginals_se).all()


def moved_on_arrays(model, s):
    backend = NumpyBackend(precision="float64")
    return Clusters(backend).move(backend.key(3), bonds_of(model, np.arange(model.num_variables)), s.T)


def moved_in_compiled_code(model, s):
    tables = SwendsenWang().plan(model)
    flat = moves.flat_tables(
        tables, compressed_rows(model, tables.order), model.biases[tables.order], np.dtype("float64")
    )
    work, keys = moves.work_space(flat, 0), chain_keys(3, len(s)).T.copy()
    rows, p = np.ascontiguousarray(s[:, tables.order]), np.empty(s.shape)
    for c in range(len(s)):
        called(fill_rows)(keys[c], np.uint64(0), work.u)
        moves.move(flat, rows[c], p[c], work)
    place = np.argsort(tables.order)
    return rows[:, place].T, p[:, place].T


@pytest.mark.parametrize("moved", [moved_on_arrays, moved_in_compiled_code])
@pytest.mark.parametrize("name", MODELS)
def test_a_move_keeps_the_law(name, moved):
    states, exact = law(MODELS[name])
    draws = states[np.random.default_rng(4).choice(len(states), size=DRAWS, p=exact)]
    s, p = moved(MODELS[name], draws.astype(float))
    assert (draws != s.T).any(axis=1).mean() > 0.2  # otherwise this shows nothing
    counts = np.bincount(s.T.astype(int) @ (2 ** np.arange(len(s))), minlength=len(states))
    statistic, degrees = limits.likelihood_ratio(counts, exact)
    assert statistic < limits.chi_square_limits(degrees, 1)[1]
    errors = p.std(axis=1) / DRAWS**0.5
    assert (np.abs(p.mean(axis=1) - exact @ states) < 4.5 * errors + 1e-12).all()


def test_labels_and_sums_are_those_of_connected_components():
    """On a path in random order, and with hubs whose neighbours fill several rows of the table."""
    rng, n = np.random.default_rng(5), 120
    order = rng.permutation(n)
    path = np.stack([order[:-1], order[1:]], axis=1)
    hubs = np.array([(h, i) for h in (0, 1) for i in range(2, n)])
    edges = np.unique(np.sort(np.concatenate([path, hubs]), axis=1), axis=0)
    bonds = bonds_of(PairwiseModel.from_edges(np.zeros(n), edges, np.ones(len(edges))), rng.permutation(n))
    assert bonds.neighbours.shape[1] > n
    backend = NumpyBackend(precision="float64")
    shares = np.array([0.0, 0.02, 0.3, 1.0])
    opened = rng.random((len(edges), len(shares))) < shares
    values = rng.normal(size=(n, len(shares)))
    labels = Clusters(backend).labels(bonds, opened)
    sums = Clusters(backend).sums(labels, values)
    for c in range(len(shares)):
        ends = bonds.ends[opened[:, c]]
        graph = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n))
        _, component = connected_components(graph, directed=False)
        lowest = np.array([np.flatnonzero(component == k)[0] for k in component])
        np.testing.assert_array_equal(labels[:, c], lowest)
        np.testing.assert_allclose(sums[:, c], np.bincount(component, values[:, c])[component], atol=1e-12)


def test_what_it_does_not_take():
    groups = PairwiseModel.from_edges(np.zeros(4), [(0, 2)], [1.0], groups=((0, 1), (2, 3)))
    with pytest.raises(UnsupportedError, match="1-of-K groups"):
        spinbench.run(groups, "swendsen_wang", "numba", 10)
    with pytest.raises(SpinbenchError, match="sweeps=-1"):
        SwendsenWang(sweeps=-1)
