"""Conversions, evidence and what falls away keep log Z and the marginals of the variables that were given."""

from __future__ import annotations

import contextlib
import itertools
import math
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
    catalogue,
    condition,
    conditionals,
    generators,
    simplify,
    to_factor_graph,
    to_pairwise,
)
from spinbench.models.networks import bayesian_network
from spinbench.models.simplification import compute_simplification
from spinbench.reference.elimination.bucket_tree import BucketTree
from spinbench.reference.problem import Problem

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


def enumerate_states(model):
    return reference.solve(model, method="enumeration", cache=False)


def test_what_falls_away_by_kind() -> None:
    same = np.array([[0.0, -np.inf, -np.inf], [-np.inf, 0.0, 0.3]])
    soft = np.array([[0.0, 1.0], [0.5, 0.2]])
    model = FactorGraph.from_log_tables(
        [2, 2, 2, 3, 2, 2],
        [
            ((0, 1), soft),
            ((1, 2), soft),
            ((2, 0), soft),
            ((0, 2), soft),  # once more
            ((1, 0), np.full((2, 2), 0.25)),  # a constant
            ((2, 3), same),  # over 3 this sums to 1 or more
            ((4,), [0.0, -np.inf]),  # evidence
            ((4, 5), [[0.1, 0.2], [0.3, 0.4]]),  # then a factor of 5 alone, which sums out
        ],
        labels="abcdef",
    )
    simplification = compute_simplification(model)
    assert simplification.model.labels == ("a", "b", "c", "d")
    assert [factor.scope for factor in simplification.model.factors] == [(0, 1), (1, 2), (2, 0), (2, 3)]
    np.testing.assert_array_equal(simplification.model.factors[2].log_table, soft + soft.T)
    assert simplification.note == "simplified: 4 of 6 variables, 4 of 8 factors, 9 of 13 states are left"
    assert enumerate_states(simplification.model).log_z == pytest.approx(enumerate_states(model).log_z, abs=1e-12)
    assert spinbench.run(model, "exact", "numpy", pairs=True).pairs is not None


def test_what_nothing_falls_away_from_is_left_alone() -> None:
    for name in ("uai14/Grids_12", "uai14/DBN_11", "uai14/Promedus_24", "libdai/testfast", "boltzmann/neural15"):
        model = catalogue.load(name)
        assert simplify(model, 99) is model
        assert compute_simplification(model).note == ""


def test_units_of_one_variable_are_not_summed_out() -> None:
    potts = FactorGraph.from_log_tables([3, 3], [((0, 1), np.eye(3))])
    units = spinbench.models.to_factor_graph(to_pairwise(potts))
    left = simplify(units)
    for p in left.original_marginals(list(enumerate_states(left).marginals)):
        np.testing.assert_allclose(p, 1 / 3)


def ring_with_leaves() -> FactorGraph:
    """Four coupled variables; a chain of two leaves, one of them of three states, a copy, and a variable apart."""
    rng = np.random.default_rng(8)
    ring = [((k, (k + 1) % 4), rng.normal(size=(2, 2))) for k in range(4)]
    leaves = [((0, 4), rng.dirichlet(np.ones(3), size=2)), ((4, 5), rng.dirichlet(np.ones(2), size=3))]
    apart = [((6, 2), np.eye(2)), ((7,), [0.3, 0.6])]
    with np.errstate(divide="ignore"):
        log_tables = [(scope, np.log(table)) for scope, table in [*leaves, *apart]]
    return FactorGraph.from_log_tables([2, 2, 2, 2, 3, 2, 2, 2], [*ring, *log_tables], name="ring with leaves")


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_samplers_tell_of_what_fell_away(backend) -> None:
    model = ring_with_leaves()
    expected = enumerate_states(model)
    result = spinbench.run(model, "gibbs", backend, 1000, chains=16, seed=3)
    assert result.notes[0] == "simplified: 4 of 8 variables, 4 of 8 factors, 8 of 17 states are left"
    assert result.log_z == pytest.approx(expected.log_z, abs=4 * result.log_z_se)
    for values in (result.marginals, result.marginals_se, result.ess, result.r_hat):
        assert [len(each) for each in values] == list(model.cardinalities)
    for p, se, exact in zip(result.marginals, result.marginals_se, expected.marginals, strict=True):
        assert (np.abs(p - exact) <= 4 * se + 1e-12).all()
    assert result.marginals_se[6] == pytest.approx(result.marginals_se[2])  # a copy
    assert (result.marginals_se[5] < result.marginals_se[4].max()).all()  # what is seen through noise moves less
    assert not result.marginals_se[7].any()
    assert (result.ess[7] == 16_000).all()
    assert (result.ess[5] >= result.ess[0].min()).all()


def test_belief_propagation_tells_of_what_fell_away() -> None:
    model = ring_with_leaves()
    whole = spinbench.run(model, "bp", "numpy", 2000, simplify=False)
    result = spinbench.run(model, "bp", "numpy", 2000)
    assert (result.status, whole.notes) == ("ok", ())
    assert result.log_z == pytest.approx(whole.log_z, abs=1e-6)
    for p, q in zip(result.marginals, whole.marginals, strict=True):
        np.testing.assert_allclose(p, q, atol=1e-6)
    for table, right in zip(result.pairs, whole.pairs, strict=True):
        np.testing.assert_allclose(table, right, atol=1e-6)
    assert spinbench.run(model, "bp", "numpy", 100, start=np.zeros((8, 4), dtype=np.int8)).notes == ()


def test_errors_are_carried_on_without_being_made_smaller() -> None:
    rng = np.random.default_rng(0)
    table = rng.dirichlet(np.ones(4), size=3)
    samples = rng.dirichlet([5.0, 2.0, 3.0], size=4000)
    carried = conditionals.propagate_errors(table, samples.std(axis=0))
    moved = conditionals.propagate_means(table, samples).std(axis=0)
    assert (moved <= carried).all()
    assert (carried <= 3 * moved).all()
    binary = np.stack([1 - samples[:, 0], samples[:, 0]], axis=1)
    np.testing.assert_allclose(
        conditionals.propagate_errors(table[:2], binary.std(axis=0)), (binary @ table[:2]).std(axis=0), rtol=1e-9
    )


def test_bounds_allow_for_the_rounding_of_what_fell_away() -> None:
    """What falls away here has a log Z of thousands, which no bound may be off by the last digits of."""
    rng = np.random.default_rng(2)
    factors = [((v,), rng.normal(size=2) * 1e3) for v in range(60)] + [((60, 61), rng.normal(size=(2, 2)))]
    factors += [((60, 61), rng.normal(size=(2, 2)) * 1e3), ((60, 62), rng.normal(size=(2, 2))), ((62, 61), np.eye(2))]
    model = FactorGraph.from_log_tables([2] * 63, factors)
    simplification = compute_simplification(model)
    rest = FactorGraph.from_log_tables([2] * 3, [([u - 60 for u in scope], table) for scope, table in factors[60:]])
    truth = math.fsum([*(float(np.logaddexp.reduce(table)) for _, table in factors[:60]), enumerate_states(rest).log_z])
    assert abs(enumerate_states(simplification.model).log_z - truth) <= simplification.rounding < 1e-8
    lower = spinbench.run(model, "mf", "numpy", 500)
    plain = spinbench.run(simplification.model, "mf", "numpy", 500, simplify=False)
    assert lower.log_z == pytest.approx(plain.log_z - simplification.rounding, abs=1e-10)
    assert lower.log_z <= plain.log_z - 0.5 * simplification.rounding
    upper = spinbench.run(model, "trw", "numpy", 500)
    assert upper.log_z >= truth >= lower.log_z


def test_what_was_out_of_reach_is_exact() -> None:
    model = bayesian_network(width=25, seed=1)
    assert BucketTree.build(Problem(model)).memory(marginals=True) > 0.0005 * 2**30
    result = spinbench.exact(model, max_gib=0.0005, cache=False)
    assert result.status == "ok"
    assert "open_marginals" not in result.diagnostics
    assert result.log_z < 0
    assert np.isfinite(result.marginals).all()


NETWORK = FactorGraph.from_tables(
    (2, 3, 2),
    [((0,), [0.3, 0.7]), ((0, 1), [[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]), ((1, 2), [[0.5, 0.5], [0.1, 0.9], [1.0, 0.0]])],
)
FIELDS, COUPLINGS = [0.7, -0.4, 0.2, 1.1, -0.9], [1.5, -2.0, 0.6, 0.8]
APART = PairwiseModel.from_edges(FIELDS, [], [], name="apart")
RING = PairwiseModel.from_edges(FIELDS[:4], [(0, 1), (1, 2), (2, 3), (3, 0)], COUPLINGS, name="ring")
OBSERVED = condition(RING, {0: 1, 1: 0, 2: 1, 3: 1})
PARTED = condition(RING, {0: 1, 2: 1})
DETERMINED = FactorGraph.from_tables(
    (2, 2), [((0,), [1.0, 0.0]), ((0, 1), [[0.0, 3.0], [1.0, 1.0]])], name="determined"
)


ANSWERED = [
    *((method, {}) for method in ("gibbs", "pt", "bp", "mf", "smc", "wmb", "dhmc", "zanella")),
    *((method, {"keep": 5}) for method in ("gibbs", "pt")),
]


@pytest.mark.parametrize(("method", "options"), ANSWERED, ids=str)
@pytest.mark.parametrize("model", [NETWORK, DETERMINED, APART, OBSERVED, PARTED], ids=lambda model: model.name)
def test_what_simplification_solves_is_answered_and_not_sampled(model, method, options):
    exact = spinbench.exact(model, pairs=True)
    result = spinbench.run(model, method, "numpy", 40, **options)
    assert (result.status, result.level, result.log_z_kind, result.log_z_se) == ("ok", "exact", "exact", None)
    assert result.log_z == pytest.approx(exact.log_z, abs=1e-14)
    assert result.marginals.error_to(exact.marginals) < 1e-14
    assert max(np.max(errors) for errors in result.marginals_se) == 0.0
    for table, exact_table in zip(result.pairs, exact.pairs, strict=True):
        np.testing.assert_allclose(table, exact_table, atol=1e-14)
    assert result.notes[0] == "simplified: no variable is left to choose, so that the answer is exact"
    assert result.samples == (40 if options else 1)
    if options:
        assert result.states.shape == (16, 5, len(exact.marginals))
