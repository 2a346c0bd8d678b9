"""Flat tables say the same as the model, state by state."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
import random_models

from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.models import FactorGraph, Model, PairwiseModel, to_factor_graph


def models() -> list[Model]:
    rng = np.random.default_rng(5)
    found: list[Model] = [random_models.graph(rng, 5, 9, zeros) for zeros in (0.0, 0.2) for _ in range(10)]
    found += [random_models.pairwise(rng, 6, 0.5, 1.0), random_models.grouped(rng)]
    found += [FactorGraph.from_log_tables([2, 3], [], log_constant=0.5)]
    found += [
        FactorGraph.from_log_tables([2, 3], [([1, 0], np.arange(6.0)), ([0, 1], np.arange(6.0)), ([1], [1, 2, 3])])
    ]
    return found


def states(model: Model) -> np.ndarray:
    """(N, M) all states."""
    return np.array(list(itertools.product(*map(range, to_factor_graph(model).cardinalities)))).T


@pytest.mark.parametrize("absorb", [True, False])
@pytest.mark.parametrize("model", models(), ids=lambda model: model.content_hash[:6])
def test_every_state_has_its_weight(model: Model, absorb: bool) -> None:
    tables, x = factor_tables(model, absorb), states(model)
    found = tables.log_constant + tables.values[tables.positions(x)].sum(axis=0)
    np.testing.assert_allclose(found, to_factor_graph(model).log_weight(x.T), rtol=0, atol=1e-12)


def test_many_couplings_take_little_time() -> None:
    edges = np.array(list(itertools.combinations(range(250), 2)))
    model = PairwiseModel.from_edges(np.ones(250), edges, np.ones(len(edges)))
    since = time.process_time()
    factor_tables(model)
    assert time.process_time() - since < 0.4  # .01; a table for each of them took 1.8
