"""Both kinds of models: log weights, canonical form, hashes, read-only copies; which states zeros leave possible."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinbench.errors import ModelError
from spinbench.models import FactorGraph, PairwiseModel, generators
from spinbench.models.factor_graph import FactorArrays
from spinbench.models.possible_states import possible_states

seeds = st.integers(0, 2**32 - 1)
cardinalities = st.lists(st.integers(1, 4), min_size=1, max_size=4)


def all_states(cards):
    return np.array(list(itertools.product(*map(range, cards))))


def random_factors(seed, cards):
    rng = np.random.default_rng(seed)
    for _ in range(4):
        scope = rng.permutation(len(cards))[: rng.integers(0, min(3, len(cards)) + 1)]
        yield scope, rng.normal(size=[cards[v] for v in scope])


@given(seeds, cardinalities)
def test_log_weights_are_sums_of_log_tables(seed, cards):
    factors = list(random_factors(seed, cards))
    graph = FactorGraph.from_log_tables(cards, factors, log_constant=0.5)
    states = all_states(cards)
    expected = [0.5 + sum(t[tuple(x[v] for v in s)] for s, t in factors) for x in states]
    np.testing.assert_allclose(graph.log_weight(states), expected, atol=1e-12)
    np.testing.assert_allclose(graph.log_weight(states[0]), expected[0], atol=1e-12)


@given(seeds, st.integers(1, 7), st.floats(0, 1))
def test_log_weights_are_quadratic_forms(seed, n, density):
    rng = np.random.default_rng(seed)
    W = np.triu(rng.normal(size=(n, n)) * (rng.random((n, n)) < density), 1)
    W = W + W.T
    a, constant = 3 * rng.normal(size=n), float(rng.normal())
    s = all_states([2] * n).astype(float)
    i, j = np.nonzero(np.triu(W))
    of_spins = PairwiseModel.from_spins(a, np.stack([j, i], axis=1), W[i, j], log_constant=constant)
    model = PairwiseModel.from_dense(a, W, log_constant=constant)
    for each, x in ((model, s), (of_spins, 2 * s - 1)):
        expected = constant + x @ a + 0.5 * np.einsum("ki,ij,kj->k", x, W, x)
        np.testing.assert_allclose(each.log_weight(s), expected, atol=1e-12)
    np.testing.assert_array_equal(model.dense(), W)
    np.testing.assert_array_equal(model.csr().toarray(), W)
    assert model.csr().has_sorted_indices
    np.testing.assert_array_equal(model.degrees, (W != 0).sum(axis=1))


def test_parallel_and_reversed_edges_are_summed_and_sorted():
    model = PairwiseModel.from_edges([0, 0, 0], [[2, 1], [1, 0], [1, 2], [0, 1]], [1.0, 2.0, 4.0, 8.0])
    assert model.edges.tolist() == [[0, 1], [1, 2]]
    assert model.couplings.tolist() == [10.0, 5.0]


def test_a_flat_table_has_its_last_variable_fastest():
    graph = FactorGraph.from_tables([2, 3], [((1, 0), [1, 2, 3, 4, 5, 6])])
    np.testing.assert_allclose(np.exp(graph.log_weight([[1, 0], [0, 2]])), [2, 5])


EDGES, WEIGHTS = np.array([[0, 1], [0, 2], [1, 2]]), np.array([1.0, 2.0, 3.0])
COUPLED = PairwiseModel.from_edges([1, 2, 3], EDGES, WEIGHTS, name="one")
REVERSED = PairwiseModel.from_edges([1, 2, 3], EDGES[::-1, ::-1], WEIGHTS[::-1], name="other", labels="abc")
ZERO = FactorGraph.from_tables([2], [((0,), [0.0, 1.0])], name="a")
LOG_ZERO = FactorGraph.from_log_tables([2], [((0,), [-np.inf, 0.0])], name="b", labels=["v"])


@pytest.mark.parametrize(
    ("model", "same", "others"),
    [
        (
            COUPLED,
            REVERSED,
            [
                PairwiseModel.from_edges([1, 2, 4], EDGES, WEIGHTS),
                PairwiseModel.from_edges([1, 2, 3], EDGES, WEIGHTS + 1e-15 * np.array([0, 1, 0])),
                PairwiseModel.from_edges([1, 2, 3], EDGES, WEIGHTS, log_constant=1.0),
                PairwiseModel.from_edges([1, 2, 3], EDGES, WEIGHTS, groups=[(0, 1)]),
            ],
        ),
        (
            ZERO,
            LOG_ZERO,
            [
                FactorGraph.from_tables([2], [((0,), [1e-300, 1.0])]),
                FactorGraph.from_tables([2, 2], [((0,), [0.0, 1.0])]),
            ],
        ),
    ],
)
def test_hashes_are_of_numbers_and_not_of_names(model, same, others):
    assert model.content_hash == same.content_hash
    assert len({model.content_hash, *(other.content_hash for other in others)}) == 1 + len(others)


def test_zeros_are_seen():
    assert [model.has_zeros for model in (ZERO, LOG_ZERO)] == [True, True]
    assert not FactorGraph.from_tables([2], [((0,), [1e-300, 1.0])]).has_zeros
    assert ZERO.log_weight([0]) == -np.inf


def test_arrays_are_copied_and_read_only():
    given_arrays = [np.zeros(2, dtype=np.float32), np.array([[0, 1]]), np.ones(1, dtype=np.int64), np.ones(2)]
    model = PairwiseModel.from_edges(*given_arrays[:3])
    graph = FactorGraph.from_log_tables([2], [((0,), given_arrays[3])])
    own_arrays = (model.biases, model.edges, model.couplings, graph.factors[0].log_table)
    for array, own_array in zip(given_arrays, own_arrays, strict=True):
        before = own_array.tolist()
        array[0] = 7
        assert own_array.tolist() == before
        with pytest.raises(ValueError, match="read-only"):
            own_array[0] = 1
    assert (model.biases.dtype, model.couplings.dtype) == (np.float64, np.float64)


def test_broken_groups_have_no_weight():
    model = PairwiseModel.from_edges([1.0, 2.0, 4.0], [], [], groups=[(0, 2)])
    states = [[1, 0, 0], [0, 1, 1], [0, 1, 0], [1, 0, 1]]
    assert model.log_weight(states).tolist() == [1.0, 6.0, -np.inf, -np.inf]


def test_one_variable_and_shapes():
    model = PairwiseModel.from_edges([2.0], np.zeros((0, 2), int), [])
    assert model.log_weight([1]).shape == ()
    assert model.log_weight(np.zeros((3, 4, 1))).shape == (3, 4)
    assert (model.cardinalities, model.dense().shape, model.num_edges) == ((2,), (1, 1), 0)


def test_pulls_and_reach_are_sums_of_couplings(monkeypatch):
    monkeypatch.setattr("spinbench.models.pairwise.CHUNK_EDGES", 7)
    model = generators.sherrington_kirkpatrick(12, field=-0.3, seed=1)
    W = model.dense()
    np.testing.assert_allclose(model.pulls, [np.minimum(W, 0).sum(axis=0), np.maximum(W, 0).sum(axis=0)])
    np.testing.assert_allclose(model.reach, np.abs(model.biases) + np.abs(W).sum(axis=0))


@given(seeds)
def test_possible_states_are_exact_on_chains(seed):
    rng = np.random.default_rng(seed)
    cards = rng.integers(1, 5, size=4)
    tables = [rng.random((cards[v], cards[v + 1])) < 0.5 for v in range(3)]
    if not all(t.any() for t in tables):
        return
    graph = FactorGraph.from_tables(cards.tolist(), [((v, v + 1), 1.0 * t) for v, t in enumerate(tables)])
    states = all_states(cards)
    alive = states[graph.log_weight(states) > -np.inf]
    if not len(alive):
        with pytest.raises(ModelError, match="Z = 0"):
            possible_states(graph)
        return
    for v, mask in enumerate(possible_states(graph)):
        assert set(np.flatnonzero(mask)) == set(alive[:, v])


def test_possible_states_never_lose_a_state_on_cycles():
    differ = 1.0 - np.eye(3)
    factors = [((0, 1), differ), ((1, 2), differ), ((0, 2), differ), ((0,), [0, 1, 1])]
    masks = possible_states(FactorGraph.from_tables([3, 3, 3], factors))
    assert [mask.tolist() for mask in masks] == [[False, True, True], [True] * 3, [True] * 3]


@given(seeds, cardinalities)
def test_factors_as_flat_arrays_are_the_factors(seed, cards):
    graph = FactorGraph.from_log_tables(cards, random_factors(seed, cards))
    flat = FactorArrays.of(graph.cardinalities, graph.factors)
    assert FactorArrays.of(graph.cardinalities, flat) is flat
    assert flat.scopes() == [factor.scope for factor in graph.factors]
    tables = [factor.log_table for factor in graph.factors]
    for mine, table in zip(flat, tables, strict=True):
        np.testing.assert_array_equal(mine.log_table, table)
        assert not mine.log_table.flags.writeable
    assert [values.tolist() for values in flat.entry_ranges] == [[t.min() for t in tables], [t.max() for t in tables]]


@pytest.mark.parametrize(("cards", "binary"), [((2, 2), True), ((2, 3), False), ((2, 1), False)])
def test_models_say_whether_all_variables_are_binary(cards, binary):
    assert FactorGraph.from_tables(cards, [((0,), np.ones(2))]).all_binary == binary
    assert COUPLED.all_binary
