"""Likelihoods as evidence, against the weights of all states."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from random_models import grouped, many

import spinbench
from spinbench.errors import ModelError
from spinbench.models import FactorGraph, Model, PairwiseModel, condition, generators

MODELS = [model for model in many(20, 11) if max(model.cardinalities) > 1]
RAIN = FactorGraph.from_tables(
    (2, 3), [((0,), [0.8, 0.2]), ((0, 1), [[0.6, 0.3, 0.1], [0.0, 0.4, 0.6]])], labels=("rain", "clouds")
)


def weighed(model: Model, likelihoods: dict[int, Any]) -> tuple[float, list[np.ndarray]]:
    """log Z and all marginals of p* times the likelihoods, by enumeration."""
    states = np.array(list(itertools.product(*map(range, model.cardinalities))))
    weights = np.exp(model.log_weight(states))
    for v, values in likelihoods.items():
        weights = weights * np.asarray(values)[states[:, v]]
    marginals = [np.bincount(states[:, v], weights, minlength=k) for v, k in enumerate(model.cardinalities)]
    return float(np.log(weights.sum())), [p / weights.sum() for p in marginals]


@pytest.mark.parametrize("model", MODELS, ids=range(len(MODELS)))
def test_every_state_is_weighed_by_its_likelihood(model: Model) -> None:
    rng = np.random.default_rng(1)
    free = [v for v, k in enumerate(model.cardinalities) if k > 1][:3]
    likelihoods = {v: rng.exponential(size=model.cardinalities[v]) for v in free}
    exact = spinbench.exact(condition(model, likelihoods), cache=False)
    log_z, marginals = weighed(model, likelihoods)
    assert exact.log_z == pytest.approx(log_z, rel=1e-10, abs=1e-10)
    assert exact.marginals.error_to(marginals) < 1e-10


def test_with_hard_evidence_and_labels() -> None:
    model = spinbench.load(RAIN, evidence={"clouds": [0.1, 0.2, 0.9], "rain": 1})
    log_z, _ = weighed(RAIN, {1: [0.1, 0.2, 0.9], 0: [0, 1]})
    exact = spinbench.exact(model, cache=False)
    assert exact.log_z == pytest.approx(log_z)
    assert exact.marginals.of(0).tolist() == [0, 1]
    assert exact.marginals.of(1) == pytest.approx(np.array([0, 0.08, 0.54]) / 0.62)


@pytest.mark.parametrize("model", [RAIN, generators.ring(5, seed=1)])
def test_one_possible_state_is_an_observation_with_a_factor(model: Model) -> None:
    values = np.zeros(model.cardinalities[1])
    values[1] = 0.25
    name = "clouds" if model.labels else 1
    soft, hard = condition(model, {name: values}), condition(model, {name: 1})
    assert soft.num_variables == hard.num_variables == model.num_variables - 1
    assert soft.log_constant == pytest.approx(hard.log_constant + np.log(0.25))


def test_impossible_states_stay_out() -> None:
    exact = spinbench.exact(condition(RAIN, {"clouds": [1.0, 0.0, 1.0]}), cache=False)
    assert exact.marginals.of(1)[1] == 0
    assert exact.log_z == pytest.approx(np.log(0.8 * 0.7 + 0.2 * 0.6))
    equal = FactorGraph.from_tables((3, 3, 3), [((0, 1), np.eye(3)), ((1, 2), np.eye(3))])
    for contradictory in ({0: [1, 1, 0], 2: 2}, {0: [1, 1, 0], 2: [0, 0, 1]}):
        with pytest.raises(ModelError, match="Z = 0"):
            condition(equal, contradictory)


def test_units_of_a_group_take_likelihoods_too() -> None:
    model = grouped(np.random.default_rng(4))
    log_z, _ = weighed(model, {4: [0.5, 3.0]})
    assert spinbench.exact(condition(model, {4: [0.5, 3.0]}), cache=False).log_z == pytest.approx(log_z)


def test_the_given_model_stays_as_it_was() -> None:
    model = generators.ring(5, seed=1)
    assert isinstance(model, PairwiseModel)
    before = model.biases.copy(), model.content_hash
    other = condition(model, {0: [1.0, 2.0]})
    assert other.content_hash != model.content_hash
    assert (model.biases == before[0]).all()
    assert condition(model, {0: [1.0, 2.0]}).content_hash == other.content_hash


@pytest.mark.parametrize(
    "wrong", [[0.5], [0.5, 0.5], [1, -1, 1], [0, 0, 0], [1, 1, np.inf], ["a", 1, 1], [[1], [1, 2]]]
)
def test_what_are_no_likelihoods_is_refused(wrong: Any) -> None:
    with pytest.raises(ModelError, match=r"evidence gives variable 'clouds' the likelihoods .*; 3 numbers are needed"):
        condition(RAIN, {"clouds": wrong})
