"""Lowered models stand for the same law; index tables reach every message; the search finds allowed states."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from random_models import enumerate_all, graph, grouped, many

from spinbench.mathematics.graphs import message_layouts as layouts
from spinbench.mathematics.graphs.feasible_starts import feasible_states
from spinbench.mathematics.graphs.lowering import lower
from spinbench.models import FactorGraph, Model


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
