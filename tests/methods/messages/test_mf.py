"""Naive mean field: a lower bound always, the best of its family where it has ended."""

from __future__ import annotations

import numpy as np
import pytest
from random_models import enumerate_all, error, graph, grouped, many, pairwise

from spinbench.inference import runner
from spinbench.inference.result import Result
from spinbench.mathematics.graphs.lowering import lower
from spinbench.mathematics.rounding import work_of
from spinbench.methods.messages.mf import evaluate
from spinbench.models import FactorGraph, Model, PairwiseModel, catalogue, lattices

BACKENDS = ("numpy", "numba")


def run(model: Model, backend: str = "numba", budget: int = 2000, **settings: object) -> Result:
    return runner.run(model, "mf", backend, budget, **{"chains": 4, "checkpoints": 1, "simplify": False} | settings)


def direct_bound(model: Model, q: list[np.ndarray]) -> float:
    """E_q log p*(x) + H(q) over all states."""
    cards = model.cardinalities
    states = np.array(np.meshgrid(*(np.arange(k) for k in cards), indexing="ij")).reshape(len(cards), -1).T
    p = np.prod([q[v][states[:, v]] for v in range(len(cards))], axis=0)
    there = p > 0
    return float((p[there] * (model.log_weight(states)[there] - np.log(p[there]))).sum())


def tables(result: Result) -> list[np.ndarray]:
    if isinstance(result.marginals, list):
        return result.marginals
    return [np.array([1 - p, p]) for p in result.marginals]


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_bound_is_that_of_the_marginals_reported(backend: str) -> None:
    """To rounding; on product laws it is log Z itself."""
    for model in (m for m in many(40, seed=1) if not isinstance(m, PairwiseModel) or not m.groups):
        result = run(model, backend, 500)
        assert result.log_z == pytest.approx(direct_bound(model, tables(result)), abs=1e-8)
    product = FactorGraph.from_log_tables([2, 3, 1], [((0,), [0.3, -1.2]), ((1,), [0.1, 0.9, -0.4])])
    log_z, exact = enumerate_all(product)
    result = run(product, backend)
    assert result.log_z == pytest.approx(log_z - work_of(product).allowance(), abs=1e-12)
    assert error(result.marginals, exact) < 1e-12


def test_every_sweep_raises_the_bound() -> None:
    rng = np.random.default_rng(2)
    for model in (pairwise(rng, 9, 0.6, 2.0), graph(rng, 6, 9, 0.3), grouped(rng)):
        for backend in BACKENDS:
            values = [run(model, backend, k, chains=1).log_z for k in range(1, 12)]
            assert (np.diff(values) >= -1e-12).all()


def test_a_stationary_point_cannot_be_improved_by_one_variable() -> None:
    rng = np.random.default_rng(3)
    for model in (pairwise(rng, 6, 0.6, 1.0), graph(rng, 5, 6, 0.0, scale=0.7)):
        for backend in BACKENDS:
            result = run(model, backend)
            assert result.status == "ok"
            q = tables(result)
            for v in range(len(q)):
                for _ in range(5):
                    other = rng.dirichlet(np.ones(len(q[v]))) if len(q[v]) > 1 else np.ones(1)
                    moved = [0.99 * a + 0.01 * other if u == v else a for u, a in enumerate(q)]
                    assert direct_bound(model, moved) <= result.log_z + 1e-10


def test_backends_agree() -> None:
    """Weak couplings have one optimum, whatever the order of updates."""
    rng = np.random.default_rng(4)
    for k, model in enumerate((pairwise(rng, 8, 0.5, 0.3), graph(rng, 6, 7, 0.0, scale=0.3), graph(rng, 6, 7, 0.3))):
        backends = (*BACKENDS, "jax") if k < 2 else BACKENDS
        results = [run(model, backend, tolerance=1e-12) for backend in backends]
        for result in results:
            assert result.log_z == pytest.approx(results[0].log_z, abs=1e-9)
            if k < 2:
                assert error(result.marginals, tables(results[0])) < 1e-8


@pytest.mark.parametrize("backend", BACKENDS)
def test_libdais_published_row(backend: str) -> None:
    """libDAI's testfast.out: naive mean field max 3.234e-1, mean 1.576e-1, log Z -1.235."""
    model = catalogue.load("libdai/testfast")
    for chains in (1, 8):
        result, exact = run(model, backend, chains=chains), runner.exact(model, cache=False)
        errors = np.abs(result.marginals - exact.marginals)
        assert result.status == "ok"
        assert f"{errors.max():.3e} {errors.mean():.3e}" == "3.234e-01 1.576e-01"
        assert f"{result.log_z - exact.log_z:.3f}" == "-1.235"


def test_hard_zeros_of_shipped_models() -> None:
    for name in ("uai14/ObjectDetection_11", "uai14/Promedus_24", "libdai/alarm"):
        model, reference = catalogue.load(name), catalogue.reference(name)
        result = run(model, chains=8)
        assert reference.log_z - 20 < result.log_z <= reference.log_z + 1e-9


def test_restarts_help_and_the_best_is_reported() -> None:
    edges = lattices.grid_edges(6, 6)
    model = PairwiseModel.from_spins(np.zeros(36), edges, np.full(len(edges), 0.6))
    for backend in BACKENDS:
        one, several = run(model, backend, chains=1), run(model, backend, chains=16)
        assert several.log_z > one.log_z + 0.1  # uniform q is a saddle without a field
        assert several.diagnostics["worst_restart"] <= one.log_z + 1e-9


def test_weight_on_a_hard_zero_is_minus_infinity() -> None:
    model = FactorGraph.from_log_tables([2, 2], [((0, 1), [0.0, -np.inf, 0.0, 0.0])])
    _, bounds = evaluate(lower(model), np.array([[0.5, 1.0], [0.5, 0.0], [0.5, 1.0], [0.5, 0.0]]))
    assert bounds.tolist() == [-np.inf, 0.0]
