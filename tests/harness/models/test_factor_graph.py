"""FactorGraph: tables, log weights, refusals; which states zeros leave possible."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinbench.errors import ModelError
from spinbench.models import FactorGraph, PairwiseModel, generators, load, save, simplify, to_pairwise
from spinbench.models.factor_graph import Factors
from spinbench.models.possible import check_range, possible_states


def random_factors(seed, cards):
    rng = np.random.default_rng(seed)
    for _ in range(4):
        scope = rng.permutation(len(cards))[: rng.integers(0, min(3, len(cards)) + 1)]
        yield scope, rng.normal(size=[cards[v] for v in scope])


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_log_weight_sums_log_tables(seed, cards):
    factors = list(random_factors(seed, cards))
    graph = FactorGraph.from_log_tables(cards, factors, log_constant=0.5)
    states = np.array(list(itertools.product(*map(range, cards))))
    expected = [0.5 + sum(t[tuple(x[v] for v in s)] for s, t in factors) for x in states]
    np.testing.assert_allclose(graph.log_weight(states), expected, atol=1e-12)
    np.testing.assert_allclose(graph.log_weight(states[0]), expected[0], atol=1e-12)


def test_a_flat_table_has_its_last_variable_fastest():
    graph = FactorGraph.from_tables([2, 3], [((1, 0), [1, 2, 3, 4, 5, 6])])
    assert np.exp(graph.log_weight([1, 0])) == pytest.approx(2)
    assert np.exp(graph.log_weight([0, 2])) == pytest.approx(5)


def test_zeros_and_hash():
    zero = FactorGraph.from_tables([2], [((0,), [0.0, 1.0])], name="a")
    same = FactorGraph.from_log_tables([2], [((0,), [-np.inf, 0.0])], name="b", labels=["v"])
    finite = FactorGraph.from_tables([2], [((0,), [1e-300, 1.0])])
    assert zero.has_zeros
    assert not finite.has_zeros
    assert zero.log_weight([0]) == -np.inf
    assert zero.content_hash == same.content_hash != finite.content_hash
    assert zero.content_hash != FactorGraph.from_tables([2, 2], [((0,), [0.0, 1.0])]).content_hash


def test_tables_are_copied_and_read_only():
    table = np.ones(2)
    graph = FactorGraph.from_log_tables([2], [((0,), table)])
    table[0] = 5
    assert graph.log_weight([0]) == 1
    with pytest.raises(ValueError, match="read-only"):
        graph.factors[0].log_table[0] = 1


@pytest.mark.parametrize(
    ("cards", "factors", "words"),
    [
        ([], [], "cardinalities are []"),
        ([2, 0], [], "cardinalities are [2, 0]"),
        ([2.5], [], "a cardinality is 2.5; an integer is needed"),
        ([2, 2], [((0, 0), np.ones(4))], "factor 0 names a variable twice"),
        ([2, 2], [((0, 2), np.ones(4))], "factor 0 has scope (0, 2); variables are 0..1"),
        ([2, 2], [((-1,), np.ones(2))], "factor 0 has scope (-1,)"),
        ([2, 2], [((0,), np.ones(2)), ((0, 1), np.ones(3))], "factor 1 has a table of shape (3,); (2, 2) is needed"),
        ([2, 2], [((0, 1), np.ones((4, 1)))], "factor 0 has a table of shape (4, 1)"),
        ([2], [((0,), [1.0, -2.0])], "factor 0 has the entry -2 at (1,)"),
        ([2], [((0,), [1.0, np.nan])], "factor 0 has a NaN or infinite entry at (1,)"),
        ([2], [((0,), [np.inf, 1.0])], "factor 0 has a NaN or infinite entry at (0,)"),
        ([2], [((0,), [0.0, 0.0])], "factor 0 over (0,) is zero everywhere, so Z = 0"),
        ([2], [((0,), ["a", "b"])], "the entries of factor 0 are not an array of real numbers"),
        ([1] * 70, [(range(70), [1.0])], "factor 0 has 70 variables; at most 40"),
    ],
)
def test_bad_factors_are_refused(cards, factors, words):
    with pytest.raises(ModelError) as info:
        FactorGraph.from_tables(cards, factors, name="toy")
    assert words in str(info.value)
    assert str(info.value).startswith("toy: ")


@pytest.mark.parametrize("constant", [-np.inf, np.inf, np.nan])
def test_the_constant_is_finite(constant):
    with pytest.raises(ModelError, match="log_constant"):
        FactorGraph.from_log_tables([2], [], log_constant=constant)


@pytest.mark.parametrize("states", [[0], [0, 0, 0], [0, 2], [-1, 0]])
def test_states_outside_the_model_are_refused(states):
    with pytest.raises(ModelError, match="last axis must hold 2 states"):
        FactorGraph.from_log_tables([2, 2], []).log_weight(states)


@given(st.integers(0, 2**32 - 1))
def test_possible_states_are_exact_on_chains(seed):
    rng = np.random.default_rng(seed)
    cards = rng.integers(1, 5, size=4)
    tables = [rng.random((cards[v], cards[v + 1])) < 0.5 for v in range(3)]
    if not all(t.any() for t in tables):
        return
    graph = FactorGraph.from_tables(cards.tolist(), [((v, v + 1), 1.0 * t) for v, t in enumerate(tables)])
    states = np.array(list(itertools.product(*map(range, cards))))
    alive = states[graph.log_weight(states) > -np.inf]
    if not len(alive):
        with pytest.raises(ModelError, match="Z = 0"):
            possible_states(graph)
        return
    for v, mask in enumerate(possible_states(graph)):
        assert set(np.flatnonzero(mask)) == set(alive[:, v])


def test_possible_states_never_lose_a_state_on_cycles():
    differ = 1.0 - np.eye(3)
    graph = FactorGraph.from_tables(
        [3, 3, 3], [((0, 1), differ), ((1, 2), differ), ((0, 2), differ), ((0,), [0, 1, 1])]
    )
    assert [mask.tolist() for mask in possible_states(graph)] == [[False, True, True], [True] * 3, [True] * 3]


def test_a_file_becomes_a_pairwise_model_without_a_factor_made(tmp_path, monkeypatch):
    grid = generators.grid(4, 5, seed=0)
    save(grid, tmp_path / "grid.uai")
    read = load(tmp_path / "grid.uai")
    with monkeypatch.context() as alone:
        alone.setattr("spinbench.models.factor_graph.Factor", None)
        assert simplify(read) is read
        check_range("gibbs", read, "float64")
        model = to_pairwise(read)
    np.testing.assert_array_equal(model.edges, grid.edges)
    np.testing.assert_allclose(model.couplings, grid.couplings, rtol=1e-12)
    assert len(read.factors) == len(tuple(read.factors)) == grid.num_variables + grid.num_edges


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_factors_as_flat_arrays_are_the_factors(seed, cards):
    graph = FactorGraph.from_log_tables(cards, random_factors(seed, cards))
    flat = Factors.of(graph.cardinalities, graph.factors)
    assert Factors.of(graph.cardinalities, flat) is flat
    assert flat.scopes() == [factor.scope for factor in graph.factors]
    for mine, factor in zip(flat, graph.factors, strict=True):
        assert mine.scope == factor.scope
        np.testing.assert_array_equal(mine.log_table, factor.log_table)
        assert not mine.log_table.flags.writeable
    low, high = flat.extremes
    assert low.tolist() == [factor.log_table.min() for factor in graph.factors]
    assert high.tolist() == [factor.log_table.max() for factor in graph.factors]


def test_models_say_whether_all_variables_are_binary():
    tables = [((0,), np.ones(2)), ((1,), np.ones(3))]
    assert FactorGraph.from_tables((2, 2), tables[:1]).all_binary
    assert not FactorGraph.from_tables((2, 3), tables).all_binary
    assert not FactorGraph.from_tables((2, 1), tables[:1]).all_binary
    assert PairwiseModel.from_edges(np.zeros(2), [(0, 1)], [1.0]).all_binary
