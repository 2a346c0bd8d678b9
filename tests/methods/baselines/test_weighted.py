"""Importance and rejection sampling: densities and bounds of proposals, answers and doubts, by enumeration."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest

import spinbench
from spinbench.errors import SpinbenchError, UnsupportedError
from spinbench.inference import binding
from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.methods.baselines.proposals import Kind, forest
from spinbench.methods.baselines.weighted import Importance, Rejection
from spinbench.models import FactorGraph, generators
from spinbench.testing import limits

CARDS = (2, 3, 2, 3, 2)
SCOPES = {
    "tree": [(1, 0), (1, 2), (3, 1), (3, 4), (3,)],
    "loop": [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (1, 0), (1,)],
    "order three": [(2, 0, 1), (1, 3), (4, 2, 3), (0,), ()],
    "zeros": [(2, 0, 1), (1, 3), (4, 2, 3), (3, 1)],
    "apart": [(0, 1), (3,)],
}


def graph(kind: str) -> FactorGraph:
    rng = np.random.default_rng(7)
    factors = []
    for scope in SCOPES[kind]:
        table = rng.normal(size=[CARDS[v] for v in scope])
        if kind == "zeros":
            table.ravel()[rng.integers(0, table.size, 1 + table.size // 5)] = -np.inf
        factors.append((scope, table))
    return FactorGraph.from_log_tables(CARDS, factors, log_constant=2.0, name=kind)


STATES = np.stack(np.meshgrid(*map(np.arange, CARDS), indexing="ij"), axis=-1).reshape(-1, len(CARDS))


@pytest.mark.parametrize("kind", SCOPES)
@pytest.mark.parametrize("proposal", get_args(Kind))
def test_the_density_sums_to_one_and_weights_keep_their_bounds(kind: str, proposal: Any) -> None:
    model = graph(kind)
    tables = factor_tables(model)
    law = forest(tables, proposal)
    above = [STATES[:, p] if p >= 0 else np.zeros(len(STATES), dtype=int) for p in law.parents]
    log_q = np.sum([law.logs[v][above[v], STATES[:, v]] for v in range(len(CARDS))], axis=0)
    assert np.exp(log_q).sum() == pytest.approx(1.0)
    weights = model.log_weight(STATES) - tables.log_constant - log_q
    assert weights.max() <= law.bounds[1] + 1e-9
    assert weights.min() >= law.bounds[0] - 1e-9
    if proposal == "bp_tree" and kind in ("tree", "apart"):
        assert law.bounds[1] - law.bounds[0] < 1e-9
        assert law.bounds[1] + tables.log_constant == pytest.approx(spinbench.exact(model).log_z)


def test_mean_field_is_a_stationary_point() -> None:
    """E_q log p* - log q rises along no change of one variable's law."""
    model = graph("loop")
    law = forest(factor_tables(model), "mean_field")
    q = [np.exp(log[0]) for log in law.logs]

    def bound(q: list[Any]) -> float:
        p = np.prod([q[v][STATES[:, v]] for v in range(len(CARDS))], axis=0)
        return float(p @ (model.log_weight(STATES) - np.log(p)))

    best, rng = bound(q), np.random.default_rng(0)
    for v in range(len(CARDS)):
        moved = q[v] * np.exp(0.05 * rng.normal(size=CARDS[v]))
        assert bound([*q[:v], moved / moved.sum(), *q[v + 1 :]]) < best


@pytest.mark.parametrize("backend", ["numpy", "numba", "jax"])
def test_accepted_draws_have_the_exact_law(backend: str) -> None:
    model = graph("zeros")
    method = Rejection()
    tables = method.plan(model)
    engine = binding.bind(method, backend, model, tables, precision="float64").engine
    state, found = engine.init(1, np.zeros((len(CARDS), 2000), dtype=np.int8)), []
    for _ in range(4):
        state, seen = engine.advance(state, 1)
        ends = np.cumsum(CARDS)[:-1]
        x = np.array([part.argmax(axis=0) for part in np.split(seen["s"], ends)])
        found.append(np.ravel_multi_index(tuple(x[:, seen["kept"] > 0]), CARDS))
    log_p = model.log_weight(STATES)
    p = np.exp(log_p - np.logaddexp.reduce(log_p))
    statistic, degrees = limits.likelihood_ratio(np.bincount(np.concatenate(found), minlength=len(p)), p)
    assert degrees > 5
    assert statistic < limits.chi_square_limits(degrees, 1)[1]


@pytest.mark.parametrize("kind", ["loop", "order three", "zeros"])
@pytest.mark.parametrize("name", ["importance", "rejection"])
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_answers_agree_with_enumeration(name: str, kind: str, backend: str) -> None:
    model = graph(kind)
    exact = spinbench.exact(model)
    found = spinbench.run(model, name, backend, budget=600, chains=16, seed=3)
    assert found.status == "ok"
    for got, error, want in zip(found.marginals, found.marginals_se, exact.marginals, strict=True):
        assert (np.abs(got - want) < 4 * error + 1e-9).all()
        assert (error < 0.05).all()
    assert abs(found.log_z - exact.log_z) < 4 * found.log_z_se < 0.3


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_a_forest_is_its_own_proposal(backend: str) -> None:
    model = generators.tree(n=40, seed=1)
    found = spinbench.run(model, "importance", backend, budget=10, chains=16)
    assert found.log_z_kind == "exact"
    assert found.log_z == pytest.approx(spinbench.exact(model).log_z)
    assert found.diagnostics["effective_draws"] == pytest.approx(160)


def test_weights_that_have_not_seen_all_are_doubted() -> None:
    """Of two wells a proposal may know one; the weights that it draws do not tell, their bound does."""
    wells = FactorGraph.from_log_tables([2] * 6, [((i, (i + 1) % 6), 12.0 * np.eye(2)) for i in range(6)])
    assert "log Z unresolved" in spinbench.run(wells, "importance", "numpy", budget=50, proposal="uniform").status
    glass = generators.grid(rows=8, cols=8, c2=2.0)
    found = spinbench.run(glass, "importance", "numpy", budget=50)
    assert found.status == "marginals too short, log Z unresolved"
    assert found.log_z_se == np.inf


def test_rejection_refuses_where_too_little_would_be_accepted() -> None:
    with pytest.raises(UnsupportedError, match=r"^rejection: of draws of proposal=bp_tree for .* would be accepted"):
        spinbench.run(generators.grid(rows=8, cols=8, c2=2.0), "rejection", "numpy", budget=10)


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(SpinbenchError, match="importance: proposal='tree' was given; bp_tree, mean_field, uniform"):
        Importance(proposal="tree")  # type: ignore[arg-type]
