"""Exact contraction of Forney models."""

from __future__ import annotations

import numpy as np
import pytest

from spinbench import reference
from spinbench.errors import ModelError, UnsupportedError
from spinbench.mathematics.forney import contract
from spinbench.models import FactorGraph, generators, networks
from spinbench.models.forney import build, convert


def random_forney(rng):
    """Any multigraph: loops, parallel edges, isolated nodes, several components, a few zeros."""
    nodes = int(rng.integers(1, 9))
    edges = rng.integers(0, nodes, (int(rng.integers(0, 11)), 2))
    edges = edges[np.abs(edges[:, 0] - edges[:, 1]) < 4]
    degrees = np.bincount(edges.ravel(), minlength=nodes)
    tables = [np.array(rng.random((2,) * d) + 0.05) for d in degrees]
    if rng.random() < 0.3:
        for table in tables:
            table[rng.random(table.shape) < 0.1] = 0.0
            table.flat[0] = 1.0
    return build.from_tables(edges, tables, log_constant=-0.4)


@pytest.mark.parametrize("limit", [0, 3, 4, 6, 10])
def test_sum_and_marginals_stay(limit, forney_truth):
    shrunk = 0
    for seed in range(20):
        model = random_forney(np.random.default_rng(seed))
        small = contract(model, limit, attempts=3)
        log_z, marginals = forney_truth(model)
        found, read = forney_truth(small)
        assert found == pytest.approx(log_z, rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(read, marginals, atol=1e-12)
        if small.num_nodes:
            assert small.degrees.min() > 2
            assert small.degrees.max() <= max(limit, model.degrees.max())
        shrunk += small.num_edges < model.num_edges
    assert shrunk > 12


def test_marginals_of_a_pairwise_model_survive_conversion_relabelling_and_contraction(forney_truth):
    model = generators.grid(3, 4, seed=2)
    exact = reference.solve(model, cache=False).probabilities
    forney = convert.to_forney(model)
    flips = np.random.default_rng(0).integers(0, 2, forney.num_edges)
    for limit in (2, 4, 5):
        small = contract(forney.relabel(flips), limit)
        assert small.num_edges <= 14
        np.testing.assert_allclose(forney_truth(small)[1], exact, atol=1e-11)


@pytest.mark.parametrize(
    "graph",
    [
        networks.gauge_grid(1, 9),
        networks.gauge_cycle(7),
        FactorGraph.from_tables([2] * 3, [((0, 1, 2), np.ones((2, 2, 2))), ((0, 1, 2), np.full((2, 2, 2), 3.0))]),
    ],
)
def test_lines_cycles_and_pairs_of_nodes_vanish(graph):
    # the last one has degree 3 at both nodes, whose merging leaves no edge
    limit = 3 if graph.num_variables == 3 else 0
    small = contract(convert.from_factor_graph(graph), limit)
    assert (small.num_nodes, small.num_edges) == (0, 0)
    assert small.log_constant == pytest.approx(reference.solve(graph, cache=False).log_z, abs=1e-12)


def test_higher_limits_leave_fewer_edges():
    model = convert.to_forney(networks.gauge_grid(8, 8))
    edges = [contract(model, limit).num_edges for limit in (2, 4, 6, 8)]
    assert edges == sorted(edges, reverse=True)
    assert edges[2] < 0.5 * model.num_edges
    assert contract(model, 6, seed=1).content_hash == contract(model, 6, seed=1).content_hash


def test_nodes_beyond_the_limit_stay_as_they_are():
    model = convert.to_forney(networks.gauge_complete(6))
    assert contract(model, 4).degrees.tolist() == [5] * 6


def test_weights_far_apart_do_not_underflow():
    chain = [[0.0, -900.0], [[0.0, -900.0], [-900.0, -1800.0]], [-900.0, 0.0]]
    model = build.from_log_tables([(0, 1), (1, 2)], chain)
    small = contract(model)
    assert small.log_constant == pytest.approx(reference.forney_log_z(model), abs=1e-9)
    assert small.log_constant == pytest.approx(-900 + np.log(2), abs=1e-9)


@pytest.mark.parametrize(
    ("kwargs", "error", "words"),
    [
        (
            {"degree_limit": 11},
            UnsupportedError,
            "merged up to degree 11; tables have 2**degree entries and at most 10",
        ),
        ({"degree_limit": -1}, ModelError, "degree_limit = -1"),
        ({"attempts": 0}, ModelError, "attempts = 0"),
    ],
)
def test_bad_limits_are_refused(kwargs, error, words):
    with pytest.raises(error) as info:
        contract(convert.to_forney(networks.gauge_complete(4)), **kwargs)
    assert words in str(info.value)


def test_a_contradiction_is_found():
    model = build.from_tables([(0, 1)], [[1.0, 0.0], [0.0, 1.0]])
    with pytest.raises(ModelError, match="Z = 0"):
        contract(model)
