"""Exact answers for networks that are too wide as they are: from parts, and over what zeros leave possible."""

from __future__ import annotations

import contextlib
import dataclasses
import math

import numpy as np
import pytest

import spinbench
from spinbench import reference
from spinbench.errors import IntractableError, ModelError
from spinbench.measuring import result_metrics
from spinbench.models import FactorGraph, condition
from spinbench.models.networks import bayesian_network
from spinbench.reference import cache
from spinbench.reference.choice import DEFAULT_SECONDS, Limits, candidates, first_answer
from spinbench.reference.elimination import slices
from spinbench.reference.problem import NotApplicableError, Problem
from spinbench.reference.solver import PrecisionError, ZeroWeightError
from spinbench.reference.sparse import prediction, tables
from spinbench.reference.sparse import tree as sparse_tree
from spinbench.reference.sparse.prediction import estimate_size
from spinbench.reference.sparse.tree import Limits as RowLimits
from spinbench.reference.sparse.tree import SparseTree, eliminate

SMALL = {"layers": 3, "width": 6, "observed": 1, "states": 2}


def in_little(model: FactorGraph, monkeypatch: pytest.MonkeyPatch, max_bytes: int, **options) -> reference.ExactAnswer:
    """The answer without slices."""
    monkeypatch.setattr(slices, "MAX_SLICES", 0)
    return reference.solve(model, max_bytes=max_bytes, **{"cache": False} | options)


def test_parts_tell_what_the_whole_does(monkeypatch: pytest.MonkeyPatch) -> None:
    split = 0
    for seed in range(12):
        options = {"states": 3, "width": 4, "determinism": 0.8} if seed % 2 else {}
        model = bayesian_network(**SMALL | options, seed=seed)
        expected = reference.solve(model, method="bucket_tree", cache=False)
        for max_bytes in 2 ** np.arange(9, 20):  # up to the least that gives all marginals
            try:
                found = in_little(model, monkeypatch, int(max_bytes), method="bucket_tree")
            except IntractableError:
                continue
            assert found.log_z == pytest.approx(expected.log_z, abs=1e-10)
            known = np.isfinite(found.flat)
            np.testing.assert_allclose(found.flat[known], expected.flat[known], atol=1e-10)
            split += found.width < expected.width
            if known.all():
                break
        assert known.all()
    assert split > 12


def test_a_network_without_evidence_has_log_z_zero_and_open_marginals(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("SPINBENCH_CACHE_DIR", str(tmp_path))
    model = bayesian_network(layers=4, width=12, parents=3, observed=0, seed=1)
    found = in_little(model, monkeypatch, 2**13, cache=True)
    open_marginals = int(np.isnan(found.probabilities).sum())
    assert found.log_z == pytest.approx(0.0, abs=1e-12)
    assert 0 < open_marginals < 48
    assert reference.solve(model, max_bytes=2**13).cached
    for limits in (Limits(2**14, DEFAULT_SECONDS), Limits(2**13, 2 * DEFAULT_SECONDS)):  # more may be in reach
        assert cache.load(model, "auto", limits, marginals=True) is None
    result = spinbench.run(model, "exact", "numpy", max_gib=2**-17)
    assert result.diagnostics["open_marginals"] == np.isnan(result.marginals).sum() > 0
    told = spinbench.exact(model, max_gib=2**-17)
    assert told.diagnostics["open_marginals"] == open_marginals
    whole = spinbench.exact(model, cache=False)
    assert "open_marginals" not in whole.diagnostics
    np.testing.assert_allclose(told.marginals, np.where(np.isnan(told.marginals), np.nan, whole.marginals), atol=1e-10)
    off = dataclasses.replace(whole, marginals=whole.marginals + 0.1)
    numbers, _ = result_metrics.result_metrics(off, told, {})
    assert numbers["marginal_rmse"]["value"] == pytest.approx(0.1)


def test_parts_stand_where_two_tables_together_leave_a_parent_one_state(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    size = 12
    pairs = [(v, (v + step) % size) for v in range(size) for step in (1, 2)]
    factors = [(pair, rng.normal(size=(2, 2))) for pair in pairs]
    # Each leaves variable `size` both states; their product does not.
    factors += [((size, 0), [[0.0, 1.0], [-np.inf, 0.0]]), ((0, size), [[0.5, 0.0], [1.0, -np.inf]])]
    child = np.log(rng.dirichlet(np.ones(3), size=(2,) * 5))
    factors.append(((size, 1, 4, 7, 10, size + 1), child))
    model = FactorGraph.from_log_tables((2,) * (size + 1) + (3,), factors)
    expected = reference.solve(model, method="enumeration", cache=False)
    answers = []
    for max_bytes in 2 ** np.arange(9, 16):
        with contextlib.suppress(IntractableError):
            answers.append(in_little(model, monkeypatch, int(max_bytes), method="bucket_tree"))
    assert answers
    for found in answers:
        assert found.log_z == pytest.approx(expected.log_z, abs=1e-10)
        known = np.isfinite(found.flat)
        np.testing.assert_allclose(found.flat[known], expected.flat[known], atol=1e-10)
    assert known.all()


def test_predictions_count_the_parts_and_a_short_budget_leaves_them_open() -> None:
    model = bayesian_network(width=30, seed=1)
    found = reference.solve(model, max_bytes=2**24, cache=False)
    assert found.cost is not None
    of_core = reference.solve(model, marginals=False, cache=False).cost
    assert of_core is not None
    assert found.cost.seconds > of_core.seconds
    short = reference.solve(model, max_bytes=2**24, seconds=4e-3, cache=False)
    assert short.log_z == pytest.approx(found.log_z, abs=1e-10)
    assert np.isnan(short.flat).sum() > np.isnan(found.flat).sum()


def test_slices_of_the_whole_leave_no_marginal_open() -> None:
    model = bayesian_network(layers=4, width=12, parents=3, observed=0, seed=1)
    found = reference.solve(model, max_bytes=2**15, cache=False)
    assert found.cost is not None
    assert found.cost.slices > 1
    np.testing.assert_allclose(found.flat, reference.solve(model, cache=False).flat, atol=1e-10)


def test_log_z_alone_needs_no_parts() -> None:
    model = bayesian_network(seed=0)
    assert reference.solve(model, marginals=False, cache=False, max_bytes=2**14).width < 6
    with pytest.raises(IntractableError, match="bucket_tree"):
        reference.solve(model, cache=False, max_bytes=2**8)


def test_draws_of_a_wide_network_are_drawn_from_what_is_left() -> None:
    network = bayesian_network(layers=3, width=8, parents=2, observed=0, determinism=0.2, seed=4)
    model = condition(network, {23: 0, 20: 1})
    solvers = candidates(Problem(model), "bucket_tree", reference.NUMPY_SOLVERS, sampling=True)
    with pytest.raises(IntractableError):
        first_answer(Problem(model), solvers, Limits(2**10), lambda each: each.solve(marginals=True), marginals=True)
    states = reference.sample(model, 20_000, seed=3, method="bucket_tree", max_bytes=2**12)
    assert np.isfinite(model.log_weight(states)).all()
    exact = reference.solve(model, cache=False).probabilities
    z = (states.mean(axis=0) - exact) / np.sqrt(np.maximum(exact * (1 - exact), 1e-12) / len(states))
    assert np.abs(z[(exact > 0) & (exact < 1)]).max() < 4.5


def all_different(states: int) -> FactorGraph:
    unlike = np.where(np.eye(states, dtype=bool), -np.inf, 0.0)
    pairs = [(i, j) for i in range(states) for j in range(i)]
    return FactorGraph.from_log_tables([states] * states, [(pair, unlike) for pair in pairs])


@pytest.fixture(params=["by place", "sorted"])
def index(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to find rows, and both scales of sums."""
    if request.param == "sorted":
        monkeypatch.setattr(tables, "_SMALL", -1)
        monkeypatch.setattr(tables, "_DENSE", -1)
        monkeypatch.setattr(tables, "RANGE", -1)


@pytest.mark.usefixtures("index")
def test_random_models(random_graph) -> None:
    rng, known = np.random.default_rng(5), 0
    for seed in range(60):
        model = random_graph(int(rng.integers(2, 8)), int(rng.integers(1, 12)), 0.7 * rng.random(), seed)
        try:
            problem = Problem(model)
            solver = SparseTree.build(problem)
        except (ModelError, NotApplicableError):
            continue
        try:
            expected = reference.solve(model, method="enumeration", cache=False)
        except ModelError:
            with pytest.raises(ZeroWeightError):
                solver.solve(marginals=False)
            continue
        log_z, flat = solver.solve(marginals=True)
        assert log_z == pytest.approx(expected.log_z, abs=1e-11)
        np.testing.assert_allclose(problem.decode_marginals(flat), np.concatenate(expected.marginals), atol=1e-12)
        known += 1
    assert known > 20


def test_large_and_small_weights_do_not_underflow() -> None:
    table = np.array([[0.0, -np.inf], [-2000.0, -2001.0]])
    model = FactorGraph.from_log_tables([2, 2, 2], [([0, 1], table), ([1, 2], table.T), ([0], [-3000.0, 0.0])])
    log_z, _ = SparseTree.build(Problem(model)).solve(marginals=True)
    assert log_z == pytest.approx(reference.solve(model, method="enumeration", cache=False).log_z, rel=1e-14)


def test_draws_have_the_marginals() -> None:
    unlike = np.where(np.eye(3, dtype=bool), -np.inf, 0.0)
    ring = [([v, (v + 3) % 7], unlike) for v in range(7)]
    model = FactorGraph.from_log_tables([3] * 7, [*ring, ([2], [0.0, 1.0, -1.0]), ([3], [0.5, 0.0, 0.0])])
    problem = Problem(model)
    solver, count = SparseTree.build(problem), 20_000
    states = problem.origin.lift(solver.sample(count, np.random.default_rng(0)))
    assert (model.log_weight(states) > -np.inf).all()
    for v, p in enumerate(reference.solve(model, cache=False).marginals):
        seen = np.bincount(states[:, v], minlength=len(p)) / count
        assert np.all(np.abs(seen - p) <= 4.5 * np.sqrt(p * (1 - p) / count) + 1e-12)


def test_exact_answers_where_whole_tables_are_too_large() -> None:
    model = all_different(7)
    answer = reference.solve(model, cache=False, max_bytes=3 * 2**23, method="bucket_tree")
    assert answer.log_z == pytest.approx(math.log(math.factorial(7)), rel=1e-13)
    np.testing.assert_allclose(np.array(answer.marginals), 1 / 7, atol=1e-13)
    with pytest.raises(IntractableError, match="meets width 6 and would take"):
        reference.solve(model, cache=False, max_bytes=2**10, method="bucket_tree")


def test_rows_are_counted_before_they_are_made() -> None:
    solver = SparseTree.build(Problem(all_different(7)))
    assert solver.memory(marginals=True) > 2**18
    solver.most_bytes = 2**18
    with pytest.raises(PrecisionError, match="what its zeros leave possible"):
        solver.solve(marginals=False)


def test_an_elimination_ends_long_after_its_prediction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_tree, "OVERRUN", 0.0)
    monkeypatch.setattr(sparse_tree, "MIN_LIMIT_SECONDS", -1.0)
    with pytest.raises(PrecisionError, match="more memory or time than is allowed"):
        SparseTree.build(Problem(all_different(7))).solve(marginals=False)


@pytest.mark.parametrize("seed", range(4))
def test_rows_are_estimated_from_a_few_states(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    problem = Problem(bayesian_network(layers=4, width=10, states=3, determinism=0.9, observed=0, seed=seed))
    network, order = problem.network, problem.order.order.tolist()
    every = network.tables, network.cardinalities, order
    rows = estimate_size(*every).rows
    eliminate(network.tables, network.constant, *every[1:], RowLimits(rows))
    with pytest.raises(tables.TooManyError):
        eliminate(network.tables, network.constant, *every[1:], RowLimits(rows - 1))
    monkeypatch.setattr(prediction, "MAX_ROWS", 2**8)
    monkeypatch.setattr(prediction, "N_ESTIMATES", 40)
    monkeypatch.setattr(prediction, "ESTIMATE_SECONDS", math.inf)
    assert rows > 2**10
    assert rows / 2 < estimate_size(*every).rows < 2 * rows


@pytest.mark.usefixtures("index")
def test_estimates_stand_contradictions_of_the_states_that_they_try(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prediction, "MAX_ROWS", 3)
    monkeypatch.setattr(prediction, "ESTIMATE_SECONDS", math.inf)
    rng = np.random.default_rng(0)
    for seed in range(20):
        factors = []
        for _ in range(16):
            # Each state goes with another one, so that none is ruled out beforehand.
            table = np.where(np.eye(3)[rng.permutation(3)] + (rng.random((3, 3)) < 0.2), 0.0, -np.inf)
            factors.append((rng.choice(9, 2, replace=False).tolist(), table))
        network = Problem(FactorGraph.from_log_tables([3] * 9, factors)).network
        size = len(network.cardinalities)
        assert estimate_size(network.tables, network.cardinalities, range(size), seed=seed).rows >= 0


def test_what_zeros_leave_is_refused_by_its_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparseTree, "solve", None)
    unlike = np.where(np.eye(4, dtype=bool), -np.inf, 0.0)
    model = FactorGraph.from_log_tables([4] * 40, [((i, j), unlike) for i in range(40) for j in range(i % 5, i, 3)])
    with pytest.raises(IntractableError, match="over what its zeros leave possible meets width"):
        reference.solve(model, cache=False, max_bytes=2**16, seconds=1.0, method="bucket_tree")


def test_needs_zeros() -> None:
    with pytest.raises(NotApplicableError, match="hard zeros"):
        SparseTree.build(Problem(FactorGraph.from_log_tables([2, 3], [([0, 1], np.ones((2, 3)))])))
