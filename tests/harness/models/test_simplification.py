"""What falls away from a model is exact, and comes back in terms of the variables that were given."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_models import grouped, many

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
    to_pairwise,
)
from spinbench.models.simplification import simplified

seeds = st.integers(0, 2**32 - 1)
MODELS = [model for model in many(20, 11) if max(model.cardinalities) > 1]
RAIN = FactorGraph.from_tables(
    (2, 3), [((0,), [0.8, 0.2]), ((0, 1), [[0.6, 0.3, 0.1], [0.0, 0.4, 0.6]])], labels=("rain", "clouds")
)


def random_network(seed: int, n: int = 8, zero: float = 0.3) -> FactorGraph:
    """Tables p(x_v | parents) of variables of 1 to 4 states, some of them deterministic, in any order."""
    rng = np.random.default_rng(seed)
    cards = rng.integers(1, 5, n)
    factors = []
    for v in rng.permutation(n).tolist():
        parents = rng.permutation(v)[: int(rng.integers(0, 4))].tolist() if v else []
        table = rng.dirichlet(np.ones(cards[v]), size=[cards[u] for u in parents])
        if rng.random() < zero:
            table = np.eye(cards[v])[rng.integers(0, cards[v], size=table.shape[:-1])]
        turn = rng.permutation(len(parents) + 1).tolist()
        scope = [*parents, v]
        factors.append(([scope[k] for k in turn], table.transpose(turn)))
    return FactorGraph.from_tables(cards.tolist(), factors, name="network")


def random_factors(seed: int, n: int = 6, zero: float = 0.25) -> FactorGraph:
    """Unrelated tables of orders 0 to 4 over variables of 1 to 4 states: zeros, constants, scopes that come again."""
    rng = np.random.default_rng(seed)
    cards = rng.integers(1, 5, n)
    factors, scope = [], np.zeros(0, dtype=int)
    for _ in range(n + 2):
        again = rng.random() < 0.3
        scope = rng.permutation(scope) if again else rng.permutation(n)[: int(rng.integers(0, 5))]
        table = rng.normal(size=cards[scope]) * 2 * (rng.random() < 0.8)
        dead = rng.random(table.shape) < zero
        factors.append((scope.tolist(), table if dead.all() else np.where(dead, -np.inf, table)))
    return FactorGraph.from_log_tables(cards.tolist(), factors, log_constant=float(rng.normal()), name="factors")


def some_evidence(model: FactorGraph, seed: int) -> FactorGraph:
    rng = np.random.default_rng(seed)
    picked = rng.permutation(model.num_variables)[: int(rng.integers(0, 3))].tolist()
    try:
        return condition(model, {v: int(rng.integers(model.cardinalities[v])) for v in picked})
    except ModelError:
        return model


def answers(model):
    return reference.solve(model, method="enumeration", cache=False)


def columns(values):
    """(K,) of each variable."""
    return [np.array([1 - p, p]) for p in values] if isinstance(values, np.ndarray) else values


@settings(max_examples=60)
@given(seeds, st.sampled_from([random_network, random_factors]))
def test_log_z_and_marginals_stay(seed, make):
    model = some_evidence(make(seed), seed)
    try:
        expected = answers(model)
    except ModelError:
        with pytest.raises(ModelError):
            answers(simplify(model))
        return
    wanted = columns(model.original_marginals(list(expected.marginals)))
    for most in (1, 99):
        left = simplify(model, most)
        found = answers(left)
        assert found.log_z == pytest.approx(expected.log_z, abs=1e-9)
        marginals = columns(left.original_marginals(list(found.marginals)))
        assert len(marginals) == len(wanted)
        for p, q in zip(marginals, wanted, strict=True):
            assert (most > 1 and np.isnan(p).all()) or np.allclose(p, q, atol=1e-9)
        assert simplify(left, most) is left


@settings(max_examples=25)
@given(seeds, st.sampled_from([random_network, random_factors]))
def test_exact_tells_the_same_of_what_is_left(seed, make):
    model = some_evidence(make(seed), seed)
    try:
        expected = answers(model)
    except ModelError:
        return
    found = spinbench.run(model, "exact", "numpy", pairs=True, draws=50)
    assert found.log_z == pytest.approx(expected.log_z, abs=1e-9)
    wanted = columns(model.original_marginals(list(expected.marginals)))
    for p, q in zip(columns(found.marginals), wanted, strict=True):
        np.testing.assert_allclose(p, q, atol=1e-9)
    states = found.draws[0].T if model.origin is None else model.origin.lower(found.draws[0].T)
    assert np.isfinite(model.log_weight(states)).all()
    if found.pairs is not None:  # unless a constant factor fell away
        for table, right in zip(found.pairs, reference.pairs(model), strict=True):
            np.testing.assert_allclose(table, right, atol=1e-9)


def test_draws_have_the_law_of_the_model() -> None:
    network = random_network(56, n=7)
    left = simplify(condition(network, {6: 0}), 99)
    assert any(len(each.given) > 1 for each in left.origin.conditionals)
    states = left.origin.lift(reference.sample(left, 40_000, seed=2), seed=3)
    every = np.array([x for x in itertools.product(*map(range, network.cardinalities)) if x[6] == 0])
    p = np.exp(network.log_weight(every))
    p /= p.sum()
    place = {tuple(x): k for k, x in enumerate(every.tolist())}
    seen = np.bincount([place[tuple(x)] for x in states.tolist()], minlength=len(p)) / len(states)
    assert not seen[p == 0].any()
    possible = p > 0
    z = (seen - p)[possible] / np.sqrt(p * (1 - p) / len(states))[possible]
    assert np.abs(z).max() < 5


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
    found = simplified(model)
    assert found.model.labels == ("a", "b", "c", "d")
    assert [factor.scope for factor in found.model.factors] == [(0, 1), (1, 2), (2, 0), (2, 3)]
    np.testing.assert_array_equal(found.model.factors[2].log_table, soft + soft.T)
    assert found.note == "simplified: 4 of 6 variables, 4 of 8 factors, 9 of 13 states are left"
    assert answers(found.model).log_z == pytest.approx(answers(model).log_z, abs=1e-12)
    assert spinbench.run(model, "exact", "numpy", pairs=True).pairs is not None


def test_what_nothing_falls_away_from_is_left_alone() -> None:
    for name in ("uai14/Grids_12", "uai14/DBN_11", "uai14/Promedus_24", "libdai/testfast", "boltzmann/neural15"):
        model = catalogue.load(name)
        assert simplify(model, 99) is model
        assert simplified(model).note == ""


def test_a_model_without_states_is_refused() -> None:
    crossed = FactorGraph.from_tables([2, 2], [((0, 1), np.eye(2)), ((1, 0), 1 - np.eye(2))], name="crossed")
    with pytest.raises(ModelError, match=r"crossed: the factors over variables \(0, 1\) leave them no state, so Z = 0"):
        simplify(crossed)
    held = FactorGraph.from_tables([2, 2], [((0, 1), np.eye(2)), ((0,), [1, 0]), ((1,), [0, 1])], name="held")
    with pytest.raises(ModelError, match=r"held: factor 0 over \(0, 1\) leaves variable 0 no state"):
        simplify(held)


def test_units_of_one_variable_are_not_summed_out() -> None:
    potts = FactorGraph.from_log_tables([3, 3], [((0, 1), np.eye(3))])
    units = spinbench.models.to_factor_graph(to_pairwise(potts))
    left = simplify(units)
    for p in left.original_marginals(list(answers(left).marginals)):
        np.testing.assert_allclose(p, 1 / 3)


def ring_with_leaves() -> FactorGraph:
    """Four coupled variables; a chain of two leaves, one of them of three states, a copy, and a variable apart."""
    rng = np.random.default_rng(8)
    ring = [((k, (k + 1) % 4), rng.normal(size=(2, 2))) for k in range(4)]
    leaves = [((0, 4), rng.dirichlet(np.ones(3), size=2)), ((4, 5), rng.dirichlet(np.ones(2), size=3))]
    apart = [((6, 2), np.eye(2)), ((7,), [0.3, 0.6])]
    with np.errstate(divide="ignore"):
        given = [(scope, np.log(table)) for scope, table in [*leaves, *apart]]
    return FactorGraph.from_log_tables([2, 2, 2, 2, 3, 2, 2, 2], [*ring, *given], name="ring with leaves")


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_samplers_tell_of_what_fell_away(backend) -> None:
    model = ring_with_leaves()
    expected = answers(model)
    found = spinbench.run(model, "gibbs", backend, 4000, chains=16, seed=3)
    assert found.notes[0] == "simplified: 4 of 8 variables, 4 of 8 factors, 8 of 17 states are left"
    assert found.log_z == pytest.approx(expected.log_z, abs=4 * found.log_z_se)
    for values in (found.marginals, found.marginals_se, found.ess, found.r_hat):
        assert [len(each) for each in values] == list(model.cardinalities)
    for p, se, exact in zip(found.marginals, found.marginals_se, expected.marginals, strict=True):
        assert (np.abs(p - exact) <= 4 * se + 1e-12).all()
    assert found.marginals_se[6] == pytest.approx(found.marginals_se[2])  # a copy
    assert (found.marginals_se[5] < found.marginals_se[4].max()).all()  # what is seen through noise moves less
    assert not found.marginals_se[7].any()
    assert (found.ess[7] == 64_000).all()
    assert (found.ess[5] >= found.ess[0].min()).all()


def test_belief_propagation_tells_of_what_fell_away() -> None:
    model = ring_with_leaves()
    whole = spinbench.run(model, "bp", "numpy", 2000, simplify=False)
    found = spinbench.run(model, "bp", "numpy", 2000)
    assert (found.status, whole.notes) == ("ok", ())
    assert found.log_z == pytest.approx(whole.log_z, abs=1e-6)
    for p, q in zip(found.marginals, whole.marginals, strict=True):
        np.testing.assert_allclose(p, q, atol=1e-6)
    for table, right in zip(found.pairs, whole.pairs, strict=True):
        np.testing.assert_allclose(table, right, atol=1e-6)


def test_a_start_is_of_the_model_as_it_is() -> None:
    model = ring_with_leaves()
    start = np.zeros((8, 4), dtype=np.int8)
    found = spinbench.run(model, "bp", "numpy", 100, start=start)
    assert found.notes == ()


def test_errors_are_carried_on_without_being_made_smaller() -> None:
    rng = np.random.default_rng(0)
    table = rng.dirichlet(np.ones(4), size=3)
    found = rng.dirichlet([5.0, 2.0, 3.0], size=4000)
    carried = conditionals.errors(table, found.std(axis=0))
    moved = conditionals.means(table, found).std(axis=0)
    assert (moved <= carried).all()
    assert (carried <= 3 * moved).all()
    binary = np.stack([1 - found[:, 0], found[:, 0]], axis=1)
    np.testing.assert_allclose(
        conditionals.errors(table[:2], binary.std(axis=0)), (binary @ table[:2]).std(axis=0), rtol=1e-9
    )


def test_bounds_allow_for_the_rounding_of_what_fell_away() -> None:
    """What falls away here has a log Z of thousands, which no bound may be off by the last digits of."""
    rng = np.random.default_rng(2)
    factors = [((v,), rng.normal(size=2) * 1e3) for v in range(60)] + [((60, 61), rng.normal(size=(2, 2)))]
    factors += [((60, 61), rng.normal(size=(2, 2)) * 1e3), ((60, 62), rng.normal(size=(2, 2))), ((62, 61), np.eye(2))]
    model = FactorGraph.from_log_tables([2] * 63, factors)
    found = simplified(model)
    truth = math.fsum(
        [
            *(float(np.logaddexp.reduce(table)) for _, table in factors[:60]),
            answers(
                FactorGraph.from_log_tables(
                    [2] * 3, [([u - 60 for u in scope], table) for scope, table in factors[60:]]
                )
            ).log_z,
        ]
    )
    assert abs(answers(found.model).log_z - truth) <= found.rounding < 1e-8
    lower = spinbench.run(model, "mf", "numpy", 500)
    plain = spinbench.run(found.model, "mf", "numpy", 500, simplify=False)
    assert lower.log_z == pytest.approx(plain.log_z - found.rounding, abs=1e-10)
    assert lower.log_z <= plain.log_z - 0.5 * found.rounding
    upper = spinbench.run(model, "trw", "numpy", 500)
    assert upper.log_z >= truth >= lower.log_z


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
