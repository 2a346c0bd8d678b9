"""Conversions, evidence and what falls away keep log Z and the marginals of the variables that were given."""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_models import enumerate_all, graph, grouped, pairwise

import spinbench
from spinbench import reference
from spinbench.errors import ModelError
from spinbench.models import (
    FactorGraph,
    Model,
    PairwiseModel,
    condition,
    generators,
    simplify,
    to_factor_graph,
    to_pairwise,
)

RAIN = FactorGraph.from_tables(
    (2, 3), [((0,), [0.8, 0.2]), ((0, 1), [[0.6, 0.3, 0.1], [0.0, 0.4, 0.6]])], labels=("rain", "clouds")
)
seeds = st.integers(0, 2**32 - 1)


def all_states(model: Model) -> np.ndarray:
    return np.array(list(itertools.product(*map(range, model.cardinalities))))


def columns(values: Any) -> list[np.ndarray]:
    """(K,) of each variable."""
    return [np.array([1 - p, p]) for p in values] if isinstance(values, np.ndarray) else list(values)


def answers(model: Model) -> tuple[float, list[np.ndarray]]:
    """log Z and the marginals of the variables that were given, by enumeration."""
    log_z, marginals = enumerate_all(model)
    layout = np.array([p[1] for p in marginals]) if isinstance(model, PairwiseModel) else marginals
    return log_z, columns(model.original_marginals(layout))


def condition_by_hand(model: Model, evidence: dict[int, Any]) -> tuple[float, list[np.ndarray]]:
    """log Z and all marginals of p* times the likelihoods, of which a state is one."""
    states = all_states(model)
    weights = np.exp(model.log_weight(states))
    for v, values in evidence.items():
        likelihood = np.eye(model.cardinalities[v])[values] if np.ndim(values) == 0 else np.asarray(values)
        weights = weights * likelihood[states[:, v]]
    with np.errstate(divide="ignore", invalid="ignore"):
        marginals = [np.bincount(states[:, v], weights, minlength=k) for v, k in enumerate(model.cardinalities)]
        return float(np.log(weights.sum())), [p / weights.sum() for p in marginals]


def assert_same(derived: Model, expected: tuple[float, list[np.ndarray]]) -> None:
    log_z, marginals = answers(derived)
    assert log_z == pytest.approx(expected[0], abs=1e-9)
    for p, right in zip(marginals, expected[1], strict=True):
        if not np.isnan(p).all():  # variables that were summed out together have no marginals of their own
            np.testing.assert_allclose(p, right, atol=1e-9)


def binary_graph(seed: int) -> FactorGraph:
    rng = np.random.default_rng(seed)
    scopes = [rng.permutation(5)[: rng.integers(0, 3)] for _ in range(10)]
    return FactorGraph.from_log_tables([2] * 5, [(scope, 2 * rng.normal(size=[2] * len(scope))) for scope in scopes])


def many_states(seed: int, zeros: float = 0.0, order: int = 2) -> FactorGraph:
    rng = np.random.default_rng(seed)
    return graph(rng, int(rng.integers(1, 5)), 8, zeros, order, 2.0)


def states_ruled_out(seed: int) -> FactorGraph:
    """By zeros of single variables, which need no infinite coupling."""
    rng, base = np.random.default_rng(seed), many_states(seed)
    masks = [np.where(np.arange(k) < rng.integers(0, k), -np.inf, 0.0) for k in base.cardinalities]
    factors = [*((f.scope, f.log_table) for f in base.factors), *(((v,), mask) for v, mask in enumerate(masks))]
    return FactorGraph.from_log_tables(base.cardinalities, factors)


def network(seed: int, n: int = 8, zeros: float = 0.3) -> FactorGraph:
    """Tables p(x_v | parents) of variables of 1 to 4 states, some of them deterministic, in any order."""
    rng = np.random.default_rng(seed)
    cards = rng.integers(1, 5, n)
    factors = []
    for v in rng.permutation(n).tolist():
        parents = rng.permutation(v)[: int(rng.integers(0, 4))].tolist() if v else []
        table = rng.dirichlet(np.ones(cards[v]), size=[cards[u] for u in parents])
        if rng.random() < zeros:
            table = np.eye(cards[v])[rng.integers(0, cards[v], size=table.shape[:-1])]
        turn = rng.permutation(len(parents) + 1).tolist()
        scope = [*parents, v]
        factors.append(([scope[k] for k in turn], table.transpose(turn)))
    return FactorGraph.from_tables(cards.tolist(), factors, name="network")


def network_with_evidence(seed: int) -> FactorGraph:
    model, rng = network(seed), np.random.default_rng(seed)
    picked = rng.permutation(model.num_variables)[: int(rng.integers(0, 3))].tolist()
    with contextlib.suppress(ModelError):
        return condition(model, {v: int(rng.integers(model.cardinalities[v])) for v in picked})
    return model


def couplings(seed: int) -> PairwiseModel:
    return pairwise(np.random.default_rng(seed), 5, 0.6, 2.0)


PATHS = {
    "couplings as factors": (couplings, to_factor_graph),
    "and back": (couplings, lambda model: to_pairwise(to_factor_graph(model))),
    "factors as couplings": (binary_graph, lambda model: to_pairwise(model, one_of_k=False)),
    "one of K": (many_states, to_pairwise),
    "states ruled out": (states_ruled_out, to_pairwise),
    "groups as factors": (many_states, lambda model: to_factor_graph(to_pairwise(model))),
    "simplified network": (network_with_evidence, simplify),
    "simplified network, most": (network_with_evidence, lambda model: simplify(model, 99)),
    "simplified factors": (lambda seed: many_states(seed, 0.25, 4), simplify),
    "simplified factors, most": (lambda seed: many_states(seed, 0.25, 4), lambda model: simplify(model, 99)),
    "simplified, one of K": (states_ruled_out, lambda model: to_pairwise(simplify(model))),
}


@pytest.mark.parametrize("path", PATHS)
@given(seeds)
@settings(max_examples=40)
def test_conversions_keep_log_z_and_marginals(path: str, seed: int) -> None:
    make, convert = PATHS[path]
    model = make(seed)
    derived = convert(model)
    assert_same(derived, answers(model))
    left = convert(derived) if "simplified" in path else derived
    assert left is derived or not (derived.num_edges or derived.groups)


@pytest.mark.parametrize("path", ["simplified network", "simplified factors"])
@given(seeds)
@settings(max_examples=12)
def test_exact_tells_of_what_fell_away(path: str, seed: int) -> None:
    model = PATHS[path][0](seed)
    result = spinbench.run(model, "exact", "numpy", pairs=True, draws=50)
    log_z, marginals = answers(model)
    assert result.log_z == pytest.approx(log_z, abs=1e-9)
    for p, right in zip(columns(result.marginals), marginals, strict=True):
        np.testing.assert_allclose(p, right, atol=1e-9)
    states = result.draws[0].T if model.origin is None else model.origin.lower(result.draws[0].T)
    assert np.isfinite(model.log_weight(states)).all()
    if result.pairs is not None:  # unless a constant factor fell away
        for table, right in zip(result.pairs, reference.pairs(model), strict=True):
            np.testing.assert_allclose(table, right, atol=1e-9)


def test_draws_have_the_law_of_the_model() -> None:
    model = condition(network(56, n=7), {6: 0})
    left = simplify(model, 99)
    assert any(len(each.parents) > 1 for each in left.origin.conditionals)
    draws = model.origin.lower(left.origin.lift(reference.sample(left, 40_000, seed=2), seed=3))
    p = np.exp(model.log_weight(all_states(model)))
    p /= p.sum()
    place = np.ravel_multi_index(draws.T, model.cardinalities)
    frequencies = np.bincount(place, minlength=len(p)) / len(draws)
    assert not frequencies[p == 0].any()
    possible = p > 0
    z = (frequencies - p)[possible] / np.sqrt(p * (1 - p) / len(draws))[possible]
    assert np.abs(z).max() < 5


def random_evidence(rng: np.random.Generator, model: Model) -> dict[int, Any]:
    """States and likelihoods of some variables in turn."""
    picked = rng.permutation(model.num_variables)[: rng.integers(1, 5)].tolist()
    evidence: dict[int, Any] = {v: rng.exponential(size=model.cardinalities[v]) for v in picked}
    for v in picked[rng.integers(2) :: 2]:
        evidence[v] = int(rng.integers(model.cardinalities[v]))
    return evidence


MAKERS = {
    "couplings": couplings,
    "grouped": lambda seed: grouped(np.random.default_rng(seed)),
    "factors": lambda seed: many_states(seed, 0.0, 3),
    "factors with zeros": lambda seed: many_states(seed, 0.3, 3),
}


@pytest.mark.parametrize("make", MAKERS)
@given(seeds)
@settings(max_examples=40)
def test_evidence_multiplies_the_law(make: str, seed: int) -> None:
    model = MAKERS[make](seed)
    evidence = random_evidence(np.random.default_rng(seed), model)
    before = model.content_hash
    expected = condition_by_hand(model, evidence)
    if expected[0] == -np.inf:
        # arc consistency is complete on acyclic graphs only, so a model of weight zero may pass
        with contextlib.suppress(ModelError):
            reduced = condition(model, evidence)
            assert reduced.log_weight(all_states(reduced)).max() == -np.inf
        return
    reduced = condition(model, evidence)
    assert_same(reduced, expected)
    assert condition(model, evidence).content_hash == reduced.content_hash
    assert model.content_hash == before
    states = {v for v, value in evidence.items() if np.ndim(value) == 0}
    assert not states or states.isdisjoint(reduced.origin.free.tolist())


@given(seeds)
@settings(max_examples=40)
def test_evidence_twice_then_one_of_k_then_evidence_on_a_unit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cards = [3, 2, 4, 2]
    scopes = [rng.permutation(4)[: rng.integers(0, 3)].tolist() for _ in range(8)]
    model = FactorGraph.from_log_tables(cards, [(s, 2 * rng.normal(size=[cards[v] for v in s])) for s in scopes])
    once = condition(condition(model, {1: 1}), {2: 0})  # variable 3 of the original
    units = to_pairwise(once)
    assert_same(units, condition_by_hand(model, {1: 1, 3: 0}))
    for state, evidence in ((1, 1), (0, [1, 0, 1])):
        assert_same(condition(units, {1: state}), condition_by_hand(model, {1: 1, 3: 0, 0: evidence}))


def test_evidence_follows_from_groups() -> None:
    model = PairwiseModel.from_edges([1.0, 2.0, 3.0], [], [], groups=[(0, 1, 2)])
    reduced = condition(model, {0: 0, 2: 0})
    assert answers(reduced)[0] == pytest.approx(2.0)
    np.testing.assert_array_equal(reduced.original_marginals(np.array([0.5])), [0, 1, 0])


@pytest.mark.parametrize("model", [RAIN, generators.ring(5, seed=1)])
def test_one_possible_state_is_an_observation_with_a_factor(model: Model) -> None:
    values = np.zeros(model.cardinalities[1])
    values[1] = 0.25
    name = "clouds" if model.labels else 1
    soft, hard = condition(model, {name: values}), condition(model, {name: 1})
    assert soft.num_variables == hard.num_variables == model.num_variables - 1
    assert soft.log_constant == pytest.approx(hard.log_constant + np.log(0.25))


def test_labels_name_evidence() -> None:
    reduced = spinbench.load(RAIN, evidence={"clouds": [0.1, 0.0, 0.9], "rain": 1})
    assert (reduced.labels, reduced.origin.labels) == (("clouds",), ("rain", "clouds"))
    assert_same(reduced, condition_by_hand(RAIN, {0: 1, 1: [0.1, 0.0, 0.9]}))
    assert spinbench.exact(reduced, cache=False).marginals.of(1).tolist() == [0, 0, 1]
    assert condition(RAIN, {}) is RAIN
    assert condition(RAIN, {0: 1}).content_hash == condition(RAIN, {"rain": 1}).content_hash
    numbered = replace(RAIN, labels=(1, 2))  # a number is a label there
    assert condition(numbered, {1: 1}).content_hash == condition(RAIN, {"rain": 1}).content_hash
    with pytest.raises(ModelError, match="names variable 0, which is none of the model's labels"):
        condition(numbered, {0: 1})


def test_a_determined_model_keeps_its_constant() -> None:
    model = to_pairwise(FactorGraph.from_tables([2, 1], [((0,), [0.0, 3.0]), ((0, 1), [[5.0], [7.0]])]))
    assert model.num_variables == 1
    log_z, (first, second) = answers(model)
    assert log_z == pytest.approx(np.log(21.0))
    assert (first.tolist(), second.tolist()) == ([0, 1], [1])


def test_potts_stays_sparse_and_an_offset_stays_small() -> None:
    potts = to_pairwise(FactorGraph.from_log_tables([4, 4], [((0, 1), 2.0 * np.eye(4))]))
    assert potts.num_edges == 4
    offset = to_pairwise(FactorGraph.from_log_tables([3, 3], [((0, 1), np.full((3, 3), -50.0))]))
    assert (offset.num_edges, np.abs(offset.biases).max()) == (0, 0)


@given(seeds)
def test_states_come_back_with_their_weights(seed: int) -> None:
    model = many_states(seed)
    units, states = to_pairwise(model), all_states(model)
    if units.origin is not None and max(model.cardinalities) > 1:
        lowered = units.origin.lower(states)
        np.testing.assert_allclose(units.log_weight(lowered), model.log_weight(states), atol=1e-11)
        np.testing.assert_array_equal(units.origin.lift(lowered), states)
    assert [len(group) for group in units.groups] == [k for k in model.cardinalities if k > 2]


def test_marginals_keep_leading_axes() -> None:
    model = to_pairwise(FactorGraph.from_log_tables([3, 2, 1], [((0, 1), np.zeros((3, 2)))]))
    chains = np.random.default_rng(0).random((5, 4))
    restored = model.original_marginals(chains)
    errors = model.origin.diagnostics(chains[0], 0.0)
    expected = (chains[:, :3], np.stack([1 - chains[:, 3], chains[:, 3]], axis=1), np.ones((5, 1)))
    for values, right in zip(restored, expected, strict=True):
        np.testing.assert_array_equal(values, right)
    assert [e.tolist() for e in errors] == [chains[0, :3].tolist(), [chains[0, 3]] * 2, [0.0]]
