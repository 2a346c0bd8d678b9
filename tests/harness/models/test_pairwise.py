"""PairwiseModel: canonical form, views, spins, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinbench.errors import ModelError, UnsupportedError
from spinbench.models import PairwiseModel, generators, lattices


@st.composite
def dense_models(draw):
    n = draw(st.integers(1, 7))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    W = np.triu(rng.normal(size=(n, n)) * (rng.random((n, n)) < draw(st.floats(0, 1))), 1)
    return rng.normal(size=n) * 3, W + W.T, float(rng.normal())


def states_of(n):
    return (np.arange(2**n)[:, None] >> np.arange(n)) & 1


def test_numbers_of_any_type_are_float64():
    first, second = np.triu_indices(4, 1)
    model = PairwiseModel(np.zeros(4, dtype=np.float32), np.stack([first, second], axis=1), np.full(6, -1))
    assert (model.biases.dtype, model.couplings.dtype) == (np.float64, np.float64)


@given(dense_models())
def test_log_weight_is_the_quadratic_form(parts):
    a, W, constant = parts
    model = PairwiseModel.from_dense(a, W, log_constant=constant)
    s = states_of(len(a)).astype(float)
    expected = constant + s @ a + 0.5 * np.einsum("ki,ij,kj->k", s, W, s)
    np.testing.assert_allclose(model.log_weight(s), expected, atol=1e-12)
    np.testing.assert_array_equal(model.dense(), W)
    np.testing.assert_array_equal(model.csr().toarray(), W)
    assert model.csr().has_sorted_indices
    np.testing.assert_array_equal(model.degrees, (W != 0).sum(axis=1))


@given(dense_models())
def test_spins_keep_every_weight(parts):
    h, J, constant = parts
    i, j = np.nonzero(np.triu(J))
    model = PairwiseModel.from_spins(h, np.stack([j, i], axis=1), J[i, j], log_constant=constant)
    s = states_of(len(h))
    spins = 2.0 * s - 1
    expected = constant + spins @ h + 0.5 * np.einsum("ki,ij,kj->k", spins, J, spins)
    np.testing.assert_allclose(model.log_weight(s), expected, atol=1e-12)


def test_parallel_and_reversed_edges_are_summed_and_sorted():
    model = PairwiseModel.from_edges([0, 0, 0], [[2, 1], [1, 0], [1, 2], [0, 1]], [1.0, 2.0, 4.0, 8.0])
    np.testing.assert_array_equal(model.edges, [[0, 1], [1, 2]])
    np.testing.assert_array_equal(model.couplings, [10.0, 5.0])


def test_edge_order_does_not_change_the_hash_and_the_name_does_not_either():
    edges, weights = np.array([[0, 1], [0, 2], [1, 2]]), np.array([1.0, 2.0, 3.0])
    one = PairwiseModel.from_edges([1, 2, 3], edges, weights, name="one")
    other = PairwiseModel.from_edges([1, 2, 3], edges[::-1, ::-1], weights[::-1], name="other", labels="abc")
    assert one.content_hash == other.content_hash
    changed = [
        PairwiseModel.from_edges([1, 2, 4], edges, weights),
        PairwiseModel.from_edges([1, 2, 3], edges, weights + 1e-15 * np.array([0, 1, 0])),
        PairwiseModel.from_edges([1, 2, 3], edges, weights, log_constant=1.0),
        PairwiseModel.from_edges([1, 2, 3], edges, weights, groups=[(0, 1)]),
    ]
    assert len({one.content_hash, *(m.content_hash for m in changed)}) == 5


def test_arrays_are_copied_and_read_only():
    a, edges, w = np.zeros(2), np.array([[0, 1]]), np.ones(1)
    model = PairwiseModel.from_edges(a, edges, w)
    a[0] = w[0] = 7
    edges[0] = 0
    assert model.biases[0] == 0
    assert model.couplings[0] == 1
    assert model.edges.tolist() == [[0, 1]]
    for array in (model.biases, model.edges, model.couplings):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_broken_groups_have_no_weight():
    model = PairwiseModel.from_edges([1.0, 2.0, 4.0], [], [], groups=[(0, 2)])
    assert model.num_edges == 0
    np.testing.assert_array_equal(
        model.log_weight([[1, 0, 0], [0, 1, 1], [0, 1, 0], [1, 0, 1]]), [1.0, 6.0, -np.inf, -np.inf]
    )


def test_one_variable_and_shapes():
    model = PairwiseModel.from_edges([2.0], np.zeros((0, 2), int), [])
    assert model.cardinalities == (2,)
    assert model.log_weight([1]).shape == ()
    assert model.log_weight(np.zeros((3, 4, 1))).shape == (3, 4)
    assert model.dense().shape == (1, 1)


def test_dense_matrices_beyond_memory_are_refused() -> None:
    model = PairwiseModel.from_edges(np.zeros(50_000), [(0, 1)], [1.0], name="large")
    with pytest.raises(UnsupportedError, match="large: a dense matrix of 50000 variables would take 19 GiB"):
        model.dense()


@pytest.mark.parametrize(
    ("biases", "edges", "couplings", "words"),
    [
        ([], [], [], "biases have shape (0,)"),
        ([[1.0]], [], [], "biases have shape (1, 1)"),
        (["a"], [], [], "biases are not an array of real numbers"),
        ([[1.0], [1.0, 2.0]], [], [], "biases are not an array of real numbers"),
        ([1.0, 1j], [], [], "biases are not an array of real numbers"),
        ([1.0, np.nan], [], [], "bias of variable 1 is nan"),
        ([0, 0], [[0, 1]], [np.inf], "coupling of edge 0 is inf"),
        ([0, 0], [[0, 1], [1, 0]], [1.7e308, 1.7e308], "sum of the couplings of parallel edges"),
        ([0, 0], [[0, 1]], [1.0, 2.0], "couplings have shape (2,)"),
        ([0, 0], [[0, 1, 1]], [1.0], "edges have shape (1, 3)"),
        ([0, 0], [[0, 1], [1]], [1.0, 1.0], "edges are ragged"),
        ([0, 0], [[0.0, 1.0]], [1.0], "edges have type float64"),
        ([0, 0], [[0, 2]], [1.0], "edge (0, 2) names a variable outside 0..1"),
        ([0, 0], [[-1, 0]], [1.0], "edge (-1, 0) names a variable outside 0..1"),
        ([0, 0], [[1, 1]], [1.0], "variable 1 is coupled to itself"),
    ],
)
def test_bad_edges_are_refused(biases, edges, couplings, words):
    with pytest.raises(ModelError) as info:
        PairwiseModel.from_edges(biases, edges, couplings, name="toy")
    assert words in str(info.value)
    assert str(info.value).startswith("toy: ")


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (np.zeros((2, 3)), "couplings have shape (2, 3)"),
        ([[0, 1], [2, 0]], "W[0, 1] = 1 and W[1, 0] = 2; W must be symmetric"),
        ([[0, 1], [1, 3]], "W[1, 1] = 3; the diagonal of W must be zero"),
        ([[0, np.nan], [np.nan, 0]], "coupling (0, 1) is nan"),
    ],
)
def test_bad_matrices_are_refused(weights, words):
    with pytest.raises(ModelError) as info:
        PairwiseModel.from_dense([0, 0], weights)
    assert words in str(info.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"log_constant": np.inf}, "log_constant is inf"),
        ({"log_constant": "x"}, "log_constant is 'x'"),
        ({"groups": [(0, 1), (1, 2)]}, "disjoint"),
        ({"groups": [()]}, "not empty"),
        ({"groups": [(0, 3)]}, "outside 0..2"),
        ({"labels": ["a", "b"]}, "2 labels for 3 variables"),
        ({"labels": ["a", "b", "a"]}, "two variables are labelled 'a'"),
    ],
)
def test_bad_options_are_refused(options, words):
    with pytest.raises(ModelError, match=words):
        PairwiseModel.from_edges([0, 0, 0], [], [], **options)


def test_pulls_and_reach_are_sums_of_couplings(monkeypatch):
    monkeypatch.setattr("spinbench.models.pairwise.AT_ONCE", 7)
    model = generators.sherrington_kirkpatrick(12, field=-0.3, seed=1)
    W = model.dense()
    np.testing.assert_allclose(model.pulls, [np.minimum(W, 0).sum(axis=0), np.maximum(W, 0).sum(axis=0)])
    np.testing.assert_allclose(model.reach, np.abs(model.biases) + np.abs(W).sum(axis=0))


def test_edges_are_sorted_and_summed_piece_by_piece_as_at_once(monkeypatch):
    rng = np.random.default_rng(3)
    edges = lattices.complete_edges(15)
    np.testing.assert_array_equal(edges, np.argwhere(np.triu(np.ones((15, 15)), 1)))
    values = rng.standard_normal(len(edges))
    whole = np.bincount(edges.ravel(), np.repeat(values, 2), 15)
    for size in (1, 7, len(edges)):
        monkeypatch.setattr(lattices, "_AT_ONCE", size)
        np.testing.assert_array_equal(lattices.edge_sums(edges, values, 15), whole)
        assert lattices.canonical_edges(edges, values, 15)[0] is edges
        for k in range(len(edges) - 1):
            swapped = edges.copy()
            swapped[[k, k + 1]] = swapped[[k + 1, k]]
            found = lattices.canonical_edges(swapped, values, 15)
            np.testing.assert_array_equal(found[0], edges)
            assert (found[1][k], found[1][k + 1]) == (values[k + 1], values[k])


@pytest.mark.parametrize("groups", [(0, 1), 3, (("a", "b"),), ((0, None),), ((0, 1.5),)])
def test_groups_that_are_no_tuples_of_numbers_are_refused_in_a_sentence(groups: Any) -> None:
    with pytest.raises(ModelError, match=r"groups=.* was given; tuples of variables' numbers are needed$"):
        PairwiseModel.from_edges([0.0, 0.0, 0.0], [], [], groups=groups)
