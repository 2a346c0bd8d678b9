"""Conversions against enumeration, constants included."""

from __future__ import annotations

import contextlib
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spinbench.errors import ModelError
from spinbench.models import FactorGraph, PairwiseModel, condition, to_factor_graph, to_pairwise


def all_states(cardinalities):
    """(Π K, N) every state."""
    return np.array(list(itertools.product(*(range(k) for k in cardinalities))), dtype=np.int64)


def log_z(model):
    """log Z."""
    weights = model.log_weight(all_states(model.cardinalities))
    top = weights.max()
    return float(top + np.log(np.exp(weights - top).sum()))


def marginals(model):
    """A list of (K,) arrays."""
    states = all_states(model.cardinalities)
    p = np.exp(model.log_weight(states) - log_z(model))
    return [np.bincount(states[:, v], p, minlength=k) for v, k in enumerate(model.cardinalities)]


seeds = st.integers(0, 2**32 - 1)


def random_pairwise(seed, n=5, density=0.6):
    rng = np.random.default_rng(seed)
    i, j = np.triu_indices(n, 1)
    keep = rng.random(i.size) < density
    return PairwiseModel.from_edges(
        rng.normal(size=n) * 2,
        np.stack([i, j], 1)[keep],
        rng.normal(size=keep.sum()) * 2,
        log_constant=float(rng.normal()),
        name="random",
    )


def random_graph(seed, cards, max_order=2, zero=0.0):
    """Factors of all orders up to the largest, entries zero with the given probability."""
    rng = np.random.default_rng(seed)
    factors = []
    for _ in range(2 * len(cards)):
        order = int(rng.integers(0, min(max_order, len(cards)) + 1))
        scope = rng.permutation(len(cards))[:order]
        table = rng.normal(size=[cards[v] for v in scope]) * 2
        dead = rng.random(table.size) < zero
        dead[rng.integers(table.size)] = False
        factors.append((scope.tolist(), np.where(dead.reshape(table.shape), -np.inf, table)))
    return FactorGraph.from_log_tables(cards, factors, log_constant=float(rng.normal()), name="random")


def assert_same(original, derived):
    """Same log Z, same marginals and same weights state by state."""
    assert log_z(derived) == pytest.approx(log_z(original), abs=1e-10)
    if isinstance(derived, PairwiseModel):
        units = np.array([m[1] for m in marginals(derived)])
        got = derived.original_marginals(units)
    else:
        got = derived.original_marginals(marginals(derived))
    expected = marginals(original)
    if all(k == 2 for k in original.cardinalities):
        np.testing.assert_allclose(got, [m[1] for m in expected], atol=1e-10)
    else:
        for one, other in zip(got, expected, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-10)


@given(seeds)
def test_pairwise_to_factors_and_back(seed):
    model = random_pairwise(seed)
    graph = to_factor_graph(model)
    states = all_states(model.cardinalities)
    np.testing.assert_allclose(graph.log_weight(states), model.log_weight(states), atol=1e-12)
    back = to_pairwise(graph)
    assert back.origin is None
    np.testing.assert_allclose(back.biases, model.biases, atol=1e-12)
    np.testing.assert_array_equal(back.edges, model.edges)
    np.testing.assert_allclose(back.couplings, model.couplings, atol=1e-12)
    assert back.log_constant == pytest.approx(model.log_constant)


@given(seeds)
def test_binary_factors_to_pairwise_keep_every_weight(seed):
    graph = random_graph(seed, [2] * 5)
    model = to_pairwise(graph, one_of_k=False)
    states = all_states(graph.cardinalities)
    np.testing.assert_allclose(model.log_weight(states), graph.log_weight(states), atol=1e-11)
    assert model.groups == ()


@given(seeds, st.lists(st.integers(1, 4), min_size=1, max_size=4))
@settings(max_examples=60)
def test_one_of_k_keeps_log_z_marginals_and_weights(seed, cards):
    graph = random_graph(seed, cards)
    model = to_pairwise(graph)
    assert_same(graph, model)
    states = all_states(cards)
    origin = model.origin
    if origin is not None and max(cards) > 1:
        units = origin.lower(states)
        np.testing.assert_allclose(model.log_weight(units), graph.log_weight(states), atol=1e-11)
        np.testing.assert_array_equal(origin.lift(units), states)
    assert [len(g) for g in model.groups] == [k for k in cards if k > 2]


@given(seeds)
@settings(max_examples=60)
def test_zeros_that_rule_states_out_need_no_infinite_coupling(seed):
    rng = np.random.default_rng(seed)
    cards = [4, 2, 3, 3]
    dead = [rng.permutation(k)[: rng.integers(0, k)] for k in cards]
    masks = [np.where(np.isin(np.arange(k), d), -np.inf, 0.0) for k, d in zip(cards, dead, strict=True)]
    base = random_graph(seed, cards)
    graph = FactorGraph.from_log_tables(
        cards, [(f.scope, f.log_table) for f in base.factors] + [((v,), m) for v, m in enumerate(masks)]
    )
    model = to_pairwise(graph)
    assert np.isfinite(model.couplings).all()
    assert_same(graph, model)


def test_a_determined_model_keeps_its_constant():
    graph = FactorGraph.from_tables([2, 1], [((0,), [0.0, 3.0]), ((0, 1), [[5.0], [7.0]])])
    model = to_pairwise(graph)
    assert model.num_variables == 1
    assert log_z(model) == pytest.approx(np.log(21.0))
    one, two = model.original_marginals(np.array([0.5]))
    np.testing.assert_array_equal(one, [0, 1])
    np.testing.assert_array_equal(two, [1])


def test_potts_stays_sparse_and_an_offset_stays_small():
    potts = to_pairwise(FactorGraph.from_log_tables([4, 4], [((0, 1), 2.0 * np.eye(4))]))
    assert potts.num_edges == 4
    offset = to_pairwise(FactorGraph.from_log_tables([3, 3], [((0, 1), np.full((3, 3), -50.0))]))
    assert offset.num_edges == 0
    assert np.abs(offset.biases).max() == 0


@given(seeds)
@settings(max_examples=20)
def test_groups_become_factors(seed):
    model = to_pairwise(random_graph(seed, [3, 2, 3]))
    graph = to_factor_graph(model)
    assert log_z(graph) == pytest.approx(log_z(model), abs=1e-10)


def test_what_cannot_be_pairwise_is_refused_by_name():
    cubic = FactorGraph.from_log_tables([2] * 3, [((0,), [0, 1]), ((0, 1, 2), np.arange(8.0))], name="cubic")
    with pytest.raises(ModelError, match=r"cubic: factor 1 over variables \(0, 1, 2\) has order 3"):
        to_pairwise(cubic)
    hard = FactorGraph.from_tables([2, 2], [((0,), [1, 2]), ((1, 0), [[1, 0], [1, 1]])], name="hard")
    with pytest.raises(ModelError, match=r"hard: factor 1 .* zeros where finite couplings are needed"):
        to_pairwise(hard)
    potts = FactorGraph.from_log_tables([2, 3], [], name="potts", labels=["x", "colour"])
    with pytest.raises(ModelError, match=r"potts: variable 1 \('colour'\) has 3 possible states; binary"):
        to_pairwise(potts, one_of_k=False)
    with pytest.raises(ModelError, match=r"units \(1, 2, 3\) code one variable of 3 states; binary"):
        to_pairwise(to_pairwise(potts), one_of_k=False)
    wide = PairwiseModel.from_edges(np.zeros(30), [], [], groups=[range(30)])
    with pytest.raises(ModelError, match=r"a group of 30 units has a table of 2\*\*30 entries"):
        to_factor_graph(wide)


def test_a_pairwise_model_and_a_factor_graph_pass_through():
    model = random_pairwise(0)
    assert to_pairwise(model) is model
    graph = to_factor_graph(model)
    assert to_factor_graph(graph) is graph


def constrained(model, evidence):
    """Answers of the model restricted to states that agree with the evidence."""
    states = all_states(model.cardinalities)
    keep = np.all([states[:, v] == k for v, k in evidence.items()], axis=0)
    states, weights = states[keep], model.log_weight(states[keep])
    top = weights.max()
    z = top + np.log(np.exp(weights - top).sum())
    p = np.exp(weights - z)
    return z, [np.bincount(states[:, v], p, minlength=k) for v, k in enumerate(model.cardinalities)]


@given(seeds, st.integers(1, 5))
def test_evidence_on_a_pairwise_model(seed, count):
    model = random_pairwise(seed)
    rng = np.random.default_rng(seed)
    evidence = {int(v): int(rng.integers(2)) for v in rng.permutation(5)[:count]}
    reduced = condition(model, evidence)
    z, expected = constrained(model, evidence)
    assert log_z(reduced) == pytest.approx(z, abs=1e-10)
    units = np.array([m[1] for m in marginals(reduced)])
    np.testing.assert_allclose(reduced.original_marginals(units), [m[1] for m in expected], atol=1e-10)
    assert reduced.origin.free.tolist() == [v for v in range(5) if v not in evidence]
    errors = reduced.origin.diagnostics(np.full(units.size, 0.1), 0.0)
    np.testing.assert_array_equal(errors, [0.0 if v in evidence else 0.1 for v in range(5)])


@given(seeds, st.integers(1, 4), st.sampled_from([0.0, 0.3]))
def test_evidence_on_a_factor_graph(seed, count, zero):
    cards = [2, 3, 1, 4]
    graph = random_graph(seed, cards, max_order=3, zero=zero)
    rng = np.random.default_rng(seed)
    evidence = {int(v): int(rng.integers(cards[v])) for v in rng.permutation(4)[:count]}
    states = all_states(cards)
    agree = np.all([states[:, v] == k for v, k in evidence.items()], axis=0)
    if graph.log_weight(states[agree]).max() == -np.inf:
        # arc consistency is complete on acyclic graphs only, so a model of weight zero may pass
        with contextlib.suppress(ModelError):
            reduced = condition(graph, evidence)
            assert reduced.log_weight(all_states(reduced.cardinalities)).max() == -np.inf
        return
    reduced = condition(graph, evidence)
    z, expected = constrained(graph, evidence)
    assert log_z(reduced) == pytest.approx(z, abs=1e-10)
    got = reduced.original_marginals(marginals(reduced))
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)
    free = [v for v in range(4) if v not in evidence]
    assert reduced.cardinalities == (tuple(cards[v] for v in free) or (1,))


@given(seeds)
@settings(max_examples=40)
def test_evidence_twice_then_one_of_k_then_evidence_on_a_unit(seed):
    cards = [3, 2, 4, 2]
    graph = random_graph(seed, cards)
    once = condition(condition(graph, {1: 1}), {2: 0})  # variable 3 of the original
    model = to_pairwise(once)
    z, expected = constrained(graph, {1: 1, 3: 0})
    assert log_z(model) == pytest.approx(z, abs=1e-10)
    units = np.array([m[1] for m in marginals(model)])
    for one, other in zip(model.original_marginals(units), expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)
    for unit, state, event in ((1, 1, {0: 1}), (1, 0, None)):
        clamped = condition(model, {unit: state})
        units = np.array([m[1] for m in marginals(clamped)])
        got = clamped.original_marginals(units)
        if event:
            z, wanted = constrained(graph, {1: 1, 3: 0} | event)
            assert log_z(clamped) == pytest.approx(z, abs=1e-10)
        else:
            p = expected[0] * [1, 0, 1]
            wanted = [p / p.sum(), None, None, None]
        for one, other in zip(got, wanted, strict=True):
            if other is not None:
                np.testing.assert_allclose(one, other, atol=1e-10)


def test_evidence_follows_from_groups():
    model = PairwiseModel.from_edges([1.0, 2.0, 3.0], [], [], groups=[(0, 1, 2)])
    reduced = condition(model, {0: 0, 2: 0})
    assert log_z(reduced) == pytest.approx(2.0)
    np.testing.assert_array_equal(reduced.original_marginals(np.array([0.5])), [0, 1, 0])
    for evidence in ({0: 1, 1: 1}, {0: 0, 1: 0, 2: 0}):
        with pytest.raises(ModelError, match="contradictory, for exactly one of the units"):
            condition(model, evidence)


def test_marginals_keep_leading_axes():
    model = to_pairwise(FactorGraph.from_log_tables([3, 2, 1], [((0, 1), np.zeros((3, 2)))]))
    chains = np.random.default_rng(0).random((5, 4))
    got = model.original_marginals(chains)
    np.testing.assert_array_equal(got[0], chains[:, :3])
    np.testing.assert_array_equal(got[1], np.stack([1 - chains[:, 3], chains[:, 3]], axis=1))
    np.testing.assert_array_equal(got[2], np.ones((5, 1)))
    errors = model.origin.diagnostics(chains[0], 0.0)
    np.testing.assert_array_equal(errors[1], chains[0, [3, 3]])
    np.testing.assert_array_equal(errors[2], [0.0])


def test_labels_name_evidence():
    model = PairwiseModel.from_edges([1.0, 2.0], [[0, 1]], [0.5], labels=["a", "b"], name="toy")
    reduced = condition(model, {"b": 1})
    assert reduced.labels == ("a",)
    assert reduced.origin.labels == ("a", "b")
    assert reduced.log_weight([1]) == pytest.approx(3.5)
    with pytest.raises(ModelError, match="toy: evidence names variable 'c'"):
        condition(model, {"c": 1})


def test_no_evidence_changes_nothing():
    model = random_pairwise(1)
    assert condition(model, {}) is model


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        ({7: 0}, "evidence names variable 7; variables are 0..2"),
        ({-1: 0}, "evidence names variable -1"),
        ({0: 2}, "evidence sets variable 0 to 2; its states are 0..1"),
        ({0: -1}, "evidence sets variable 0 to -1"),
        ({0: 0.5}, "the observed state of variable 0 is 0.5; an integer is needed"),
        ({"x": 0}, "a variable of the evidence is 'x'; an integer is needed"),
        ({1: 0}, "contradictory, for factor 0 over variables (1,) is zero"),
        ({0: 0, 2: 1}, "contradictory, for the zeros of the factors allow no state"),
    ],
)
def test_bad_evidence_is_refused(evidence, words):
    equal = np.eye(2)
    factors = [((0, 1), equal), ((1, 2), equal)]
    if 1 in evidence:
        factors.insert(0, ((1,), [0, 1]))
    graph = FactorGraph.from_tables([2, 2, 2], factors)
    with pytest.raises(ModelError) as info:
        condition(graph, evidence)
    assert words in str(info.value)
