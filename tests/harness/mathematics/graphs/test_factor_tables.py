"""Flat tables and lowered models stand for the same law as the model; index tables reach every message."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
import random_models
from random_models import enumerate_all, graph, grouped, many

from spinbench.mathematics.graphs import message_layouts as layouts
from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.mathematics.graphs.feasible_starts import feasible_states
from spinbench.mathematics.graphs.lowering import lower
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


def log_weights(lowered: layouts.Graph) -> tuple[np.ndarray, np.ndarray]:
    """All states (M, n) of a lowered model and their log weights."""
    cards = lowered.cardinalities.tolist()
    states = np.array(list(itertools.product(*(range(k) for k in cards))), dtype=np.int64)
    fields = [np.append(0.0, part) for part in np.split(lowered.theta, lowered.first[1:])] if cards else []
    total = np.full(len(states), float(lowered.constant))
    for v, field in enumerate(fields):
        total += field[states[:, v]]
    for members, tables in layouts.scopes(lowered).values():
        for scope, table in zip(members, tables, strict=True):
            total += table[tuple(states[:, v] for v in scope)]
    return states, total


@pytest.mark.parametrize("merge", [False, True])
def test_lowering_keeps_the_law(merge: bool) -> None:
    rng = np.random.default_rng(0)
    models: list[Model] = [*many(40, seed=1), grouped(rng), *(graph(rng, 5, 9, 0.5) for _ in range(20))]
    for model in models:
        log_z, exact = enumerate_all(model)
        lowered = lower(model, merge=merge)
        assert (lowered.cardinalities >= 2).all()
        states, weights = log_weights(lowered)
        assert np.logaddexp.reduce(weights) == pytest.approx(log_z, abs=1e-9)
        p = np.exp(weights - log_z)
        cards = lowered.cardinalities
        flat = [np.bincount(states[:, v], weights=p, minlength=k) for v, k in enumerate(cards)]
        found = layouts.marginals(lowered, model, np.concatenate([np.zeros(0), *flat]))
        expected = [e[1:] for e in exact] if isinstance(found, np.ndarray) else exact
        np.testing.assert_allclose(np.hstack(list(found)), np.hstack(expected), atol=1e-9)


def test_merging_leaves_no_parallel_factors() -> None:
    tables = [((0, 1), np.arange(4.0)), ((1, 0), [0.0, 5.0, -1.0, 2.0]), ((0, 1), [0.0, -np.inf, 0.0, 0.0])]
    model = FactorGraph.from_log_tables([2, 2], tables)
    lowered = lower(model, merge=True)
    assert len(lowered.pairs.weights) + sum(len(g.log_tables) for g in lowered.groups) == 1
    assert len(lower(model).pairs.weights) == 2


def test_search_finds_allowed_states() -> None:
    rng = np.random.default_rng(4)
    for _ in range(30):
        model = graph(rng, 6, 10, 0.6)
        lowered = lower(model)
        found = feasible_states(lowered, 4, model.name)
        states, weights = log_weights(lowered)
        allowed = {tuple(s) for s, w in zip(states, weights, strict=True) if w > -np.inf}
        assert all(tuple(column) in allowed for column in found.T)
    assert feasible_states(lower(graph(rng, 5, 6, 0.0)), 4, "free").shape[1] == 0
