"""Conversions to the Forney form keep log Z and every marginal."""

from __future__ import annotations

import numpy as np
import pytest

from spinbench import reference
from spinbench.errors import ModelError, UnsupportedError
from spinbench.models import FactorGraph, PairwiseModel, generators, to_factor_graph
from spinbench.models.forney import convert
from spinbench.models.forney.convert import _factors


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


@pytest.mark.parametrize("coupling", [-900.0, -3.0, 0.5, 900.0])
def test_the_compact_split_of_a_coupling_is_positive_and_exact(coupling):
    log_pair = np.array([[0.0, 0.3], [-0.2, coupling]])
    a, b = _factors(log_pair, 1.0)
    assert np.isfinite(a).all()
    assert np.isfinite(b).all()
    product = np.logaddexp(a[:, None, 0] + b[None, :, 0], a[:, None, 1] + b[None, :, 1])
    np.testing.assert_allclose(product, log_pair, atol=1e-12)
    assert a[0, 0] + a[1, 1] > a[0, 1] + a[1, 0]  # det A > 0


def test_a_graph_of_variables_in_two_factors_is_taken_as_it_stands():
    rng = np.random.default_rng(0)
    scopes = [(0,), (0, 1), (1, 2, 3), (2, 3)]
    graph = FactorGraph.from_log_tables([2] * 4, [(s, rng.standard_normal((2,) * len(s))) for s in scopes])
    forney = convert.from_factor_graph(graph)
    assert forney.incident == tuple(scopes)
    assert forney.edges.tolist() == [[0, 1], [1, 2], [2, 3], [2, 3]]
    assert [r.node for r in forney.readouts] == [0, 1, 2, 2]


def test_the_given_mode_becomes_zeros():
    model = generators.grid(3, 4, seed=3)
    good = reference.sample(model, 400, seed=2)
    best = good[model.log_weight(good).argmax()]
    around = convert.from_pairwise(model, mode=best)
    zero = np.zeros(around.num_edges, dtype=int)
    assert around.log_weight(zero) > convert.from_pairwise(model, mode=1 - best).log_weight(zero)


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


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
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
    ],
)
def test_bad_input_is_refused(make, error, words):
    with pytest.raises(error) as info:
        make()
    assert words in str(info.value)
