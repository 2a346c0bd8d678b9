"""Difficult models of the gauged methods: each ends in a verified bound, near log Z, and alike on each backend."""

from __future__ import annotations

from typing import Any

import gauge_models as zoo
import numpy as np
import pytest

import spinbench
from spinbench.methods.gauge.ascent import point_mass
from spinbench.methods.gauge.ascent.linear import BandSolver
from spinbench.methods.gauge.bounds import lower_bound_tables, partial_sums
from spinbench.models import Factor, FactorGraph, Model
from spinbench.models.forney import build
from spinbench.models.networks import gauge_complete

METHODS = ("forney_mf", "g_mf", "g_bp", "g_bp_single", "g_bp_multiple", "g_bp_sequential")
GAUGED = METHODS[1:]
MANY_EDGES = [(0, 1), (0, 1), (0, 1), (1, 2), (2, 3), (2, 3), (0, 3)]
TRIPLES = [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)]


def random(edges: list[tuple[int, int]], spread: float, seed: int) -> FactorGraph:
    return zoo.random_tables(edges, spread, np.random.default_rng(seed)).to_factor_graph()


def with_zeros() -> FactorGraph:
    model = zoo.random_tables(zoo.complete(4), 0.4, np.random.default_rng(11))
    tables = [np.array(table) for table in model.log_tables]
    tables[0][0, 1, 1] = tables[2][1, 0, 0] = -np.inf
    return build.from_log_tables(model.edges, tables).to_factor_graph()


def apart() -> FactorGraph:
    """A loop, a variable alone, two in no factor, and a factor of none."""
    rng, factors = np.random.default_rng(6), [((0,), [0.0, 0.4]), ((), np.array(0.7))]
    for a in range(4):
        scope = tuple(1 + e for e, ends in enumerate(zoo.GRAPHS["complete"]) if a in ends)
        factors.append((scope, rng.normal(size=(2, 2, 2))))
    return FactorGraph.from_log_tables([2] * 9, factors, log_constant=-2.0)


RNG = np.random.default_rng(5)
MODELS: dict[str, Model] = {
    "two edges": random(zoo.GRAPHS["parallel"], 0.5, 1),
    "three edges": random(zoo.GRAPHS["triple"], 0.5, 1),
    "many edges": random(MANY_EDGES, 0.6, 5),
    "complete": random(zoo.complete(4), 0.6, 5),
    "zeros": with_zeros(),
    # the identity gauge is infeasible, and a search for an interior point comes first
    "equality nodes": FactorGraph.from_log_tables([2] * 4, [(s, RNG.normal(size=(2, 2, 2))) for s in TRIPLES]),
    "huge weights": random(zoo.complete(4), 60.0, 7),
    "apart": apart(),
    "tree": random([(0, 1), (1, 2), (1, 3)], 1.0, 0),
    "strong": gauge_complete(4, 1.0, seed=2),
    "network": gauge_complete(5, 0.5, seed=3),
}
QUICK: dict[str, Any] = {"restarts": 0, "field_starts": 2}
CASES: list[tuple[str, str, dict[str, Any], float]] = [
    *((name, model, {"merge": 0}, 0.6) for name in METHODS for model in ("two edges", "three edges")),
    *((name, model, {}, 0.6) for name in METHODS for model in ("two edges", "three edges", "many edges", "complete")),
    *((name, "equality nodes", {"merge": 0}, 1.0) for name in ("g_bp_multiple", "g_bp_sequential", "g_mf")),
    *((name, "zeros", {"merge": 0}, 2.0) for name in ("forney_mf", "g_mf", "g_bp")),
    ("g_bp_multiple", "huge weights", {}, 5.0),
    *((name, "apart", {}, 1.0) for name in ("g_bp_multiple", "g_mf")),
    *((name, "tree", {}, 1e-9) for name in ("g_bp", "g_bp_multiple", "g_mf")),
    *((name, "network", {}, 2.0) for name in METHODS),
    *(("g_bp_multiple", "strong", {"labels": labels}, 5.0) for labels in ("zero", "best", "greedy")),
]
ON_JAX = [case for case in CASES if case[1] in ("many edges", "zeros", "strong")]


def bound(model: Model, name: str, backend: str = "numpy", **settings: Any) -> Any:
    """The result of a run to its end, a lower bound in any case."""
    quick = QUICK if name == "g_mf" else {}
    result = spinbench.run(model, name, backend, "20000 samples", **{**quick, **settings})
    assert result.log_z_kind == "lower"
    assert result.log_z <= spinbench.exact(model, cache=False).log_z + 1e-9
    return result


@pytest.mark.parametrize(("name", "model", "settings", "gap"), CASES, ids=str)
def test_bounds_are_near_log_z(name: str, model: str, settings: dict[str, Any], gap: float) -> None:
    result, exact = bound(MODELS[model], name, **settings), spinbench.exact(MODELS[model], cache=False)
    assert result.log_z > exact.log_z - gap
    assert result.status == "ok" or model == "huge weights"
    if model in ("apart", "tree") and result.marginals is not None:
        known = [0, 7, 8] if model == "apart" else slice(None)
        np.testing.assert_allclose(result.marginals[known], exact.marginals[known], rtol=0, atol=1e-10)


@pytest.mark.parametrize(("name", "model", "settings", "gap"), ON_JAX, ids=str)
def test_jax_finds_the_same(name: str, model: str, settings: dict[str, Any], gap: float) -> None:
    """As Numba does by NumPy's own steps."""
    plain, other = (bound(MODELS[model], name, each, **settings) for each in ("numpy", "jax"))
    assert other.status == plain.status
    assert other.log_z == pytest.approx(plain.log_z, abs=1e-3 if model == "zeros" else 1e-5)


def test_zeros_that_no_gauge_escapes_leave_the_weight_of_a_mode() -> None:
    """Every node allows one state only, so that no interior point exists."""
    table = np.full((2, 2, 2), -np.inf)
    table[0, 1, 0] = 0.3
    model = FactorGraph.from_log_tables([2, 2, 2], [((0, 1, 2), table), ((0, 1, 2), table)])
    result = bound(model, "g_bp", merge=0, simplify=False)
    assert result.log_z == pytest.approx(0.6, abs=1e-12)


@pytest.mark.parametrize("name", GAUGED)
def test_an_optimiser_that_stalls_leaves_a_bound_and_says_so(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every direction goes downhill, so that no step raises the objective."""
    sound = BandSolver.ascent

    def downhill(*arguments: Any) -> Any:
        direction, shift = sound(*arguments)
        return -direction, shift

    monkeypatch.setattr(BandSolver, "ascent", downhill)
    model = gauge_complete(4, 0.5, seed=4)
    result = bound(model, name)
    assert result.log_z >= max(model.log_weight(np.arange(64)[:, None] >> np.arange(6) & 1)) - 1e-9
    if name == "g_mf":  # mean field, which needs no gauge, may be the best that is found
        assert result.log_z >= bound(model, "forney_mf").log_z - 1e-6
    else:
        assert (result.status, result.diagnostics["stalled"]) == ("not converged", 1.0)


def test_steps_that_are_used_up_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    start, _, formulas = point_mass.continuation.__defaults__
    monkeypatch.setattr(point_mass.continuation, "__defaults__", (start, 2, formulas))
    result = bound(gauge_complete(4, 0.5, seed=4), "g_bp")
    ends = result.status, result.diagnostics["out_of_steps"], result.diagnostics["stalled"]
    assert ends == ("not converged", 1.0, 0.0)


@pytest.mark.parametrize("graph", zoo.GRAPHS)
def test_corrections_are_the_terms_with_at_most_one_and_two_ones(graph):
    model = zoo.random_tables(zoo.GRAPHS[graph], 1.0, np.random.default_rng(3))
    tables = [group.tables for group in model.groups]
    states = np.arange(2**model.num_edges)[:, None] >> np.arange(model.num_edges) & 1
    weights, ones = model.log_weight(states), states.sum(axis=1)
    _, single, multiple = partial_sums(model, tables)
    assert zoo.point_mass_bound(model, tables) == pytest.approx(weights[0], abs=1e-12)
    assert single == pytest.approx(np.logaddexp.reduce(weights[ones <= 1]), abs=1e-12)
    assert multiple == pytest.approx(np.logaddexp.reduce(weights[ones <= 2]), abs=1e-12)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("method", "precision", "scale", "seed"),
    [
        ("g_mf", "float64", 700.0, 3),
        ("g_mf", "float64", 100.0, 1),
        ("g_bp", "float64", 100.0, 1),
        ("forney_mf", "float32", 100.0, 0),
    ],
)
def test_tables_beyond_the_range_of_floats_give_bounds_without_warnings(method, precision, scale, seed):
    """Of the first the best state has an entry of e^-744.7, which rounds to e^-744.4."""
    rng = np.random.default_rng(seed)
    ends = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    scopes = [tuple(e for e, pair in enumerate(ends) if node in pair) for node in range(4)]
    model = FactorGraph((2,) * 6, [Factor(scope, scale * rng.normal(size=(2, 2, 2))) for scope in scopes])
    found = spinbench.run(model, method, "numpy", 20, seed=seed, precision=precision).log_z
    assert found <= spinbench.exact(model).log_z


def test_gauges_with_negative_entries_give_no_bound():
    model = zoo.random_tables(zoo.complete(4), 0.3, np.random.default_rng(4))
    theta = np.zeros(12)
    assert lower_bound_tables(model, theta) is not None
    theta[0] = 1.2
    tables = zoo.transformed(model, theta.reshape(-1, 2))
    assert min((table / np.abs(table).max(axis=1, keepdims=True)).min() for table in tables) < -0.01
    assert lower_bound_tables(model, theta) is None
    theta[:2] = (0.9, 0.9 - np.pi / 2)  # singular
    assert lower_bound_tables(model, theta) is None
