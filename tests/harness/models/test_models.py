"""Both kinds of models: log weights, canonical form, hashes, read-only copies; and one sentence for what is none."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinbench.errors import ModelError, UnknownNameError, UnsupportedError
from spinbench.models import (
    FactorGraph,
    PairwiseModel,
    build,
    catalogue,
    condition,
    generators,
    simplify,
    to_factor_graph,
    to_pairwise,
)
from spinbench.models.factor_graph import FactorArrays
from spinbench.models.networks import bayesian_network, gauge_complete, gauge_cycle, gauge_grid, gauge_regular, potts
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


CUBIC = FactorGraph.from_log_tables([2] * 3, [((0,), [0, 1]), ((0, 1, 2), np.arange(8.0))], name="cubic")
HARD = FactorGraph.from_tables([2, 2], [((0,), [1, 2]), ((1, 0), [[1, 0], [1, 1]])], name="hard")
POTTS = FactorGraph.from_log_tables([2, 3], [], name="potts", labels=["x", "colour"])
WIDE = PairwiseModel.from_edges(np.zeros(30), [], [], groups=[range(30)], name="wide")
CROSSED = FactorGraph.from_tables([2, 2], [((0, 1), np.eye(2)), ((1, 0), 1 - np.eye(2))], name="crossed")
HELD = FactorGraph.from_tables([2, 2], [((0, 1), np.eye(2)), ((0,), [1, 0]), ((1,), [0, 1])], name="held")
EQUAL = FactorGraph.from_tables((3, 3, 3), [((0, 1), np.eye(3)), ((1, 2), np.eye(3))])
GROUP = PairwiseModel.from_edges([1.0, 2.0, 3.0], [], [], groups=[(0, 1, 2)])


def pairwise(biases, edges, couplings, **options):
    return lambda: PairwiseModel.from_edges(biases, edges, couplings, name="toy", **options)


def factors(cardinalities, tables):
    return lambda: FactorGraph.from_tables(cardinalities, tables, name="toy")


def condition_pair_model(evidence):
    """Of three variables that must be equal, and if the second is observed, must be 1."""
    tables = [((1,), [0, 1])] * (1 in evidence) + [((0, 1), np.eye(2)), ((1, 2), np.eye(2))]
    return lambda: condition(FactorGraph.from_tables([2, 2, 2], tables), evidence)


REFUSED = [
    # pairwise models
    (pairwise([], [], []), ModelError, "toy: biases have shape (0,)"),
    (pairwise([[1.0]], [], []), ModelError, "toy: biases have shape (1, 1)"),
    (pairwise(["a"], [], []), ModelError, "toy: biases are not an array of real numbers"),
    (pairwise([[1.0], [1.0, 2.0]], [], []), ModelError, "toy: biases are not an array of real numbers"),
    (pairwise([1.0, 1j], [], []), ModelError, "toy: biases are not an array of real numbers"),
    (pairwise([1.0, np.nan], [], []), ModelError, "bias of variable 1 is nan"),
    (pairwise([0, 0], [[0, 1]], [np.inf]), ModelError, "coupling of edge 0 is inf"),
    (pairwise([0, 0], [[0, 1], [1, 0]], [1.7e308, 1.7e308]), ModelError, "sum of the couplings of parallel edges"),
    (pairwise([0, 0], [[0, 1]], [1.0, 2.0]), ModelError, "toy: couplings have shape (2,)"),
    (pairwise([0, 0], [[0, 1, 1]], [1.0]), ModelError, "toy: edges have shape (1, 3)"),
    (pairwise([0, 0], [[0, 1], [1]], [1.0, 1.0]), ModelError, "toy: edges are ragged"),
    (pairwise([0, 0], [[0.0, 1.0]], [1.0]), ModelError, "toy: edges have type float64"),
    (pairwise([0, 0], [[0, 2]], [1.0]), ModelError, "toy: edge (0, 2) names a variable outside 0..1"),
    (pairwise([0, 0], [[-1, 0]], [1.0]), ModelError, "toy: edge (-1, 0) names a variable outside 0..1"),
    (pairwise([0, 0], [[1, 1]], [1.0]), ModelError, "toy: variable 1 is coupled to itself"),
    (pairwise([0, 0, 0], [], [], log_constant=np.inf), ModelError, "toy: log_constant is inf"),
    (pairwise([0, 0, 0], [], [], log_constant="x"), ModelError, "toy: log_constant is 'x'"),
    (pairwise([0, 0, 0], [], [], groups=[(0, 1), (1, 2)]), ModelError, "disjoint"),
    (pairwise([0, 0, 0], [], [], groups=[()]), ModelError, "not empty"),
    (pairwise([0, 0, 0], [], [], groups=[(0, 3)]), ModelError, "outside 0..2"),
    (pairwise([0, 0, 0], [], [], labels=["a", "b"]), ModelError, "toy: 2 labels for 3 variables"),
    (pairwise([0, 0, 0], [], [], labels=["a", "b", "a"]), ModelError, "toy: two variables are labelled 'a'"),
    (pairwise([0, 0, 0], [], [], groups=(0, 1)), ModelError, "was given; tuples of variables' numbers are needed"),
    (pairwise([0, 0, 0], [], [], groups=3), ModelError, "was given; tuples of variables' numbers are needed"),
    (
        pairwise([0, 0, 0], [], [], groups=(("a", "b"),)),
        ModelError,
        "was given; tuples of variables' numbers are needed",
    ),
    (
        pairwise([0, 0, 0], [], [], groups=((0, None),)),
        ModelError,
        "was given; tuples of variables' numbers are needed",
    ),
    (pairwise([0, 0, 0], [], [], groups=((0, 1.5),)), ModelError, "was given; tuples of variables' numbers are needed"),
    (
        lambda: PairwiseModel.from_dense([0, 0], np.zeros((2, 3)), name="toy"),
        ModelError,
        "toy: couplings have shape (2, 3)",
    ),
    (
        lambda: PairwiseModel.from_dense([0, 0], [[0, 1], [2, 0]], name="toy"),
        ModelError,
        "toy: W[0, 1] = 1 and W[1, 0] = 2; W must be symmetric",
    ),
    (
        lambda: PairwiseModel.from_dense([0, 0], [[0, 1], [1, 3]], name="toy"),
        ModelError,
        "toy: W[1, 1] = 3; the diagonal of W must be zero",
    ),
    (
        lambda: PairwiseModel.from_dense([0, 0], [[0, np.nan], [np.nan, 0]], name="toy"),
        ModelError,
        "coupling (0, 1) is nan",
    ),
    (
        lambda: PairwiseModel.from_edges(np.zeros(50_000), [(0, 1)], [1.0], name="toy").dense(),
        UnsupportedError,
        "toy: a dense matrix of 50000 variables would take 19 GiB",
    ),
    # factor graphs
    (factors([], []), ModelError, "toy: cardinalities are []"),
    (factors([2, 0], []), ModelError, "toy: cardinalities are [2, 0]"),
    (factors([2.5], []), ModelError, "toy: a cardinality is 2.5; an integer is needed"),
    (factors([2, 2], [((0, 0), np.ones(4))]), ModelError, "toy: factor 0 names a variable twice"),
    (factors([2, 2], [((0, 2), np.ones(4))]), ModelError, "toy: factor 0 has scope (0, 2); variables are 0..1"),
    (factors([2, 2], [((-1,), np.ones(2))]), ModelError, "toy: factor 0 has scope (-1,)"),
    (
        factors([2, 2], [((0,), np.ones(2)), ((0, 1), np.ones(3))]),
        ModelError,
        "toy: factor 1 has a table of shape (3,); (2, 2) is needed",
    ),
    (factors([2, 2], [((0, 1), np.ones((4, 1)))]), ModelError, "toy: factor 0 has a table of shape (4, 1)"),
    (factors([2], [((0,), [1.0, -2.0])]), ModelError, "toy: factor 0 has the entry -2 at (1,)"),
    (factors([2], [((0,), [1.0, np.nan])]), ModelError, "toy: factor 0 has a NaN or infinite entry at (1,)"),
    (factors([2], [((0,), [np.inf, 1.0])]), ModelError, "toy: factor 0 has a NaN or infinite entry at (0,)"),
    (factors([2], [((0,), [0.0, 0.0])]), ModelError, "toy: factor 0 over (0,) is zero everywhere, so Z = 0"),
    (factors([2], [((0,), ["a", "b"])]), ModelError, "toy: the entries of factor 0 are not an array of real numbers"),
    (factors([1] * 70, [(range(70), [1.0])]), ModelError, "toy: factor 0 has 70 variables; at most 40"),
    (lambda: FactorGraph.from_log_tables([2], [], log_constant=-np.inf, name="toy"), ModelError, "toy: log_constant"),
    (lambda: FactorGraph.from_log_tables([2], [], log_constant=np.inf, name="toy"), ModelError, "toy: log_constant"),
    (lambda: FactorGraph.from_log_tables([2], [], log_constant=np.nan, name="toy"), ModelError, "toy: log_constant"),
    (
        lambda: FactorGraph.from_log_tables([2, 2], [], name="toy").log_weight([0]),
        ModelError,
        "last axis must hold 2 states",
    ),
    (
        lambda: FactorGraph.from_log_tables([2, 2], [], name="toy").log_weight([0, 0, 0]),
        ModelError,
        "last axis must hold 2 states",
    ),
    (
        lambda: FactorGraph.from_log_tables([2, 2], [], name="toy").log_weight([0, 2]),
        ModelError,
        "last axis must hold 2 states",
    ),
    (
        lambda: FactorGraph.from_log_tables([2, 2], [], name="toy").log_weight([-1, 0]),
        ModelError,
        "last axis must hold 2 states",
    ),
    # evidence
    (condition_pair_model({7: 0}), ModelError, "evidence names variable 7; variables are 0..2"),
    (condition_pair_model({-1: 0}), ModelError, "evidence names variable -1"),
    (condition_pair_model({0: 2}), ModelError, "evidence sets variable 0 to 2; its states are 0..1"),
    (condition_pair_model({0: -1}), ModelError, "evidence sets variable 0 to -1"),
    (condition_pair_model({0: 0.5}), ModelError, "the observed state of variable 0 is 0.5; an integer is needed"),
    (condition_pair_model({"x": 0}), ModelError, "a variable of the evidence is 'x'; an integer is needed"),
    (condition_pair_model({1: 0}), ModelError, "contradictory, for factor 0 over variables (1,) is zero"),
    (condition_pair_model({0: 0, 2: 1}), ModelError, "contradictory, for the zeros of the factors allow no state"),
    *(
        (lambda e=e: condition(EQUAL, e), ModelError, "Z = 0")
        for e in ({0: [1, 1, 0], 2: 2}, {0: [1, 1, 0], 2: [0, 0, 1]})
    ),
    *(
        (lambda e=e: condition(GROUP, e), ModelError, "contradictory, for exactly one of the units")
        for e in ({0: 1, 1: 1}, {0: 0, 1: 0, 2: 0})
    ),
    *(
        (lambda wrong=wrong: condition(POTTS, {"colour": wrong}), ModelError, "; 3 numbers are needed")
        for wrong in ([0.5], [0.5, 0.5], [1, -1, 1], [0, 0, 0], [1, 1, np.inf], ["a", 1, 1], [[1], [1, 2]])
    ),
    (lambda: condition(POTTS, {"colour": [0.5]}), ModelError, "evidence gives variable 'colour' the likelihoods "),
    (lambda: condition(POTTS, {"c": 1}), ModelError, "potts: evidence names variable 'c'"),
    # generators
    (lambda: generators.grid(0, 3), ModelError, "model 'grid': rows = 0 and cols = 3"),
    (lambda: generators.grid(2, 2, kind="odd"), ModelError, "kind = 'odd'; 'standard', 'frustrated'"),
    (lambda: generators.grid(2, 2, seed=-1), ModelError, "seed = -1"),
    (lambda: generators.grid(2, 2, c1=np.nan), ModelError, "bias of variable 0 is nan"),
    (lambda: generators.grid(10**6, 10**6), ModelError, "the graph would have 2,000,000,000,000 edges"),
    (lambda: generators.complete(0), ModelError, "n = 0"),
    (lambda: generators.complete(10**6), ModelError, "the graph would have 499,999,500,000 edges"),
    (lambda: generators.ring(2), ModelError, "n = 2; it must be 3 or more"),
    (lambda: generators.tree(0), ModelError, "n = 0"),
    (lambda: generators.shortcut_tree(4, 4), ModelError, "shortcuts = 4; a tree of 4 has room for 3"),
    (lambda: generators.random_regular(5, 3), ModelError, "degree times n must be even"),
    (lambda: generators.random_regular(3, 3), ModelError, "0 <= degree < n is needed"),
    (lambda: generators.chimera(1, 0, 4), ModelError, "m = 1, n = 0 and t = 4"),
    (lambda: generators.rbm(0, 2), ModelError, "visible = 0"),
    (lambda: generators.torus(1, 5), ModelError, "both must be 2 or more"),
    (lambda: generators.planar_glass(2, 2, disorder="odd"), ModelError, "disorder = 'odd'"),
    (lambda: generators.regular_glass(5, 3), ModelError, "model 'regular_glass': degree = 3 and n = 5; degree times n"),
    (lambda: generators.random_field(0, 5), ModelError, "rows = 0 and cols = 5"),
    (lambda: generators.sherrington_kirkpatrick(0), ModelError, "n = 0"),
    (lambda: gauge_complete(1), ModelError, "nodes = 1; it must be 2 or more"),
    (lambda: gauge_complete(12), UnsupportedError, "a node has degree 11"),
    (lambda: gauge_regular(7, 3), ModelError, "their product must be even"),
    (lambda: gauge_regular(3, 3), ModelError, "2 <= degree < nodes"),
    (lambda: gauge_regular(60, 2), ModelError, "use gauge_cycle"),
    (lambda: gauge_regular(10**6), ModelError, "at most 100,000 are allowed"),
    (lambda: gauge_grid(0, 3), ModelError, "rows = 0 and cols = 3"),
    (lambda: gauge_grid(1, 1), ModelError, "two nodes are needed"),
    (lambda: gauge_cycle(2), ModelError, "nodes = 2; it must be 3 or more"),
    (lambda: gauge_grid(kind="odd"), ModelError, "kind = 'odd'; 'generic', 'supermodular', 'lognormal'"),
    (lambda: gauge_grid(beta=np.nan), ModelError, "beta = nan"),
    (lambda: gauge_grid(seed=-1), ModelError, "seed = -1"),
    # models by their names
    (lambda: build({}), ModelError, "the model's name is None"),
    (lambda: build({"name": 3}), ModelError, "the model's name is 3"),
    (lambda: build({"name": "grids"}), UnknownNameError, "no model is named 'grids'; did you mean grid"),
    (lambda: build({"name": "uai14/Grids_13"}), UnknownNameError, "uai14/Grids_12"),
    (
        lambda: build({"name": "grid", "row": 3}),
        ModelError,
        "model 'grid' has no parameter 'row'; its parameters are rows, cols, c1",
    ),
    (
        lambda: build({"name": "grid", "rows": 2.5}),
        ModelError,
        "model 'grid': rows = 2.5 was given; an integer is needed",
    ),
    (
        lambda: build({"name": "grid", "rows": True}),
        ModelError,
        "model 'grid': rows = True was given; an integer is needed",
    ),
    (
        lambda: build({"name": "grid", "rows": float("inf")}),
        ModelError,
        "model 'grid': rows = inf was given; an integer is needed",
    ),
    (lambda: build({"name": "grid", "c1": "x"}), ModelError, "model 'grid': c1 = 'x' was given; a number is needed"),
    (
        lambda: build({"name": "grid", "kind": 3}),
        ModelError,
        "model 'grid': kind = 3 was given; standard or frustrated",
    ),
    (lambda: build({"name": "grid", "kind": "odd"}), ModelError, "model 'grid': kind = 'odd'; 'standard'"),
    (lambda: build({"name": "grid", "rows": 0}), ModelError, "model 'grid': rows = 0"),
    (
        lambda: build({"name": "libdai/testfast", "seed": 1}),
        ModelError,
        "model 'libdai/testfast' has no parameter 'seed'; it has no",
    ),
    (lambda: build({"name": "file"}), ModelError, "model 'file' needs the parameter path"),
    (
        lambda: build({"name": "file", "file": "x"}),
        ModelError,
        "model 'file' has no parameter 'file'; its parameters are path, evi",
    ),
    (lambda: build({"name": "file", "path": "missing.uai"}), ModelError, "missing.uai: there is no such file"),
    (lambda: potts(0), ModelError, "rows = 0 and cols = 8; both must be 1 or more"),
    (lambda: potts(states=1), ModelError, "states = 1; it must be 2 or more"),
    (lambda: potts(1000, 1000, 30), ModelError, "table entries; 50000000 are allowed"),
    (lambda: bayesian_network(layers=0), ModelError, "model 'bayesian_network'"),
    (lambda: bayesian_network(parents=200), ModelError, "model 'bayesian_network'"),
    (lambda: bayesian_network(determinism=1.5), ModelError, "model 'bayesian_network'"),
    (lambda: bayesian_network(observed=101), ModelError, "model 'bayesian_network'"),
    (lambda: bayesian_network(states=0), ModelError, "model 'bayesian_network'"),
    (lambda: bayesian_network(seed=-1), ModelError, "model 'bayesian_network'"),
    (lambda: bayesian_network(states=40, parents=5), ModelError, "model 'bayesian_network'"),
    (lambda: catalogue.load("uai14/grids12"), UnknownNameError, "'uai14/grids12'; did you mean uai14/Grids_12"),
    (lambda: catalogue.reference("zzz"), UnknownNameError, "'zzz'; known: boltzmann/digits_lattice, "),
    (lambda: catalogue.reference(catalogue.UNANSWERED), UnsupportedError, "linkage_11 has no trusted answer"),
    # what cannot be converted
    (lambda: to_pairwise(CUBIC), ModelError, "cubic: factor 1 over variables (0, 1, 2) has order 3"),
    (
        lambda: to_pairwise(HARD),
        ModelError,
        "hard: factor 1 over variables (1, 0) has zeros where finite couplings are",
    ),
    (
        lambda: to_pairwise(POTTS, one_of_k=False),
        ModelError,
        "potts: variable 1 ('colour') has 3 possible states; binary",
    ),
    (
        lambda: to_pairwise(to_pairwise(POTTS), one_of_k=False),
        ModelError,
        "units (1, 2, 3) code one variable of 3 states",
    ),
    (lambda: to_factor_graph(WIDE), ModelError, "a group of 30 units has a table of 2**30 entries"),
    (lambda: simplify(CROSSED), ModelError, "crossed: the factors over variables (0, 1) leave them no state, so Z = 0"),
    (lambda: simplify(HELD), ModelError, "held: factor 0 over (0, 1) leaves variable 0 no state"),
]


@pytest.mark.parametrize(
    ("make", "error", "message"), REFUSED, ids=[f"{k} {message[:40]}" for k, (*_, message) in enumerate(REFUSED)]
)
def test_refusals(make, error, message):
    with pytest.raises(error) as caught:
        make()
    refused_text = str(caught.value)
    assert message in refused_text
    assert "\n" not in refused_text
