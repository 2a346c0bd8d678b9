"""Joint probabilities of a few variables equal enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import spinbench
from spinbench.errors import IntractableError, ModelError
from spinbench.inference.maximising import joint
from spinbench.models import FactorGraph, PairwiseModel, generators, to_factor_graph
from spinbench.models.evidence import condition


def enumerate_joint(model, variables):
    graph = to_factor_graph(model)
    states = np.array(list(itertools.product(*map(range, graph.cardinalities))))
    weights = np.exp(graph.log_weight(states))
    table = np.zeros([graph.cardinalities[v] for v in variables])
    np.add.at(table, tuple(states[:, v] for v in variables), weights / weights.sum())
    return table


@given(st.integers(0, 2**32), st.lists(st.integers(1, 3), min_size=1, max_size=6), st.booleans())
def test_random_models(seed, cards, with_zeros):
    rng = np.random.default_rng(seed)
    factors = []
    for _ in range(rng.integers(0, 7)):
        scope = rng.choice(len(cards), size=rng.integers(1, min(len(cards), 3) + 1), replace=False).tolist()
        table = rng.normal(size=[cards[v] for v in scope])
        if with_zeros and table.size > 1:
            table.flat[rng.integers(table.size)] = -np.inf
        factors.append((scope, table))
    model = FactorGraph.from_log_tables(cards, factors)
    states = np.array(list(itertools.product(*map(range, cards))))
    assume(np.isfinite(model.log_weight(states)).any())
    variables = rng.permutation(len(cards))[: rng.integers(1, len(cards) + 1)].tolist()
    expected, found = enumerate_joint(model, variables), spinbench.joint(model, variables)
    np.testing.assert_allclose(found.probabilities, expected, atol=1e-13)
    best, probability = next(found.most_probable())
    assert probability == pytest.approx(expected.max())
    assert expected[tuple(best.values())] == pytest.approx(expected.max())
    with np.errstate(invalid="ignore"):
        conditional = expected / expected.sum(axis=tuple(range(1, len(variables))), keepdims=True)
    np.testing.assert_allclose(found.conditional(variables[0]), conditional, atol=1e-12)


def test_binary_pairwise_models_with_evidence_by_names():
    model = generators.grid(3, 3, 0.7, 0.7, seed=1)
    expected = enumerate_joint(model, [0, 4])
    np.testing.assert_allclose(spinbench.joint(model, [0, 4]).probabilities, expected, atol=1e-13)
    three = enumerate_joint(model, [0, 4, 8])[:, :, 1]
    observed = spinbench.joint(condition(model, {8: 1}), [4, 8, 0]).probabilities
    np.testing.assert_allclose(observed[:, 1], three.T / three.sum(), atol=1e-13)
    assert (observed[:, 0] == 0).all()
    named = FactorGraph.from_log_tables(
        [2, 2], [([0, 1], [[0.0, 1.0], [2.0, 0.5]])], labels=["a", "b"], state_names={"a": ("yes", "no")}
    )
    table = spinbench.joint(named, ["b", "a"])
    assert next(state for state, _ in table.most_probable()) == {"b": 0, "a": "no"}
    assert table.states == ((0, 1), ("yes", "no"))


def test_members_of_groups_and_a_model_that_evidence_determines():
    model = PairwiseModel.from_edges([0.3, 1.0, -0.5, 0.2], [(0, 3)], [0.8], groups=[(0, 1, 2)])
    expected = enumerate_joint(model, [1, 3, 0])
    np.testing.assert_allclose(spinbench.joint(model, [1, 3, 0]).probabilities, expected, atol=1e-13)
    given_one = spinbench.joint(condition(model, {1: 1}), [0, 2, 3]).probabilities
    np.testing.assert_allclose(given_one[0, 0], enumerate_joint(model, [1, 3])[1] / expected[1].sum(), atol=1e-13)
    solved = condition(model, {1: 1, 3: 0})
    assert spinbench.joint(solved, [3, 0]).probabilities.tolist() == [[1.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ([], "0 variables of 1 states were given"),
        ([0, 0], "2 variables of 4 states were given"),
        (0, "variables=0 was given; a list of labels or numbers is needed"),
        ([[0]], "no variable is named"),
        ([99], "no variable is named 99; there are 0, 1, 2"),
        (list(range(25)), "25 variables of 33554432 states were given"),
    ],
)
def test_refusals(variables, message):
    with pytest.raises(ModelError, match=message):
        spinbench.joint(generators.grid(5, 5, 0.5, 0.5, seed=0), variables)
    with pytest.raises(ModelError, match="7 was given; the variables are 0, 1"):
        spinbench.joint(generators.grid(5, 5, 0.5, 0.5, seed=0), [0, 1]).conditional(7)


def test_where_elimination_is_too_wide_states_are_solved_one_by_one():
    rng = np.random.default_rng(0)
    pairs = list(itertools.combinations(range(60), 2))
    # Exchangeable but for one variable.
    factors = [(pair, [[0.0, 0.0], [0.0, 0.02]]) for pair in pairs] + [([0], rng.normal(size=2))]
    model = FactorGraph.from_log_tables([2] * 60, factors)
    table = spinbench.joint(model, [0, 7]).probabilities
    marginals = spinbench.exact(model).marginals
    assert table.sum(axis=1)[1] == pytest.approx(marginals[0], abs=1e-9)
    assert table.sum(axis=0)[1] == pytest.approx(marginals[7], abs=1e-9)


def test_a_wide_model_without_possible_states_is_refused(monkeypatch):
    def refuse(*arguments, **options):
        raise IntractableError("too wide")

    monkeypatch.setattr(joint.reference, "pairs", refuse)
    equal = np.where(np.eye(2, dtype=bool), 0.0, -np.inf)
    model = FactorGraph.from_log_tables([2, 2], [([0, 1], equal), ([0, 1], equal[::-1])])
    with pytest.raises(ModelError, match="no state has positive weight, so Z = 0"):
        spinbench.joint(model, [0])
