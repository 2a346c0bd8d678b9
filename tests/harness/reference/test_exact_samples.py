"""Exact draws against exact probabilities."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from spinbench import reference
from spinbench.errors import ModelError
from spinbench.inference import answers
from spinbench.models import PairwiseModel


def assert_drawn_from(model, states):
    """Marginals within 4.5 standard errors, and chi-square on all states (pooled to 8 expected draws or more)."""
    every = np.array(list(itertools.product(*map(range, model.cardinalities))))
    log_z = reference.solve(model, method="enumeration", cache=False).log_z
    p = np.exp(model.log_weight(every) - log_z)
    assert np.isfinite(model.log_weight(states)).all()
    for v, k in enumerate(model.cardinalities):
        for value in range(k):
            expected = min(p[every[:, v] == value].sum(), 1.0)
            error = np.sqrt(expected * (1 - expected) / len(states))
            assert abs((states[:, v] == value).mean() - expected) <= 4.5 * error + 1e-12
    index = np.ravel_multi_index(tuple(states.T), model.cardinalities)
    counts = np.bincount(index, minlength=len(every))
    common = p * len(states) >= 8
    observed = np.append(counts[common], counts[~common].sum())
    expected = np.append(p[common], p[~common].sum()) * len(states)
    if expected[-1] < 8:
        observed, expected = observed[:-1], expected[:-1]
        expected = expected * observed.sum() / expected.sum()
    if len(observed) > 1:
        assert stats.chisquare(observed, expected).pvalue > 1e-5


@pytest.mark.parametrize("method", ["enumeration", "bucket_tree"])
def test_draws_have_the_models_distribution(small_model, method):
    states = reference.sample(small_model, 20_000, seed=11, method=method)
    assert states.shape == (20_000, small_model.num_variables)
    assert states.dtype == np.int64
    assert_drawn_from(small_model, states)


def _model(method: str) -> PairwiseModel:
    """Eight variables of the kind that the method wants, numbered at random."""
    rng = np.random.default_rng(8)
    new = rng.permutation(8)
    edges = {
        "grid": [(0, 1), (1, 2), (2, 3), (4, 5), (5, 6), (6, 7), (0, 4), (1, 5), (2, 6), (3, 7)],
        "rbm": [(i, j) for i in range(3) for j in range(3, 8)],
        "curie_weiss": list(itertools.combinations(range(8), 2)),
        "exchangeable": [(i, j) for i in range(3) for j in range(3, 6)] + [(0, 6), (1, 6), (2, 7)],
    }[method]
    if method == "curie_weiss":
        return PairwiseModel.from_edges(np.full(8, -1.0), edges, np.full(28, 0.3))
    if method == "exchangeable":  # classes {0, 1}, bridged by 6, {2} with the leaf 7, and {3, 4, 5}
        biases = np.array([-1.0, -1.0, 0.4, -1.5, -1.5, -1.5, 0.3, -0.6])
        return PairwiseModel.from_edges(biases[new.argsort()], new[np.array(edges)], np.full(12, 0.8))
    return PairwiseModel.from_edges(rng.normal(size=8), new[np.array(edges)], 1.5 * rng.normal(size=len(edges)))


@pytest.mark.parametrize("method", ["grid", "rbm", "curie_weiss", "exchangeable"])
def test_draws_of_the_special_solvers(method):
    model = _model(method)
    assert_drawn_from(model, answers.sample(model, 40_000, seed=5, method=method))


def test_draws_from_a_grid_that_plain_sums_cannot_hold(monkeypatch):
    model = _model("grid")
    monkeypatch.setattr("spinbench.backends.numba.exact.grid._FLOOR", np.inf)
    assert_drawn_from(model, answers.sample(model, 40_000, seed=5, method="grid"))


def test_draws_from_a_larger_grid_have_its_marginals():
    """Pair means too, over which the marginals say nothing."""
    rng = np.random.default_rng(2)
    site = np.arange(36).reshape(6, 6)
    edges = [*zip(site[:, :-1].ravel(), site[:, 1:].ravel(), strict=True)]
    edges += [*zip(site[:-1].ravel(), site[1:].ravel(), strict=True)]
    model = PairwiseModel.from_edges(rng.normal(size=36), edges, 1.5 * rng.normal(size=60))
    first = answers.sample(model, 30_000, seed=1, method="grid")
    p = reference.solve(model, method="bucket_tree", cache=False).probabilities
    assert (np.abs(first.mean(axis=0) - p) < 4.5 * np.sqrt(p * (1 - p) / 30_000)).all()
    other = reference.sample(model, 30_000, seed=2, method="bucket_tree")
    i, j = model.edges.T
    pairs, expected = (first[:, i] * first[:, j]).mean(axis=0), (other[:, i] * other[:, j]).mean(axis=0)
    error = np.sqrt(2 * np.maximum(expected * (1 - expected), 1e-3) / 30_000)
    assert (np.abs(pairs - expected) < 4.5 * error).all()


@pytest.mark.parametrize("method", ["auto", "enumeration", "bucket_tree"])
def test_draws_follow_the_seed(random_pairwise, method):
    model = random_pairwise(9, 0.4, 1.0, 1)
    first = reference.sample(model, 50, seed=3, method=method)
    np.testing.assert_array_equal(first, reference.sample(model, 50, seed=3, method=method))
    assert (first != reference.sample(model, 50, seed=4, method=method)).any()


def test_draw_counts(random_pairwise):
    model = random_pairwise(5, 0.4, 1.0, 1)
    assert reference.sample(model, 0).shape == (0, 5)
    with pytest.raises(ModelError, match="-1 samples"):
        reference.sample(model, -1)
