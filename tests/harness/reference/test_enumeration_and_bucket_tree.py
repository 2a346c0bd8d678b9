"""Enumeration against sums written out state by state, and the bucket tree against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from small_graphs import keeps_law

from spinbench import reference
from spinbench.errors import IntractableError, ModelError, UnknownNameError, UnsupportedError
from spinbench.inference import answers
from spinbench.models import FactorGraph, PairwiseModel
from spinbench.reference.elimination.bucket_tree import BucketTree
from spinbench.reference.elimination.matrix_tree import MatrixTree
from spinbench.reference.problem import Problem


def assert_same(answer, expected, tolerance=1e-12):
    assert answer.log_z == pytest.approx(expected.log_z, rel=tolerance, abs=tolerance)
    assert len(answer.marginals) == len(expected.marginals)
    for got, want in zip(answer.marginals, expected.marginals, strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=tolerance)


def test_enumeration_is_the_sum_over_all_states(small_model):
    """Also over the states that break a group, which must weigh nothing."""
    states = np.array(list(itertools.product(*map(range, small_model.cardinalities))))
    weights = np.exp(small_model.log_weight(states) - (peak := small_model.log_weight(states).max()))
    answer = reference.solve(small_model, method="enumeration", cache=False)
    assert answer.log_z == pytest.approx(peak + np.log(weights.sum()), rel=1e-13)
    for v, vector in enumerate(answer.marginals):
        expected = [weights[states[:, v] == k].sum() / weights.sum() for k in range(len(vector))]
        np.testing.assert_allclose(vector, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("method", ["bucket_tree", "auto"])
def test_solvers_agree_with_enumeration(small_model, method):
    expected = reference.solve(small_model, method="enumeration", cache=False)
    assert_same(reference.solve(small_model, method=method, cache=False), expected)


@pytest.mark.parametrize("seed", range(20))
def test_bucket_tree_on_random_models(random_pairwise, random_graph, seed):
    rng = np.random.default_rng(seed)
    models = [
        random_pairwise(int(rng.integers(1, 12)), rng.random(), float(rng.choice([0.1, 1, 10])), seed),
        random_graph(int(rng.integers(1, 8)), int(rng.integers(0, 12)), 0.7 * rng.random(), seed),
    ]
    for model in models:
        expected = reference.solve(model, method="enumeration", cache=False)
        assert_same(reference.solve(model, method="bucket_tree", cache=False), expected)
        problem = Problem(model)
        products, logarithms = (kind(problem, problem.order) for kind in (MatrixTree, BucketTree))
        log_z, flat = products.solve(marginals=True)
        assert (log_z, products.solve(marginals=False)[0]) == pytest.approx([expected.log_z] * 2, rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(problem.decode_marginals(flat), expected.flat, rtol=0, atol=1e-12)
        draws = [tree.sample(100, np.random.default_rng(seed)) for tree in (products, logarithms)]
        np.testing.assert_array_equal(*draws)


@pytest.mark.parametrize("scale", [1.0, 300.0], ids=["weak", "strong"])
def test_products_of_tables_of_many_states(scale):
    """Where they leave the range of float64, logarithms answer."""
    rng = np.random.default_rng(0)
    edges = list(itertools.combinations(range(6), 2))
    model = FactorGraph.from_log_tables([8] * 6, [(edge, rng.normal(0, scale, size=(8, 8))) for edge in edges])
    answer = reference.solve(model, method="bucket_tree", cache=False)
    assert_same(answer, reference.solve(model, method="enumeration", cache=False))
    assert answer.cost.bytes < 2**22


def test_tables_of_pairs_that_couple_nothing():
    """They are no couplings, and still tables that a bucket has to hold."""
    rng = np.random.default_rng(0)
    tables = [((i, j), rng.normal(size=(2, 2))) for i, j in [(0, 1), (1, 2)]]
    tables += [((0, 3), np.add.outer(rng.normal(size=2), rng.normal(size=2))), ((2, 3), np.full((2, 2), 0.3))]
    model = FactorGraph.from_log_tables([2] * 4, tables)
    expected = reference.solve(model, method="enumeration", cache=False)
    assert_same(reference.solve(model, method="bucket_tree", cache=False), expected)


def test_marginals_may_be_left_out(random_pairwise):
    model = random_pairwise(8, 0.5, 1.0, 0)
    for method in ("enumeration", "bucket_tree"):
        answer = reference.solve(model, method=method, marginals=False, cache=False)
        assert answer.marginals == ()
        assert answer.log_z == pytest.approx(reference.solve(model, method=method, cache=False).log_z, rel=1e-15)
        with pytest.raises(UnsupportedError, match="marginals=True"):
            _ = answer.probabilities


def test_probabilities_are_those_of_ones(random_pairwise, random_graph):
    answer = reference.solve(random_pairwise(7, 0.5, 1.0, 1), cache=False)
    assert answer.probabilities.shape == (7,)
    np.testing.assert_array_equal(answer.probabilities, [vector[1] for vector in answer.marginals])
    with pytest.raises(UnsupportedError, match=r"variable \d has \d states"):
        _ = reference.solve(random_graph(7, 9, 0.4, 10), cache=False).probabilities


@pytest.mark.parametrize("method", ["enumeration", "bucket_tree", "auto"])
def test_no_state_with_weight_is_refused(method):
    contradiction = FactorGraph.from_tables([2, 2], [((0, 1), [[1, 0], [0, 0]]), ((0,), [0, 1])])
    with pytest.raises(ModelError, match="Z = 0"):
        reference.solve(contradiction, method=method, cache=False)


def test_many_variables_without_edges():
    biases = np.linspace(-3, 3, 3000)
    answer = reference.solve(PairwiseModel.from_edges(biases, [], []), cache=False)
    assert answer.log_z == pytest.approx(np.log1p(np.exp(biases)).sum(), rel=1e-13)
    np.testing.assert_allclose(answer.probabilities, 1 / (1 + np.exp(-biases)), rtol=0, atol=1e-14)


def test_zero_found_only_by_elimination_is_refused():
    """x = y, y = z and x != z: no table is zero on its own."""
    same, other = np.eye(2), 1 - np.eye(2)
    triangle = FactorGraph.from_tables([2, 2, 2], [((0, 1), same), ((1, 2), same), ((0, 2), other)])
    for method in ("enumeration", "bucket_tree"):
        with pytest.raises(ModelError, match="Z = 0"):
            reference.solve(triangle, method=method, cache=False)
        with pytest.raises(ModelError, match="Z = 0"):
            reference.sample(triangle, 10, method=method)


def test_too_wide_is_refused_with_width_and_memory(random_pairwise):
    model = random_pairwise(60, 1.0, 1.0, 0)
    with pytest.raises(IntractableError, match=r"width 59 .*EiB.*1 GiB is allowed"):
        reference.solve(model, method="bucket_tree", max_bytes=2**30, cache=False)
    with pytest.raises(IntractableError, match=r"width 17 .*MiB of memory and .* s, and 64 bytes is allowed"):
        reference.solve(random_pairwise(18, 1.0, 1.0, 0), method="bucket_tree", max_bytes=64, cache=False)
    with pytest.raises(UnsupportedError, match=r"at most 2\^24 states.*2\^60"):
        reference.solve(model, method="enumeration", cache=False)


def test_very_large_cores_are_refused_quickly():
    rng = np.random.default_rng(0)
    edges = rng.integers(0, 4000, size=(16000, 2))
    model = PairwiseModel.from_edges(
        np.zeros(4000), edges[edges[:, 0] != edges[:, 1]], np.ones((edges[:, 0] != edges[:, 1]).sum())
    )
    with pytest.raises(IntractableError, match="width"):
        reference.solve(model, method="bucket_tree", cache=False)


def test_less_memory_is_asked_for_without_marginals(random_pairwise):
    tree = BucketTree.build(Problem(random_pairwise(20, 0.7, 1.0, 3)))
    assert tree.memory(marginals=False) < 2**20 < tree.memory(marginals=True)


def test_what_memory_does_not_hold_is_taken_in_slices(random_pairwise, solvers):
    model = random_pairwise(20, 0.7, 1.0, 3)
    whole = reference.solve(model, method="bucket_tree", cache=False, solvers=solvers)
    answer = reference.solve(model, method="bucket_tree", max_bytes=2**17, cache=False, solvers=solvers)
    assert answer.cost.slices > 1
    assert answer.cost.bytes <= 2**17
    assert answer.log_z == pytest.approx(whole.log_z, rel=1e-13)
    np.testing.assert_allclose(answer.probabilities, whole.probabilities, rtol=0, atol=1e-13)


def test_long_chain_of_many_states():
    """10 000 variables against powers of the transfer matrix."""
    rng = np.random.default_rng(6)
    table = rng.normal(size=(3, 3))
    model = FactorGraph.from_log_tables([3] * 10_000, [((v, v + 1), table) for v in range(9_999)])
    vector, log_z = np.ones(3), 0.0
    for _ in range(9_999):
        vector = np.exp(table) @ vector
        log_z += np.log(vector.sum())
        vector /= vector.sum()
    assert reference.solve(model, cache=False).log_z == pytest.approx(log_z, rel=1e-12)


@pytest.mark.parametrize("shape", [(1, 3), (1, 40), (12, 20)])
def test_tables_that_nearly_rule_out_states(shape, solvers):
    """All variables are equal but for e^-1e12; small fields decide, and keep their digits."""
    left, right = shape
    edges = [(i, left + j) for i in range(left) for j in range(right)]
    fields = np.random.default_rng(0).normal(size=left + right)
    tables = [((v,), [0.0, field]) for v, field in enumerate(fields)]
    tables += [(edge, [[0.0, -1e12], [-1e12, 0.0]]) for edge in edges]
    model = FactorGraph.from_log_tables([2] * (left + right), tables, log_constant=1e12)
    answer = reference.solve(model, cache=False, solvers=solvers)
    assert answer.log_z == pytest.approx(1e12 + np.logaddexp(0.0, fields.sum()), rel=1e-15)
    np.testing.assert_allclose(answer.probabilities, 1 / (1 + np.exp(-fields.sum())), rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
@pytest.mark.parametrize(("edges", "size"), [("chain", 40), ("complete", 6)])
def test_sums_beyond_float64_are_refused(edges, size, solvers):
    pairs = [(i, j) for i in range(size) for j in range(i + 1, size) if edges == "complete" or j == i + 1]
    model = PairwiseModel.from_edges(np.full(size, 1e307), pairs, np.full(len(pairs), 1.7e308))
    with pytest.raises(IntractableError, match="no exact answer"):
        reference.solve(model, cache=False, solvers=solvers)


def test_unknown_method_offers_the_closest():
    model = PairwiseModel.from_edges([0.0], [], [])
    with pytest.raises(UnknownNameError, match="bucket_tree"):
        reference.solve(model, method="buckettree")


def test_constant_tables_change_nothing(solvers):
    """Of two variables that share no other table, in a model of finite pairs: they are no pair of the graph."""
    rng = np.random.default_rng(0)
    tables = [((v, v + 1), rng.normal(size=(2, 2))) for v in range(29)]
    plain, more = (
        FactorGraph.from_log_tables([2] * 30, [*tables, *constant])
        for constant in ([], [((3, 20), np.full((2, 2), 0.5))])
    )
    expected = reference.solve(plain, method="bucket_tree", cache=False, solvers=solvers)
    for options in ({}, {"order": range(30)}, {"max_bytes": 2**13}):
        answer = reference.solve(more, method="bucket_tree", cache=False, solvers=solvers, **options)
        assert answer.log_z == pytest.approx(expected.log_z + 0.5, rel=1e-13)
        np.testing.assert_allclose(answer.probabilities, expected.probabilities, rtol=0, atol=1e-13)


@pytest.mark.parametrize("method", ["enumeration", "bucket_tree"])
def test_draws_have_the_models_distribution(small_model, method):
    states = reference.sample(small_model, 20_000, seed=11, method=method)
    assert states.shape == (20_000, small_model.num_variables)
    assert states.dtype == np.int64
    assert keeps_law(small_model, states.T)


def _model(method: str) -> PairwiseModel:
    """Eight variables of the kind that the method wants, numbered at random."""
    rng = np.random.default_rng(8)
    new = rng.permutation(8)
    edges = {
        "grid": [(0, 1), (1, 2), (2, 3), (4, 5), (5, 6), (6, 7), (0, 4), (1, 5), (2, 6), (3, 7)],
        "rbm": [(i, j) for i in range(3) for j in range(3, 8)],
        "exchangeable": [(i, j) for i in range(3) for j in range(3, 6)] + [(0, 6), (1, 6), (2, 7)],
    }[method]
    if method == "exchangeable":  # classes {0, 1}, bridged by 6, {2} with the leaf 7, and {3, 4, 5}
        biases = np.array([-1.0, -1.0, 0.4, -1.5, -1.5, -1.5, 0.3, -0.6])
        return PairwiseModel.from_edges(biases[new.argsort()], new[np.array(edges)], np.full(12, 0.8))
    return PairwiseModel.from_edges(rng.normal(size=8), new[np.array(edges)], 1.5 * rng.normal(size=len(edges)))


@pytest.mark.parametrize("method", ["rbm", "exchangeable"])
def test_draws_of_the_special_solvers(method):
    model = _model(method)
    assert keeps_law(model, answers.sample(model, 40_000, seed=5, method=method).T)


def test_draws_from_a_grid_are_those_of_bucket_elimination():
    model = _model("grid")
    assert keeps_law(model, answers.sample(model, 40_000, seed=5).T)
    with pytest.raises(UnsupportedError, match="gives no samples"):
        answers.sample(model, 10, method="grid")


def test_draws_from_a_larger_grid_have_its_marginals():
    """Pair means too, over which the marginals say nothing."""
    rng = np.random.default_rng(2)
    site = np.arange(36).reshape(6, 6)
    edges = [*zip(site[:, :-1].ravel(), site[:, 1:].ravel(), strict=True)]
    edges += [*zip(site[:-1].ravel(), site[1:].ravel(), strict=True)]
    model = PairwiseModel.from_edges(rng.normal(size=36), edges, 1.5 * rng.normal(size=60))
    compiled = answers.numba_solvers()
    first = reference.sample(model, 30_000, seed=1, method="bucket_tree", solvers=compiled)
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
