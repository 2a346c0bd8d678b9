"""Forney models: construction, conversions that keep log Z and every marginal, the search for modes, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from spinbench import reference
from spinbench.errors import ModelError, UnsupportedError
from spinbench.models import FactorGraph, PairwiseModel, generators, to_factor_graph
from spinbench.models.forney import build, convert
from spinbench.models.forney.modes import find_factor_graph_mode, find_mode
from spinbench.models.networks import gauge_complete, gauge_grid, gauge_regular


def tables(rng, *degrees):
    return [rng.random((2,) * d) + 0.1 for d in degrees]


def by_hand(edges, log_tables, incident):
    """log Z and marginals of the edges from tables that may see a self loop twice."""
    E = len(edges)
    x = (np.arange(2**E)[:, None] >> np.arange(E)) & 1
    weights = np.ones(2**E)
    for table, slots in zip(log_tables, incident, strict=True):
        weights *= table[tuple(x[:, e] for e in slots)]
    return np.log(weights.sum()), weights @ x / weights.sum()


@pytest.mark.parametrize(
    ("edges", "degrees"),
    [
        ([(0, 1), (1, 2), (0, 2)], (2, 2, 2)),
        ([(0, 1), (0, 1), (0, 1)], (3, 3)),  # parallel
        ([(0, 1), (1, 1), (1, 2)], (1, 4, 1)),  # a self loop
        ([(0, 0), (1, 1), (1, 1)], (2, 4)),  # nothing but self loops
        ([(0, 1), (2, 3), (2, 3)], (1, 1, 2, 2, 0)),  # disconnected, and an isolated node
    ],
)
def test_sum_and_marginals_are_those_of_the_tables(edges, degrees, forney_truth):
    rng = np.random.default_rng(1)
    log_tables = tables(rng, *degrees)
    incident = [[e for e, ends in enumerate(edges) for end in ends if end == a] for a in range(len(degrees))]
    shuffled = [list(rng.permutation(slots)) for slots in incident]
    for order in (incident, shuffled):
        model = build.from_tables(edges, log_tables, incident=None if order is incident else order, log_constant=0.7)
        log_z, marginals = by_hand(edges, log_tables, order)
        forney_log_z, read = forney_truth(model)
        assert forney_log_z == pytest.approx(log_z + 0.7, abs=1e-12)
        assert reference.solve(model.to_factor_graph(), marginals=False).log_z == pytest.approx(log_z + 0.7, abs=1e-12)
        np.testing.assert_allclose(read, marginals, atol=1e-12)
        assert all(table.max() == 0 for table in model.log_tables)
        assert min(model.degrees, default=1) >= 1


def test_extreme_weights_keep_their_logarithm():
    """Each table alone underflows in the linear domain wherever the other does not."""
    model = build.from_log_tables([(0, 1)], [[0.0, -2000.0], [-2000.0, 0.0]])
    assert reference.solve(model.to_factor_graph(), marginals=False).log_z == pytest.approx(-2000 + np.log(2))


def test_a_model_without_edges_is_its_constant():
    model = build.from_tables([], [3.0, 2.0])
    assert (model.num_nodes, model.num_edges) == (0, 0)
    assert reference.solve(model.to_factor_graph(), marginals=False).log_z == pytest.approx(np.log(6.0))
    assert model.log_weight(np.zeros((2, 0))).tolist() == [model.log_constant] * 2
    assert model.to_factor_graph().log_weight([0]) == pytest.approx(np.log(6.0))


def random_graph(rng):
    """A small factor graph, often with zeros, unary, empty and repeated factors, isolated and one-state variables."""
    n = int(rng.integers(1, 8))
    cards = [2] * n
    if rng.random() < 0.2:
        cards[rng.integers(n)] = 1
    factors = []
    for _ in range(rng.integers(0, 7)):
        scope = rng.choice(n, int(rng.integers(0, min(n, 4) + 1)), replace=False)
        table = 3 * rng.standard_normal([cards[v] for v in scope])
        if table.size > 2 and rng.random() < 0.3:
            holes = rng.random(table.shape) < 0.15
            holes.flat[0] = False
            table[holes] = -np.inf
        factors.append((scope, table))
    return FactorGraph.from_log_tables(cards, factors, log_constant=1.5)


def assert_same(model, forney, truth):
    exact = reference.solve(model, cache=False, method="enumeration")
    log_z, marginals = truth(forney)
    assert log_z == pytest.approx(exact.log_z, rel=1e-12, abs=1e-12)
    expected = [vector[1] if len(vector) == 2 else 0.0 for vector in exact.marginals]
    np.testing.assert_allclose(marginals, expected, atol=1e-11)


def test_factor_graphs_of_any_shape(forney_truth):
    compared = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        graph = random_graph(rng)
        forney = convert.from_factor_graph(graph)
        if forney.num_edges <= 12:
            assert_same(graph, forney, forney_truth)
            assert_same(graph, forney.relabel(rng.integers(0, 2, forney.num_edges)), forney_truth)
            if seed % 4 == 0:
                assert_same(graph, convert.to_forney(graph), forney_truth)
            compared += forney.num_edges > 0
    assert compared > 15


@pytest.mark.parametrize("strength", [0.3, 3.0, 400.0])
def test_pairwise_models(strength, forney_truth):
    compared = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 8))
        W = np.triu(strength * rng.standard_normal((n, n)) * (rng.random((n, n)) < 0.5), 1)
        model = PairwiseModel.from_dense(3 * rng.standard_normal(n), W + W.T, log_constant=0.7)
        for forney in (
            convert.from_pairwise(model),
            convert.from_pairwise(model, mode=rng.integers(0, 2, n), spread=0.5),
            convert.to_forney(model, seed=seed),
        ):
            assert not forney.has_zeros
            if forney.num_edges <= 12:
                assert_same(model, forney, forney_truth)
                compared += forney.num_edges > 0
    assert compared > 8


def test_leaves_are_summed_before_degrees_count():
    star = PairwiseModel.from_edges(np.linspace(-1, 1, 40), [(0, k) for k in range(1, 40)], np.linspace(-2, 2, 39))
    exact = reference.solve(star, cache=False)
    for forney in (convert.from_pairwise(star), convert.from_factor_graph(to_factor_graph(star))):
        assert forney.num_edges == 0
        assert forney.log_constant == pytest.approx(exact.log_z, abs=1e-10)
        np.testing.assert_allclose(forney.variable_marginals([]), exact.probabilities, atol=1e-12)


def test_groups_become_factors(forney_truth):
    model = PairwiseModel.from_edges(
        [0.3, -1.0, 0.5, 0.2, 0.9], [(0, 3), (1, 3), (2, 4), (3, 4)], [1.0, -2, 0.7, 0.4], groups=[(0, 1, 2)]
    )
    assert_same(model, convert.to_forney(model), forney_truth)
    with pytest.raises(UnsupportedError, match="1-of-K groups"):
        convert.from_pairwise(model)


@pytest.mark.parametrize("seed", range(3))
def test_small_models_give_their_best_state(seed):
    for graph in (gauge_grid(3, 4, seed=seed), gauge_complete(5, beta=1.0, seed=seed), gauge_regular(8, seed=seed)):
        model = convert.from_factor_graph(graph)
        x = (np.arange(2**model.num_edges)[:, None] >> np.arange(model.num_edges)) & 1
        assert model.log_weight(find_mode(model, seed)) == pytest.approx(model.log_weight(x).max(), abs=1e-9)
    graph = to_factor_graph(generators.grid(3, 4, seed=seed))
    s = (np.arange(2**12)[:, None] >> np.arange(12)) & 1
    assert graph.log_weight(find_factor_graph_mode(graph, seed)) == pytest.approx(graph.log_weight(s).max(), abs=1e-9)


def test_modes_are_local_maxima_and_not_below_zeros():
    for graph in (gauge_regular(200, kind="supermodular"), gauge_grid(8, 8, seed=1)):
        model = convert.from_factor_graph(graph)
        mode = find_mode(model)
        flipped = mode ^ np.eye(model.num_edges, dtype=np.int64)
        assert (model.log_weight(flipped) <= model.log_weight(mode) + 1e-9).all()
        assert model.log_weight(mode) >= model.log_weight(np.zeros_like(mode))


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
        find_factor_graph_mode(graph)


REFUSED = [
    (lambda: build.from_tables([(0, 2)], [[1, 1]] * 2), ModelError, "edge (0, 2) names a node outside 0..1"),
    (lambda: build.from_tables([0, 1], [[1, 1]] * 2), ModelError, "edges have shape (2,)"),
    (lambda: build.from_tables([(0, 1)], [[1, 1], [1]]), ModelError, "node 1 has a table of shape (1,)"),
    (lambda: build.from_tables([(0, 1)], [[1, 1], [1, -1]]), ModelError, "node 1 has the entry -1"),
    (
        lambda: build.from_tables([(0, 1)], [[1, 1], [0, 0]]),
        ModelError,
        "node 1 is zero everywhere, so Z = 0",
    ),
    (lambda: build.from_tables([(0, 0)], [[[0, 1], [1, 0]]]), ModelError, "so Z = 0"),
    (lambda: build.from_tables([(0, 1)], [[1, 1], [1, np.inf]]), ModelError, "node 1 has a NaN or infinite"),
    (lambda: build.from_tables([(0, 1)], [[1, 1], [1, np.nan]]), ModelError, "node 1 has a NaN or infinite"),
    (
        lambda: build.from_tables([(0, 1)], [[1, 1]] * 2, incident=[[0], [1]]),
        ModelError,
        "incident must name, for each of 2 nodes",
    ),
    (
        lambda: build.from_tables([(0, k) for k in range(1, 12)], [[1.0]] * 12),
        UnsupportedError,
        "node 0 has degree 11; methods on the Forney form keep tables of 2**degree entries and allow degrees up to 10",
    ),
    (lambda: build.from_tables([(0, 1)], [[1, 1]] * 2).log_weight([2]), ModelError, "1 states 0 or 1"),
    (lambda: build.from_tables([(0, 1)], [[1, 1]] * 2).relabel([1, 1]), ModelError, "flips have shape (2,)"),
    (
        lambda: convert.to_forney(FactorGraph.from_tables([2, 3], [((0, 1), np.ones((2, 3)))])),
        UnsupportedError,
        "variable 1 has 3 states; methods on the Forney form need binary variables, so use bp or mf here",
    ),
    (
        lambda: convert.to_forney(FactorGraph.from_tables([3], [], labels=["colour"])),
        UnsupportedError,
        "variable 0 ('colour') has 3 states",
    ),
    (lambda: convert.to_forney(generators.complete(12)), UnsupportedError, "variable 0 has degree 11"),
    (
        lambda: convert.from_factor_graph(to_factor_graph(generators.complete(13))),
        UnsupportedError,
        "variable 0 has degree 12",
    ),
    (
        lambda: convert.to_forney(FactorGraph.from_tables([2] * 11, [(range(11), np.ones(2**11))] * 2)),
        UnsupportedError,
        "factor 0 has degree 11",
    ),
    (
        lambda: convert.to_forney(FactorGraph.from_tables([2], [((0,), [1, 0]), ((0,), [0, 1])] * 2)),
        ModelError,
        "so Z = 0",
    ),
    (lambda: convert.from_pairwise(generators.ring(4), mode=[0, 1]), ModelError, "the mode has shape (2,)"),
    (lambda: convert.from_pairwise(generators.ring(4), spread=0.0), ModelError, "spread is 0.0"),
]


@pytest.mark.parametrize(
    ("make", "error", "message"), REFUSED, ids=[f"{k} {message[-40:]}" for k, (*_, message) in enumerate(REFUSED)]
)
def test_refusals(make, error, message):
    with pytest.raises(error) as info:
        make()
    assert message in str(info.value)
