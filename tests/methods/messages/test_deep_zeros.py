"""Belief propagation: its pair beliefs, and zeros on loops that exclude states."""

from __future__ import annotations

import numpy as np
import pytest
import random_models

import spinbench
from spinbench import reference
from spinbench.api import Precision
from spinbench.api.estimate import verdict
from spinbench.errors import ModelError
from spinbench.mathematics.graphs.lowering import lower
from spinbench.methods.messages.bp import BeliefPropagation, choose
from spinbench.models import FactorGraph, PairwiseModel, generators

RUNS = [("numpy", "parallel"), ("numba", "parallel"), ("numba", "sequential"), ("numba", "residual")]
# Of `tangled`: flooding excludes one state, and then the other, in turns; without a floor its messages never end.
FLOODED = (4, 23, 25)


def tangled(seed: int) -> FactorGraph:
    """Fourteen factors of order 3 over eight variables; four in ten entries are zero, and one state never is."""
    rng = np.random.default_rng(seed)
    alive = rng.integers(2, size=8)
    tables = []
    for _ in range(14):
        scope = rng.permutation(8)[:3].tolist()
        table = rng.normal(size=(2, 2, 2))
        table[rng.random(table.shape) < 0.4] = -np.inf
        table[tuple(alive[scope])] = 0.0
        tables.append((scope, table))
    return FactorGraph.from_log_tables([2] * 8, tables)


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize(("backend", "schedule"), RUNS)
def test_no_message_leaves_the_finite(backend: str, schedule: str, precision: Precision) -> None:
    looked = 0
    for seed in range(30):
        try:
            options = {"schedule": schedule, "restarts": 2, "simplify": False}
            result = spinbench.run(tangled(seed), "bp", backend, 400, chains=2, precision=precision, **options)
        except ModelError:  # arc consistency leaves nothing
            continue
        looked += 1
        assert ((result.marginals >= 0) & (result.marginals <= 1)).all()
        assert result.diagnostics["residual"] <= -2 * lower(tangled(seed)).floor
        if result.log_z is None:
            assert result.status == "not converged"
        else:
            assert abs(result.log_z) < 100
    assert looked > 20


@pytest.mark.parametrize("backend", ["numpy", "numba", "jax"])
def test_messages_that_contradict_each_other_give_no_log_z(backend: str) -> None:
    result = spinbench.run(tangled(FLOODED[0]), "bp", backend, 400, schedule="parallel", chains=1, simplify=False)
    assert (result.log_z, result.status) == (None, "not converged")


@pytest.mark.parametrize("seed", FLOODED)
def test_messages_that_follow_one_another_end_where_flooding_does_not(seed: int) -> None:
    model = tangled(seed)
    result = spinbench.run(model, "bp", "numba", 400, chains=1)
    assert result.status == "ok"
    assert result.log_z == pytest.approx(spinbench.exact(model, cache=False).log_z, abs=0.5)


def test_a_loop_without_any_state_is_not_noticed() -> None:
    """No message can tell: those of each factor allow both states."""
    equal, apart = np.where(np.eye(2), 0.0, -np.inf), np.where(np.eye(2), -np.inf, 0.0)
    loop = FactorGraph.from_log_tables([2, 2, 2], [((0, 1), equal), ((1, 2), equal), ((0, 2), apart)])
    assert np.isfinite(spinbench.run(loop, "bp", "numba", 400, simplify=False).log_z)


def test_what_is_not_finite_is_not_converged() -> None:
    """As a plugin's messages may be: the estimate says nothing, and raises nothing."""
    method, model = BeliefPropagation(restarts=2), tangled(FLOODED[0])
    tables = method.plan(model)
    trace = spinbench.api.trace.Trace(method.reductions)
    messages = np.full((len(tables.incidence.target), 2), np.inf)
    trace.add({"messages": messages, **{name: np.ones(2) for name in ("residual", "iterations", "converged")}}, 1)
    estimate = method.estimate(model, tables, trace)
    assert (estimate.marginals, estimate.log_z, verdict(estimate)) == (None, None, "not converged")


def test_a_restart_with_a_log_z_is_chosen_before_one_without() -> None:
    log_z, residual = np.array([np.nan, 1.0, 2.0]), np.array([0.0, 0.3, 0.2])
    assert choose(log_z, residual, np.array([False, False, False])) == 2
    assert choose(log_z, residual, np.array([False, True, False])) == 1
    assert choose(np.full(3, np.nan), residual, np.array([False, False, False])) == 0


BACKENDS = ["numpy", "numba", "jax"]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("zeros", [0.0, 0.4])
def test_factors_of_trees(backend: str, zeros: float) -> None:
    for seed in range(4):
        model = random_models.tree(np.random.default_rng(seed), 5, zeros)
        result = spinbench.run(model, "bp", backend, 100)
        assert result.status == "ok"
        for found, expected in zip(result.pairs, reference.pairs(model), strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("backend", BACKENDS)
def test_edges_of_trees(backend: str) -> None:
    model = generators.tree(20, seed=3)
    np.testing.assert_allclose(spinbench.run(model, "bp", backend, 100).pairs, reference.pairs(model), atol=1e-8)
    grouped = PairwiseModel.from_edges(
        [0.3, 0.1, -1.0, 0.2, 0.7], [[0, 1], [0, 4], [1, 4], [2, 3], [3, 4]], [1.0, 0.7, -2.0, 0.0, 0.4],
        groups=[(0, 1, 2), (3,)],
    )  # fmt: skip
    found = spinbench.run(grouped, "bp", backend, 100).pairs
    np.testing.assert_allclose(found, reference.pairs(grouped), atol=1e-8)


def test_sums_agree_with_the_marginals_on_loops() -> None:
    model = generators.grid(5, 5, seed=2)
    result = spinbench.run(model, "bp", "numba", 1000)
    assert result.status == "ok"
    p, both = result.marginals[model.edges], result.pairs
    assert (both <= p.min(axis=1) + 1e-9).all()
    assert (both >= p.sum(axis=1) - 1 - 1e-9).all()
    graph = spinbench.models.to_factor_graph(model)
    tables = spinbench.run(graph, "bp", "numba", 1000).pairs
    marginals = spinbench.run(graph, "bp", "numba", 1000).marginals
    for factor, table in zip(graph.factors, tables, strict=True):
        shaped = table.reshape(factor.log_table.shape)
        for axis, v in enumerate(factor.scope):
            sums = shaped.sum(axis=tuple(k for k in range(shaped.ndim) if k != axis))
            assert sums[1] == pytest.approx(marginals[v], abs=1e-7)


def test_messages_that_still_move_give_none() -> None:
    model = generators.complete(10, seed=2)
    assert spinbench.run(model, "bp", "numba", 1).pairs is None
    assert spinbench.run(model, "bp", "numba", 1).marginals is not None
    assert all(point.estimate.pairs is None for point in spinbench.run(generators.tree(9), "bp", "numba").trajectory)
