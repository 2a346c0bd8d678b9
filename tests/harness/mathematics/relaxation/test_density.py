"""The Gaussian relaxation against enumeration, quadrature and finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from spinbench.errors import ModelError, SpinbenchError, UnsupportedError
from spinbench.mathematics.relaxation import diagonal
from spinbench.mathematics.relaxation.density import relax
from spinbench.models import PairwiseModel

FORMS = ("identity", "harmonium", "inverse")


def dense_model(n: int, seed: int, groups: tuple[tuple[int, ...], ...] = ()) -> PairwiseModel:
    rng = np.random.default_rng(seed)
    i, j = np.triu_indices(n, 1)
    return PairwiseModel.from_edges(
        rng.normal(size=n), np.stack([i, j], 1), 1.5 * rng.normal(size=len(i)), log_constant=0.7, groups=groups
    )


def enumerate_states(model: PairwiseModel) -> tuple[np.ndarray, np.ndarray]:
    states = (np.arange(2**model.num_variables)[:, None] >> np.arange(model.num_variables)) & 1
    weights = model.log_weight(states)
    kept = np.isfinite(weights)
    return states[kept].astype(float), weights[kept]


MODELS = [
    dense_model(1, 0),
    dense_model(5, 1),
    dense_model(6, 2, groups=((1, 4, 2), (0, 3))),
    PairwiseModel.from_edges([0.3, -1.0, 2.0, 0.5], [(0, 1), (1, 2)], [2.0, -3.0]),
    PairwiseModel.from_edges([0.3, -1.0], np.zeros((0, 2), dtype=int), []),
]


@pytest.mark.parametrize("rule", diagonal.DIAGONALS)
@pytest.mark.parametrize("model", MODELS, ids=["one", "dense", "groups", "isolated", "no edges"])
def test_every_rule_gives_a_positive_definite_q(model: PairwiseModel, rule: str) -> None:
    r = relax(model, rule, 0.1)
    assert (r.d > 0).all()
    assert np.linalg.eigvalsh(r.gram)[0] > 0
    np.testing.assert_allclose(r.cholesky @ r.cholesky.T, r.gram, atol=1e-12)
    np.testing.assert_allclose(r.harmonium @ r.harmonium.T, r.gram, atol=1e-12)
    np.testing.assert_allclose(r.precision @ r.gram, np.eye(len(r.d)), atol=1e-9)
    assert r.smallest == pytest.approx(np.linalg.eigvalsh(r.gram)[0])


def test_minshift_and_dominance_follow_their_formulas() -> None:
    model = dense_model(7, 3)
    W = model.dense()
    np.testing.assert_allclose(relax(model, "minshift", 0.1).d, -1.1 * np.linalg.eigvalsh(W)[0])
    np.testing.assert_allclose(relax(model, "dd", 0.02).d, 1.02 * np.abs(W).sum(axis=1))
    given = relax(model, list(np.arange(20.0, 27.0)), slack=0.5)
    np.testing.assert_array_equal(given.d, np.arange(20.0, 27.0))


def test_sdp_has_the_smallest_trace() -> None:
    triangle = PairwiseModel.from_dense(np.zeros(3), np.ones((3, 3)) - np.eye(3))
    np.testing.assert_allclose(diagonal.trace_minimal(triangle), 1.0, rtol=1e-3)  # cut vectors at 120°
    for model in (dense_model(12, 4), MODELS[3]):
        W = model.dense()
        d = diagonal.trace_minimal(model, tolerance=1e-7)
        assert np.linalg.eigvalsh(W + np.diag(d))[0] > -1e-8
        # Optimal iff some X >= 0 with unit diagonal lives in the null space of W + D: then tr D = -<W, X>.
        values, vectors = np.linalg.eigh(W + np.diag(d))
        null = vectors[:, values < 1e-3 * values[-1]]
        k = null.shape[1]
        i, j = np.triu_indices(k)
        columns = null[:, i] * null[:, j] * np.where(i == j, 1.0, 2.0)
        packed, *_ = np.linalg.lstsq(columns, (model.degrees > 0).astype(float), rcond=None)
        Y = np.zeros((k, k))
        Y[i, j] = Y[j, i] = packed
        np.testing.assert_allclose(columns @ packed, model.degrees > 0, atol=2e-2)
        assert np.linalg.eigvalsh(Y)[0] > -5e-2
        assert -np.sum(W * (null @ Y @ null.T)) == pytest.approx(d.sum(), rel=1e-2)
        assert d.sum() <= (1 + 1e-9) * min(np.abs(W).sum(), -len(d) * np.linalg.eigvalsh(W)[0])


def test_wrong_diagonals_are_refused_in_one_sentence() -> None:
    model = dense_model(4, 6)
    with pytest.raises(ModelError, match=r"not positive definite \(smallest eigenvalue -"):
        _ = relax(model, [0.1] * 4).cholesky
    with pytest.raises(ModelError, match="not positive definite"):
        _ = relax(model, [0.1] * 4).eigen
    with pytest.raises(ModelError, match="not positive definite"):
        _ = relax(model, "minshift", 0.0).cholesky  # singular
    with pytest.raises(ModelError, match="4 finite positive numbers"):
        relax(model, [1.0, 2.0])
    with pytest.raises(ModelError, match="4 finite positive numbers"):
        relax(model, [1.0, 2.0, -1.0, 3.0])
    with pytest.raises(SpinbenchError, match="minshift, dd, sdp"):
        relax(model, "smallest")
    for wrong in (3.0, None, ["a", "b", "c", "d"]):
        with pytest.raises(SpinbenchError, match="or a list of N numbers"):
            relax(model, wrong)
    with pytest.raises(SpinbenchError, match="slack=-1"):
        relax(model, "dd", -1)
    with pytest.raises(UnsupportedError, match="slack > 0 is needed"):
        relax(MODELS[4], "dd", 0.0)
    with pytest.raises(UnsupportedError, match="form=sparse needs d_i"):
        _ = relax(model, "sdp", 0.1).edge_factor


def test_large_models_use_lanczos(monkeypatch: pytest.MonkeyPatch) -> None:
    model = dense_model(40, 5)
    d = np.linspace(1.0, 3.0, 40)
    exact = diagonal.smallest_eigenvalue(model, d)
    monkeypatch.setattr(diagonal, "DENSE_EIGEN", 10)
    estimate = diagonal.smallest_eigenvalue(model, d)
    assert exact - 1e-4 < estimate <= exact + 1e-12


def test_dense_forms_of_large_models_are_refused_with_their_memory() -> None:
    n = 5000
    ring = PairwiseModel.from_edges(np.zeros(n), [(i, (i + 1) % n) for i in range(n)], np.ones(n), name="ring")
    r = relax(ring, "dd", 0.1)
    with pytest.raises(UnsupportedError, match=r"ring has N = 5000 variables.* 763 MiB .*form=sparse"):
        _ = r.cholesky
    assert r.edge_factor.incident.shape == (n, 2)


def test_a_hub_is_refused_by_the_padded_table() -> None:
    n = 300
    star = PairwiseModel.from_edges(np.zeros(n), [(0, i) for i in range(1, n)], np.ones(n - 1))
    with pytest.raises(UnsupportedError, match="299 neighbours"):
        _ = relax(star, "dd", 0.1).edge_factor


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("model", MODELS[:4], ids=["one", "dense", "groups", "isolated"])
def test_the_density_is_the_mixture_of_gaussians(model: PairwiseModel, form: str) -> None:
    """Σ_s p(s) N(x; AQs, AQAᵀ): the printed (7) fails this for the harmonium's A, which is not symmetric."""
    r = relax(model, "sdp", 0.2)
    A = np.linalg.inv(r.field_map(form))
    states, weights = enumerate_states(model)
    covariance = A @ r.gram @ A.T
    x = np.random.default_rng(2).normal(size=(len(A), 4)) * 2
    for column, value in zip(x.T, r.log_density(x, form), strict=True):
        gap = column - states @ (A @ r.gram).T
        quadratic = np.einsum("ki,ij,kj->k", gap, np.linalg.inv(covariance), gap)
        normal = -0.5 * quadratic - 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1]
        assert value == pytest.approx(np.logaddexp.reduce(weights + normal), abs=1e-9)
        # and the conditional p(s|x) that goes with it
        posterior = weights + normal
        posterior = np.exp(posterior - np.logaddexp.reduce(posterior))
        means, _ = r.conditional(r.field_map(form) @ column + r.bias)
        np.testing.assert_allclose(means, posterior @ states, atol=1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_the_density_integrates_to_z(form: str) -> None:
    for model in (
        dense_model(1, 7),
        dense_model(2, 8),
        PairwiseModel.from_edges([0.4, -0.2], [(0, 1)], [1.0], groups=[(0, 1)]),
    ):
        r = relax(model, "minshift", 0.5)
        z = np.exp(np.logaddexp.reduce(enumerate_states(model)[1]))
        axis = np.linspace(-25, 25, 501)  # the trapezoidal rule is exact to rounding for such smooth, narrow integrands
        x = np.stack(np.meshgrid(*[axis] * model.num_variables)).reshape(model.num_variables, -1)
        total = np.exp(r.log_density(x, form)).sum() * 0.1**model.num_variables
        assert total == pytest.approx(z, rel=1e-9)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("model", MODELS[:3], ids=["one", "dense", "groups"])
def test_derivatives_match_finite_differences(model: PairwiseModel, form: str) -> None:
    r = relax(model, "sdp", 0.3)
    n = model.num_variables
    x = np.random.default_rng(3).normal(size=n)
    step = 1e-5 * np.eye(n)
    points = x[:, None] + np.concatenate([step, -step], axis=1)
    values = r.log_density(points, form)
    np.testing.assert_allclose(r.gradient(x, form), (values[:n] - values[n:]) / 2e-5, rtol=1e-6, atol=1e-6)


def test_stationary_points_solve_the_self_consistency_equation() -> None:
    """m = σ(a + Wm + d(m - ½)), x = Qm; iterating it climbs to a point where the gradient vanishes."""
    model = dense_model(6, 10)
    r = relax(model, "minshift", 0.1)
    m = np.full(6, 0.5)
    for _ in range(5000):
        m = 1 / (1 + np.exp(-(model.biases + model.dense() @ m + r.d * (m - 0.5))))
    np.testing.assert_allclose(r.gradient(r.gram @ m), 0, atol=1e-8)
