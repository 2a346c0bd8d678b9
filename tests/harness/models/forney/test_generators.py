"""Random models of gauged inference, and the search for their modes."""

from __future__ import annotations

import itertools

import networkx
import numpy as np
import pytest

from spinbench.errors import ModelError, UnsupportedError
from spinbench.models import FactorGraph, build, generators, lattices, networks, to_factor_graph
from spinbench.models.forney import convert
from spinbench.models.forney.modes import find_mode, find_state
from spinbench.models.networks import gauge_complete, gauge_cycle, gauge_grid, gauge_regular

FAMILIES = [gauge_complete, gauge_cycle, gauge_grid, gauge_regular]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
def test_a_seed_decides_the_model(family):
    assert family(seed=3).content_hash == family(seed=3).content_hash
    assert family(seed=3).content_hash != family(seed=4).content_hash


@pytest.mark.parametrize(
    ("graph", "edges"),
    [
        (gauge_complete(5), lattices.complete_edges(5)),
        (gauge_cycle(5), lattices.ring_edges(5)),
        (gauge_grid(3, 4), lattices.grid_edges(3, 4)),
        (gauge_grid(1, 5), lattices.grid_edges(1, 5)),
    ],
)
def test_variable_e_is_edge_e(graph, edges):
    forney = convert.from_factor_graph(graph)
    np.testing.assert_array_equal(forney.edges, edges)
    assert forney.num_nodes == len(graph.factors)


def test_tables_follow_the_law():
    rng = np.random.Generator(np.random.PCG64(7))
    coefficients = rng.standard_normal(9)
    for kind in ("generic", "supermodular"):
        graph = gauge_grid(3, 3, beta=0.3, kind=kind, seed=7)
        for c, factor in zip(coefficients, graph.factors, strict=True):
            c = abs(c) if kind == "supermodular" else c
            for x in itertools.product((0, 1), repeat=len(factor.scope)):
                zeros, ones = x.count(0), x.count(1)
                assert factor.log_table[x] == pytest.approx(0.3 * c * abs(zeros - ones), abs=1e-14)
    rng = np.random.Generator(np.random.PCG64(7))
    graph = gauge_grid(3, 3, beta=2.0, kind="lognormal", seed=7)
    for factor in graph.factors:
        np.testing.assert_allclose(factor.log_table, 2 * rng.standard_normal(factor.log_table.shape))


@pytest.mark.parametrize("kind", ["generic", "supermodular"])
def test_supermodular_factors_are(kind):
    """f(x ∧ y) f(x ∨ y) >= f(x) f(y), which fails for negative coefficients."""
    held = []
    for factor in gauge_regular(20, kind=kind).factors:
        x = np.array(list(itertools.product((0, 1), repeat=3)))
        a, b = x[:, None], x[None]
        f = factor.log_table
        gain = f[tuple(np.moveaxis(a & b, -1, 0))] + f[tuple(np.moveaxis(a | b, -1, 0))]
        held.append((gain - f.ravel()[:, None] - f.ravel()[None] >= -1e-12).all())
    assert all(held) == (kind == "supermodular")


def test_regular_graphs_are_regular_and_connected():
    for seed in range(5):
        forney = convert.from_factor_graph(gauge_regular(12, 3, seed=seed))
        assert set(forney.degrees) == {3}
        assert networkx.is_connected(networkx.MultiGraph(forney.edges.tolist()))


def test_specs_reach_the_families():
    spec = {"name": "gauge_complete", "nodes": 4, "beta": 0.25, "kind": "supermodular", "seed": 2}
    assert build(spec).content_hash == gauge_complete(4, 0.25, "supermodular", 2).content_hash


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: gauge_complete(1), ModelError, "nodes = 1; it must be 2 or more"),
        (lambda: gauge_complete(12), UnsupportedError, "a node has degree 11"),
        (lambda: gauge_regular(7, 3), ModelError, "their product must be even"),
        (lambda: gauge_regular(3, 3), ModelError, "2 <= degree < nodes"),
        (lambda: gauge_regular(60, 2), ModelError, "use gauge_cycle"),
        (lambda: gauge_regular(10**6), ModelError, "at most 100,000 are allowed"),
        (lambda: gauge_grid(0, 3), ModelError, "rows = 0 and cols = 3"),
        (lambda: gauge_grid(1, 1), ModelError, "two nodes are needed"),
        (lambda: gauge_cycle(2), ModelError, "nodes = 2; it must be 3 or more"),
        (lambda: gauge_grid(kind="odd"), ModelError, "kind = 'odd'; 'generic', 'supermodular', 'lognormal'"),
        (lambda: gauge_grid(beta=np.nan), ModelError, "beta = nan"),
        (lambda: gauge_grid(seed=-1), ModelError, "seed = -1"),
    ],
)
def test_parameters_out_of_range_are_refused(make, error, words):
    with pytest.raises(error) as info:
        make()
    assert words in str(info.value)


@pytest.mark.parametrize("seed", range(3))
def test_small_models_give_their_best_state(seed):
    for graph in (gauge_grid(3, 4, seed=seed), gauge_complete(5, beta=1.0, seed=seed), gauge_regular(8, seed=seed)):
        model = convert.from_factor_graph(graph)
        x = (np.arange(2**model.num_edges)[:, None] >> np.arange(model.num_edges)) & 1
        assert model.log_weight(find_mode(model, seed)) == pytest.approx(model.log_weight(x).max(), abs=1e-9)
    graph = to_factor_graph(generators.grid(3, 4, seed=seed))
    s = (np.arange(2**12)[:, None] >> np.arange(12)) & 1
    assert graph.log_weight(find_state(graph, seed)) == pytest.approx(graph.log_weight(s).max(), abs=1e-9)


def test_modes_are_local_maxima_and_not_below_zeros():
    for graph in (gauge_regular(200, kind="supermodular"), gauge_grid(8, 8, seed=1)):
        model = convert.from_factor_graph(graph)
        mode = find_mode(model)
        flipped = mode ^ np.eye(model.num_edges, dtype=np.int64)
        assert (model.log_weight(flipped) <= model.log_weight(mode) + 1e-9).all()
        assert model.log_weight(mode) >= model.log_weight(np.zeros_like(mode))


def test_equality_nodes_flip_as_a_whole():
    model = generators.random_regular(20, 3, seed=1)
    graph = to_factor_graph(model)
    forney = convert.from_factor_graph(graph)
    assert forney.has_zeros
    assert forney.log_weight(find_mode(forney)) == pytest.approx(model.log_weight(find_state(graph)), abs=1e-9)


def test_a_search_that_finds_nothing_says_so():
    """Parities of which only the exhaustive search knows that one state fits: a needle in a haystack."""
    n = 40
    rng = np.random.default_rng(0)
    target = rng.integers(0, 2, n)
    factors = []
    for _ in range(n):
        scope = rng.choice(n, 5, replace=False)
        odd = np.indices((2,) * 5).sum(axis=0) % 2
        factors.append((scope, (odd == target[scope].sum() % 2).astype(float)))
    graph = FactorGraph.from_tables([2] * n, factors)
    assert graph.log_weight(target) == 0
    with pytest.raises(ModelError, match="no state of positive weight was found in"):
        find_state(graph)


def test_every_family_is_reached():
    public = {f.__name__ for f in FAMILIES}
    assert {name for name in vars(networks) if name.startswith("gauge_")} == public
