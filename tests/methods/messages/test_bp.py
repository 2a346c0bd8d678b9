"""Belief propagation: exact on trees, the fixed points of others on loops, and honest about convergence."""

from __future__ import annotations

import numpy as np
import pytest
from random_models import enumerate_all, error, graph, grouped, pairwise, tree

from spinbench.inference import runner
from spinbench.inference.result import Result
from spinbench.models import FactorGraph, Model, PairwiseModel, catalogue, lattices, to_factor_graph

RUNS = [
    ("numpy", "parallel"),
    ("numba", "parallel"),
    ("numba", "sequential"),
    ("numba", "residual"),
]


def run(model: Model, backend: str = "numba", budget: int = 3000, **settings: object) -> Result:
    return runner.run(model, "bp", backend, budget, **{"chains": 1, "checkpoints": 1, "simplify": False} | settings)


def naive(model: FactorGraph, iterations: int) -> tuple[float, list[np.ndarray]]:
    """Flooding in the linear domain with one dictionary of messages, and Bethe's log Z: the yardstick."""
    factors = [f for f in model.factors if f.scope]
    to_v = {(a, v): np.ones(model.cardinalities[v]) for a, f in enumerate(factors) for v in f.scope}

    def cavity(v: int, without: int) -> np.ndarray:
        product = np.ones(model.cardinalities[v])
        for (a, u), message in to_v.items():
            if u == v and a != without:
                product = product * message
        return product / product.sum()

    def weighted(a: int, without: int) -> np.ndarray:
        scope = factors[a].scope
        joint = np.exp(factors[a].log_table)
        for axis, v in enumerate(scope):
            if v != without:
                joint = joint * cavity(v, a).reshape([-1 if k == axis else 1 for k in range(len(scope))])
        return joint

    for _ in range(iterations):
        new = {}
        for a, v in to_v:
            axes = tuple(k for k, u in enumerate(factors[a].scope) if u != v)
            message = weighted(a, v).sum(axis=axes)
            new[a, v] = message / message.sum()
        to_v = new
    beliefs = [cavity(v, -1) for v in range(model.num_variables)]
    log_z = model.log_constant + sum(float(f.log_table) for f in model.factors if not f.scope)
    degree = np.zeros(model.num_variables)
    for a, f in enumerate(factors):
        b = weighted(a, -1)
        b = b / b.sum()
        there = b > 0
        log_z += float((b[there] * (f.log_table[there] - np.log(b[there]))).sum())
        degree[list(f.scope)] += 1
    for v, b in enumerate(beliefs):
        log_z -= (1 - degree[v]) * float((b[b > 0] * np.log(b[b > 0])).sum())
    return log_z, beliefs


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize(("backend", "schedule"), RUNS)
def test_the_fixed_point_is_that_of_a_plain_implementation(backend: str, schedule: str, precision: str) -> None:
    """On factor graphs and pairwise models, with loops and without, where it is exact; damping does not move it."""
    rng = np.random.default_rng(1)
    models: list[Model] = [graph(rng, 5, 7, zeros, scale=0.5) for zeros in (0.0, 0.2) for _ in range(4)]
    models += [pairwise(rng, 7, 0.6, 0.7) for _ in range(4)]
    trees: list[Model] = [tree(rng, int(rng.integers(0, 5)), zeros) for zeros in (0.0, 0.4) for _ in range(6)]
    close = 1e-7 if precision == "float64" else 1e-4
    for model in models + trees:
        log_z, beliefs = enumerate_all(model) if model in trees else naive(to_factor_graph(model), 200)
        result = run(model, backend, schedule=schedule, damping=0.2, precision=precision)
        assert result.status == "ok"
        assert result.log_z == pytest.approx(log_z, abs=close)
        assert error(result.marginals, beliefs) < close


def test_jax_is_numpy() -> None:
    rng = np.random.default_rng(3)
    for model in (graph(rng, 6, 8, 0.2), grouped(rng)):
        one, other = (run(model, backend, 200, damping=0.1) for backend in ("jax", "numpy"))
        assert one.log_z == pytest.approx(other.log_z, abs=1e-9)
        np.testing.assert_allclose(np.hstack(one.marginals), np.hstack(other.marginals), atol=1e-9)
        assert abs(one.diagnostics["iterations"] - other.diagnostics["iterations"]) <= 2  # rounding


@pytest.mark.parametrize(("backend", "schedule"), RUNS)
def test_libdais_published_row(backend: str, schedule: str) -> None:
    """libDAI's testfast.out: BP max 8.924e-3, mean 3.480e-3, log Z +7.187e-4."""
    model = catalogue.load("libdai/testfast")
    result, exact = run(model, backend, schedule=schedule), runner.exact(model, cache=False)
    errors = np.abs(result.marginals - exact.marginals)
    assert result.status == "ok"
    assert f"{errors.max():.3e} {errors.mean():.3e}" == "8.924e-03 3.480e-03"
    assert f"{result.log_z - exact.log_z:.3e}" == "7.187e-04"


def test_known_failures_and_successes_are_reported() -> None:
    """Damped flooding on models of the UAI 2014 competition, as libDAI does on them."""
    found = {}
    for name in ("DBN_11", "DBN_14", "Grids_12", "Segmentation_12"):
        reference = catalogue.reference(f"uai14/{name}")
        result = run(catalogue.load(f"uai14/{name}"), budget=1000, schedule="parallel", damping=0.5)
        found[name] = result.status, float(np.abs(result.marginals - reference.marginals).max())
    assert found["DBN_11"][0] == "ok"
    assert found["DBN_11"][1] == pytest.approx(0.881, abs=5e-4)  # converged, and wrong
    assert found["Grids_12"][0] == "not converged"
    assert found["DBN_14"][0] == found["Segmentation_12"][0] == "ok"
    assert found["DBN_14"][1] < 5e-4
    assert found["Segmentation_12"][1] < 5e-4


def test_higher_orders_of_libdai_agree_on_all_schedules() -> None:
    for name in ("hoi1", "hoi2", "hoi3", "alarm"):
        model = catalogue.load(f"libdai/{name}")
        values = [run(model, backend, schedule=schedule).log_z for backend, schedule in RUNS]
        assert np.ptp(values) < 1e-8


def test_a_large_glass_converges_alike_with_odds_and_tables() -> None:
    """The two compiled forms and the arrays, on a 20 x 20 grid."""
    rng = np.random.default_rng(4)
    edges = lattices.grid_edges(20, 20)
    model = PairwiseModel.from_spins(0.3 * rng.normal(size=400), edges, 0.5 * rng.normal(size=len(edges)))
    results = [
        run(model, schedule="sequential"),
        run(model, schedule="sequential", damping=0.1),
        run(model, "numpy"),
    ]
    assert {r.status for r in results} == {"ok"}
    assert results[0].diagnostics["iterations"] < results[2].diagnostics["iterations"] / 2
    for r in results:
        assert r.log_z == pytest.approx(results[0].log_z, abs=1e-7)
        np.testing.assert_allclose(r.marginals, results[0].marginals, atol=1e-8)


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize(("backend", "schedule"), RUNS)
def test_strong_couplings_leave_no_nan(backend: str, schedule: str, precision: str) -> None:
    """Beyond the range of odds, and of exp."""
    for scale in (50.0, 500.0, 5000.0):
        model = pairwise(np.random.default_rng(5), 8, 0.3, scale)
        result = run(model, backend, 50, schedule=schedule, precision=precision)
        assert np.isfinite([result.log_z, *result.marginals]).all()


def test_renaming_states_of_a_pairwise_model_changes_nothing() -> None:
    """Without a field every marginal is 1/2, even where the symmetric fixed point is unstable."""
    edges = lattices.grid_edges(5, 5)
    model = PairwiseModel.from_spins(np.zeros(25), edges, np.full(len(edges), 1.0))
    for backend, schedule in RUNS:
        np.testing.assert_allclose(run(model, backend, schedule=schedule).marginals, 0.5, atol=1e-9)


def test_restarts_choose_the_lowest_free_energy() -> None:
    """The ferromagnet's magnetised fixed points lie below the symmetric one."""
    edges = lattices.grid_edges(5, 5)
    model = PairwiseModel.from_spins(np.full(25, 0.001), edges, np.full(len(edges), 1.0))
    log_z = runner.exact(model, cache=False).log_z
    for backend in ("numba", "numpy"):
        one = run(model, backend, chains=8, damping=0.3)
        many_starts = run(model, backend, chains=8, damping=0.3, restarts=8)
        assert many_starts.diagnostics["converged_restarts"] == 8
        assert one.diagnostics["converged_restarts"] == 1
        assert many_starts.log_z >= one.log_z - 1e-9
        assert abs(many_starts.log_z - log_z) < 1.0


def test_a_restart_that_oscillates_is_not_chosen() -> None:
    """Flooding without damping swings between the two states of a bipartite ferromagnet."""
    edges = lattices.grid_edges(5, 5)
    model = PairwiseModel.from_spins(np.full(25, 0.001), edges, np.full(len(edges), 1.0))
    result = run(model, "numpy", 200, chains=8, restarts=8)
    assert result.status == "ok"
    assert 1 <= result.diagnostics["converged_restarts"] < 8
    assert result.diagnostics["residual"] <= 1e-9
