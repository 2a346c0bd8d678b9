"""Pair beliefs of belief propagation: exact on trees, sums that agree with the marginals on loops."""

from __future__ import annotations

import numpy as np
import pytest
import random_models

import spinbench
from spinbench import reference
from spinbench.models import PairwiseModel, generators

BACKENDS = ["numpy", "numba", "jax"]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("zeros", [0.0, 0.4])
def test_factors_of_trees(backend: str, zeros: float) -> None:
    for seed in range(4):
        model = random_models.tree(np.random.default_rng(seed), 5, zeros)
        result = spinbench.run(model, "bp", backend, 100)
        assert result.status == "ok"
        for found, expected in zip(result.pairs, reference.pairs(model), strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("backend", BACKENDS)
def test_edges_of_trees(backend: str) -> None:
    model = generators.tree(20, seed=3)
    np.testing.assert_allclose(spinbench.run(model, "bp", backend, 100).pairs, reference.pairs(model), atol=1e-8)
    grouped = PairwiseModel.from_edges(
        [0.3, 0.1, -1.0, 0.2, 0.7], [[0, 1], [0, 4], [1, 4], [2, 3], [3, 4]], [1.0, 0.7, -2.0, 0.0, 0.4],
        groups=[(0, 1, 2), (3,)],
    )  # fmt: skip
    found = spinbench.run(grouped, "bp", backend, 100).pairs
    np.testing.assert_allclose(found, reference.pairs(grouped), atol=1e-8)


def test_sums_agree_with_the_marginals_on_loops() -> None:
    model = generators.grid(5, 5, seed=2)
    result = spinbench.run(model, "bp", "numba", 1000)
    assert result.status == "ok"
    p, both = result.marginals[model.edges], result.pairs
    assert (both <= p.min(axis=1) + 1e-9).all()
    assert (both >= p.sum(axis=1) - 1 - 1e-9).all()
    graph = spinbench.models.to_factor_graph(model)
    tables = spinbench.run(graph, "bp", "numba", 1000).pairs
    marginals = spinbench.run(graph, "bp", "numba", 1000).marginals
    for factor, table in zip(graph.factors, tables, strict=True):
        shaped = table.reshape(factor.log_table.shape)
        for axis, v in enumerate(factor.scope):
            sums = shaped.sum(axis=tuple(k for k in range(shaped.ndim) if k != axis))
            assert sums[1] == pytest.approx(marginals[v], abs=1e-7)


def test_messages_that_still_move_give_none() -> None:
    model = generators.complete(10, seed=2)
    assert spinbench.run(model, "bp", "numba", 1).pairs is None
    assert spinbench.run(model, "bp", "numba", 1).marginals is not None
    assert all(point.estimate.pairs is None for point in spinbench.run(generators.tree(9), "bp", "numba").trajectory)
