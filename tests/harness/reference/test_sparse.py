"""Elimination over what zeros leave possible, against enumeration; and where it answers for `exact`."""

from __future__ import annotations

import math

import numpy as np
import pytest

from spinbench import reference
from spinbench.errors import IntractableError, ModelError
from spinbench.models import FactorGraph
from spinbench.reference.problem import NotApplicableError, Problem
from spinbench.reference.solver import PrecisionError, ZeroWeightError
from spinbench.reference.sparse import tables
from spinbench.reference.sparse.tree import SparseTree


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
    solver.most_bytes = 2**18
    assert solver.memory(marginals=True) == 0
    with pytest.raises(PrecisionError, match="even what its zeros leave possible"):
        solver.solve(marginals=False)


def test_needs_zeros() -> None:
    with pytest.raises(NotApplicableError, match="hard zeros"):
        SparseTree.build(Problem(FactorGraph.from_log_tables([2, 3], [([0, 1], np.ones((2, 3)))])))
