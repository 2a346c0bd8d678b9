"""Forney models: construction, weights, relabelling, readouts, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from spinbench import reference
from spinbench.errors import ModelError, UnsupportedError
from spinbench.models.forney import build
from spinbench.models.forney.model import MAX_DEGREE


def tables(rng, *degrees):
    return [rng.random((2,) * d) + 0.1 for d in degrees]


def by_hand(edges, given, incident):
    """log Z and marginals of the edges from tables that may see a self loop twice."""
    E = len(edges)
    x = (np.arange(2**E)[:, None] >> np.arange(E)) & 1
    weights = np.ones(2**E)
    for table, slots in zip(given, incident, strict=True):
        weights *= table[tuple(x[:, e] for e in slots)]
    return np.log(weights.sum()), weights @ x / weights.sum()


@pytest.mark.parametrize(
    ("edges", "degrees"),
    [
        ([(0, 1), (1, 2), (0, 2)], (2, 2, 2)),
        ([(0, 1), (0, 1), (0, 1)], (3, 3)),  # parallel
        ([(0, 1), (1, 1), (1, 2)], (1, 4, 1)),  # a self loop
        ([(0, 0), (1, 1), (1, 1)], (2, 4)),  # nothing but self loops
        ([(0, 1), (2, 3), (2, 3)], (1, 1, 2, 2, 0)),  # disconnected, and an isolated node
    ],
)
def test_sum_and_marginals_are_those_of_the_tables(edges, degrees, forney_truth):
    rng = np.random.default_rng(1)
    given = tables(rng, *degrees)
    incident = [[e for e, ends in enumerate(edges) for end in ends if end == a] for a in range(len(degrees))]
    shuffled = [list(rng.permutation(slots)) for slots in incident]
    for order in (incident, shuffled):
        model = build.from_tables(edges, given, incident=None if order is incident else order, log_constant=0.7)
        log_z, marginals = by_hand(edges, given, order)
        found, read = forney_truth(model)
        assert found == pytest.approx(log_z + 0.7, abs=1e-12)
        assert reference.forney_log_z(model) == pytest.approx(log_z + 0.7, abs=1e-12)
        np.testing.assert_allclose(read, marginals, atol=1e-12)
        assert all(table.max() == 0 for table in model.log_tables)
        assert min(model.degrees, default=1) >= 1


def test_relabelling_permutes_states(forney_truth):
    rng = np.random.default_rng(2)
    model = build.from_tables([(0, 1), (1, 2), (0, 2), (0, 1)], tables(rng, 3, 3, 2))
    flips = np.array([1, 0, 1, 0])
    other = model.relabel(flips)
    x = rng.integers(0, 2, (20, 4))
    np.testing.assert_allclose(other.log_weight(x ^ flips), model.log_weight(x), atol=1e-13)
    np.testing.assert_allclose(forney_truth(other)[1], forney_truth(model)[1], atol=1e-12)
    assert other.relabel(flips).content_hash == model.content_hash


def test_groups_index_tables_and_half_edges():
    rng = np.random.default_rng(3)
    model = build.from_tables([(0, 1), (2, 1), (0, 2), (0, 1)], tables(rng, 3, 3, 2))
    assert [group.degree for group in model.groups] == [2, 3]
    ends = model.edges.ravel()
    for group in model.groups:
        assert (ends[group.own] == group.nodes[:, None]).all()
        assert (group.own ^ group.other == 1).all()
        for a, row in zip(group.nodes, group.tables, strict=True):
            np.testing.assert_array_equal(row, np.exp(model.log_tables[a]).ravel())


def test_other_tables_on_the_same_graph():
    rng = np.random.default_rng(4)
    model = build.from_tables([(0, 1), (1, 2), (0, 2)], tables(rng, 2, 2, 2))
    other = build.with_log_tables(model, [group.log_tables + 2.0 for group in model.groups], model.log_constant)
    assert other.log_constant == pytest.approx(model.log_constant + 6.0)
    np.testing.assert_allclose(other.log_tables[1], model.log_tables[1])


def test_extreme_weights_keep_their_logarithm():
    """Each table alone underflows in the linear domain wherever the other does not."""
    model = build.from_log_tables([(0, 1)], [[0.0, -2000.0], [-2000.0, 0.0]])
    assert reference.forney_log_z(model) == pytest.approx(-2000 + np.log(2))


def test_a_model_without_edges_is_its_constant():
    model = build.from_tables([], [3.0, 2.0])
    assert (model.num_nodes, model.num_edges) == (0, 0)
    assert reference.forney_log_z(model) == pytest.approx(np.log(6.0))
    assert model.log_weight(np.zeros((2, 0))).tolist() == [model.log_constant] * 2
    assert model.to_factor_graph().log_weight([0]) == pytest.approx(np.log(6.0))


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: build.from_tables([(0, 2)], [[1, 1]] * 2), ModelError, "edge (0, 2) names a node outside 0..1"),
        (lambda: build.from_tables([0, 1], [[1, 1]] * 2), ModelError, "edges have shape (2,)"),
        (lambda: build.from_tables([(0, 1)], [[1, 1], [1]]), ModelError, "node 1 has a table of shape (1,)"),
        (lambda: build.from_tables([(0, 1)], [[1, 1], [1, -1]]), ModelError, "node 1 has the entry -1"),
        (
            lambda: build.from_tables([(0, 1)], [[1, 1], [0, 0]]),
            ModelError,
            "node 1 is zero everywhere, so Z = 0",
        ),
        (lambda: build.from_tables([(0, 0)], [[[0, 1], [1, 0]]]), ModelError, "so Z = 0"),
        (lambda: build.from_tables([(0, 1)], [[1, 1], [1, np.inf]]), ModelError, "node 1 has a NaN or infinite"),
        (lambda: build.from_tables([(0, 1)], [[1, 1], [1, np.nan]]), ModelError, "node 1 has a NaN or infinite"),
        (
            lambda: build.from_tables([(0, 1)], [[1, 1]] * 2, incident=[[0], [1]]),
            ModelError,
            "incident must name, for each of 2 nodes",
        ),
        (
            lambda: build.from_tables([(0, k) for k in range(1, 12)], [[1.0]] * 12),
            UnsupportedError,
            f"node 0 has degree 11; methods on the Forney form keep tables of 2**degree entries and allow degrees up "
            f"to {MAX_DEGREE}",
        ),
        (lambda: build.from_tables([(0, 1)], [[1, 1]] * 2).log_weight([2]), ModelError, "1 states 0 or 1"),
        (lambda: build.from_tables([(0, 1)], [[1, 1]] * 2).relabel([1, 1]), ModelError, "flips have shape (2,)"),
    ],
)
def test_bad_models_are_refused(make, error, words):
    with pytest.raises(error) as info:
        make()
    assert words in str(info.value)
