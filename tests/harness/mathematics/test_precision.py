"""Claims of float32 chains hold where their means' errors are as small as a float32's last place."""

from __future__ import annotations

import numpy as np
import pytest

import spinbench
from spinbench.mathematics.rounding import add_rounding, add_rounding_to_log_z
from spinbench.models import FactorGraph, PairwiseModel


def rare(n: int) -> PairwiseModel:
    rng = np.random.default_rng(n)
    edges = [(i, i + 1) for i in range(n - 1)]
    return PairwiseModel.from_edges(rng.uniform(-14, 14, size=n), edges, 2 * rng.normal(size=n - 1))


@pytest.mark.parametrize("backend", ["numpy", "numba", "jax"])
def test_rounding_is_claimed(backend: str) -> None:
    """Without it, up to 20 error bounds off after 1000 samples, and ever more."""
    model = rare(200)
    exact = spinbench.exact(model).marginals
    result = spinbench.run(model, "gibbs", backend, 4000, precision="float32", log_z="none")
    z = (result.marginals - exact) / result.marginals_error_bound
    assert result.status == "ok"
    assert np.abs(z).max() < 2
    assert (result.marginals_error_bound[(exact < 1e-5) | (exact > 1 - 1e-5)] < 3e-6).all()


def test_large_terms_that_cancel_leave_their_rounding() -> None:
    model = PairwiseModel.from_edges([3e4, 0.0], [(0, 1)], [-3e4 + 0.3])
    marginals = np.array([0.5, 1.0])
    found = add_rounding(np.zeros(2), marginals, model, "float32")
    np.testing.assert_allclose(found, [2**-23 * (1 + 0.25 * 6e4), 2**-23], rtol=1e-4)
    assert add_rounding(np.zeros(2), marginals, model, "float64").max() < 1e-11


def test_terms_of_factors_leave_their_rounding() -> None:
    tables = [([0, 1], np.array([[0.0, 300.0], [0.0, -400.0], [-np.inf, 1.0]])), ([1], np.array([0.0, 2.0]))]
    graph = FactorGraph.from_log_tables([3, 2], tables)
    assert graph.reach.tolist() == [400.0, 402.0]
    found = add_rounding([np.zeros(3), np.zeros(2)], [np.full(3, 1 / 3), np.array([0.0, 1.0])], graph, "float32")
    np.testing.assert_allclose(found[0], 2**-23 * (1 + 400 * 2 / 9))
    assert found[1].tolist() == [2**-23] * 2


@pytest.mark.parametrize("method", ["gibbs", "blocks", "metropolis", "importance"])
@pytest.mark.parametrize("size", [3000.0, 90000.3])
def test_claims_allow_for_factors_of_large_terms(method: str, size: float) -> None:
    """Without it up to a thousand claims off."""
    row = np.array([0.0, 0.3, -0.2])
    model = FactorGraph.from_log_tables([3, 2], [([0, 1], np.stack([row, row + size], axis=1)), ([1], [size, 0.0])])
    exact = spinbench.exact(model, cache=False)
    result = spinbench.run(model, method, "numpy", 200, chains=64, precision="float32", simplify=False)
    for p, errors, right in zip(result.marginals, result.marginals_error_bound, exact.marginals, strict=True):
        assert (np.abs(p - right) < 1.5 * errors).all()
    assert result.log_z is None or result.log_z_se is None or abs(result.log_z - exact.log_z) < 4 * result.log_z_se


def test_log_z_is_claimed_no_finer_than_sums_of_log_weights() -> None:
    """Chains of independent variables see one transition probability, whose spread is none."""
    rng = np.random.default_rng(5)
    model = PairwiseModel.from_edges(4 * rng.normal(size=500), np.zeros((0, 2), dtype=int), np.zeros(0))
    exact = spinbench.exact(model).log_z
    for backend in ("numpy", "numba"):
        found = spinbench.run(model, "gibbs", backend, 64, log_z="chib", precision="float32", checkpoints=1)
        for value, error in found.log_z_estimates.values():
            assert error >= 500 * np.finfo(np.float32).eps
            assert abs(value - exact) <= 2 * error


def test_unresolved_log_z_stays_unresolved_and_large_values_keep_their_last_place() -> None:
    assert add_rounding_to_log_z(float("inf"), 1.0, rare(20), "float32") == float("inf")
    assert add_rounding_to_log_z(0.0, 2.0**23, rare(20), "float32") >= 1.0
    assert add_rounding_to_log_z(0.25, 1.0, rare(20), "float64") == pytest.approx(0.25, abs=1e-12)
