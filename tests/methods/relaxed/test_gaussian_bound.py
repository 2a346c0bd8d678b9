"""The Gaussian upper bound: a bound on random models, as tight as was measured, its draws' weights below it."""

from __future__ import annotations

import numpy as np
import pytest
from bounded_models import KINDS, log_z

import spinbench
from spinbench.api import Precision
from spinbench.methods.relaxed.gaussian_fit import fit_upper_bound, log_cosh, to_spins
from spinbench.models import PairwiseModel
from spinbench.models.generators import sherrington_kirkpatrick


@pytest.mark.parametrize(("backend", "precision"), [("numpy", "float64"), ("numba", "float64"), ("numba", "float32")])
def test_bounds_of_random_models(backend: str, precision: Precision) -> None:
    count, how = 0, {"chains": 8, "simplify": False, "delta": 1e-6, "precision": precision}
    for kind in ("pairwise", "frustrated", "pairs"):
        draw, rng = KINDS[kind](np.random.default_rng(3)), np.random.default_rng(4)
        for k in range(10):
            model = draw(rng)
            result = spinbench.run(model, "gaussian_bound", backend, 20, seed=k, **how)  # type: ignore[arg-type]
            true, slack = log_z(model)
            for bound in result.bounds:
                beyond = (bound.value - true) * (1 if bound.side == "lower" else -1)
                assert beyond <= slack, (kind, k, bound)
                count += bound.grade == "certified"
    assert count == 30


@pytest.mark.parametrize("backend", ["numpy", "numba", "jax"])
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_draws_have_the_weights_of_those_of_numpy(backend: str, precision: Precision) -> None:
    """Within their errors; the largest is 1, whatever is drawn."""
    model = sherrington_kirkpatrick(12, 0.8, seed=2)
    result, exact = (
        spinbench.run(model, "gaussian_bound", backend, 400, chains=64, precision=precision),
        (spinbench.exact(model)),
    )
    assert result.status == "ok"
    assert abs(result.log_z - exact.log_z) < 4 * result.log_z_se < 0.2
    np.testing.assert_array_less(np.abs(result.marginals - exact.marginals), 4 * result.marginals_error_bound)
    lower, upper = ([b.value for b in result.bounds if b.side == side] for side in ("lower", "upper"))
    assert max(lower) < exact.log_z < min(upper)


def test_the_bound_holds_at_any_xi_and_weights_are_below_it() -> None:
    model = sherrington_kirkpatrick(12, 0.8, seed=2)
    at = fit_upper_bound(model)
    u = at.mean[:, None] + at.root @ np.random.default_rng(0).standard_normal((12, 40_000))
    logs = log_cosh(u) - log_cosh(at.xi)[:, None] - at.slopes[:, None] / 2 * (u**2 - at.xi[:, None] ** 2)
    assert logs.max() <= 1e-12
    true = spinbench.exact(model).log_z
    assert true <= at.value <= true + 5
    weights = np.exp(logs.sum(axis=0))
    assert abs(at.value + np.log(weights.mean()) - true) < 5 * weights.std() / weights.mean() / 200
    spins = to_spins(model)
    assert np.linalg.eigvalsh(spins.kernel)[0] > 0
    assert np.linalg.norm(at.slopes - np.tanh(at.xi) / at.xi) < 1e-15


@pytest.mark.parametrize(("n", "beta", "gap"), [(20, 0.5, 2.4), (20, 1.0, 6.8)])
def test_it_is_as_tight_as_it_was(n: int, beta: float, gap: float) -> None:
    model = sherrington_kirkpatrick(n, beta)
    true = spinbench.exact(model).log_z
    assert true < fit_upper_bound(model).value < true + gap


def test_a_model_without_couplings_costs_next_to_nothing() -> None:
    model = PairwiseModel.from_edges([0.3, -2.0, 5.0], np.zeros((0, 2), dtype=int), [])
    result = spinbench.run(model, "gaussian_bound", "numpy", 100, chains=4)
    assert result.log_z == pytest.approx(np.logaddexp(0, model.biases).sum(), abs=1e-3)
