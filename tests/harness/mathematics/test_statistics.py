"""Standard errors are calibrated: on independent and autocorrelated series with known variance, in float32 too."""

from __future__ import annotations

import re

import numpy as np
import pytest

import spinbench
from spinbench.errors import SpinbenchError
from spinbench.mathematics import statistics
from spinbench.mathematics.chains import errors_of_means
from spinbench.mathematics.claims import t_factor
from spinbench.mathematics.rounding import add_rounding, add_rounding_to_log_z
from spinbench.models import FactorGraph, PairwiseModel

REPEATS = 400


def autoregressive(rng: np.random.Generator, phi: float, steps: int, *shape: int) -> np.ndarray:
    """Stationary AR(1) series (steps, *shape) of unit variance."""
    noise = rng.normal(size=(steps, *shape))
    series = np.empty_like(noise)
    series[0] = noise[0]
    for t in range(1, steps):
        series[t] = phi * series[t - 1] + np.sqrt(1 - phi**2) * noise[t]
    return series


@pytest.mark.parametrize("phi", [0.0, 0.9, -0.5])
@pytest.mark.parametrize(("chains", "length"), [(1, 10), (8, 1), (8, 10)])
def test_standard_error_is_calibrated(phi: float, chains: int, length: int) -> None:
    rng = np.random.default_rng(7)
    raw = autoregressive(rng, phi, 256 * length, REPEATS, chains)
    series = raw.reshape(256, length, REPEATS, chains).mean(axis=1)
    z = raw.mean(axis=(0, 2)) / statistics.standard_error(series)
    # The mean of z² over independent repeats is 1 with standard error sqrt(2 / REPEATS) = 0.07. The estimated
    # error itself is noisy, most so where there are few effective samples, which adds up to 0.15.
    assert np.mean(z**2) == pytest.approx(1.0, abs=4 * np.sqrt(2 / REPEATS) + 0.15)


def test_standard_error_of_many_antithetic_chains_is_calibrated() -> None:
    """Where rho falls below 0 within noise, the chain's own estimate is too small; the spread of 64 chains is not."""
    raw = autoregressive(np.random.default_rng(7), -0.3, 32, REPEATS, 64)
    z = raw.mean(axis=(0, 2)) / statistics.standard_error(raw)
    # z² has mean 1 and standard error sqrt(2 / REPEATS); the spread of 64 means is itself known to 1 / sqrt(2 * 63).
    assert np.mean(z**2) == pytest.approx(1.0, abs=4 * np.sqrt(2 / REPEATS) + 2 / 63)


def test_standard_error_sees_chains_that_disagree() -> None:
    rng = np.random.default_rng(0)
    series = rng.normal(size=(100, 1, 4)) * 0.01 + np.array([0.0, 0.0, 1.0, 1.0])
    assert statistics.standard_error(series)[0] > 0.15  # 0.01 / sqrt(400) if the chains were ignored


@pytest.mark.parametrize("batches", [12, 101])
def test_standard_error_is_that_of_autocovariances_at_all_lags(batches: int) -> None:
    """Variables from independent to slower than the run, some of which take more lags than others."""
    persistence = np.linspace(-0.5, 0.99, 40)[:, None]
    rng = np.random.default_rng(2)
    series = rng.normal(size=(batches, 40, 6))
    for t in range(1, batches):
        series[t] = persistence * series[t - 1] + np.sqrt(1 - persistence**2) * series[t]
    half = batches // 2
    expected = []
    for v in range(40):
        chains = series[-2 * half :, v].reshape(2, half, 6).transpose(0, 2, 1).reshape(12, half)
        away = chains - chains.mean(axis=1, keepdims=True)
        covariance = np.array(
            [(away[:, : half - lag] * away[:, lag:]).sum(axis=1).mean() / half for lag in range(half)]
        )
        total = covariance[0] + chains.mean(axis=1).var(ddof=1)
        rho = 1 - (covariance[0] - covariance) * half / (half - 1) / total
        rho[0] = 1.0
        time, least = -1.0, np.inf
        for first in range(0, half - 1, 2):
            pair = rho[first] + rho[first + 1]
            if first and pair <= 0:
                break
            least = min(least, pair)
            time += 2 * least
            if pair <= 0:
                break
        expected.append(np.sqrt(total * max(time, 1 / max(np.log10(half * 12), 1)) / (half * 12)))
    np.testing.assert_allclose(statistics.standard_error(series), expected, rtol=1e-9)


def test_standard_error_of_too_few_batches_is_unknown() -> None:
    assert np.isnan(statistics.standard_error(np.zeros((3, 2, 4)))).all()


def test_constant_series_has_no_error() -> None:
    np.testing.assert_array_equal(statistics.standard_error(np.ones((32, 5, 2))), np.zeros(5))


def test_effective_sample_size_of_independent_draws_is_their_number() -> None:
    rng = np.random.default_rng(1)
    draws = (rng.random((512, 200, 8)) < 0.3).astype(float)
    ess = statistics.effective_sample_size(draws.mean(axis=(0, 2)), statistics.standard_error(draws), 512 * 8)
    assert np.median(ess) == pytest.approx(512 * 8, rel=0.05)
    at_ends = statistics.effective_sample_size(np.array([1.0, 0.3]), np.array([0.0, np.nan]), 4096)
    np.testing.assert_array_equal(at_ends, [4096.0, np.nan])


def test_split_r_hat() -> None:
    rng = np.random.default_rng(2)
    mixed = (rng.random((200, 3, 4)) < 0.4).astype(float)
    assert statistics.split_r_hat(mixed).max() < 1.01
    stuck = mixed.copy()
    stuck[:, 0, :2] = rng.random((200, 2)) < 0.9
    r_hat = statistics.split_r_hat(stuck)
    assert r_hat[0] > 1.1
    assert r_hat[1] < 1.01
    drifting = np.repeat([[[0.2]], [[0.8]]], 50, axis=0)  # one chain whose halves disagree
    assert statistics.split_r_hat(drifting)[0] > 1.1
    np.testing.assert_array_equal(statistics.split_r_hat(np.ones((10, 2, 2))), [1.0, 1.0])


def test_log_mean_is_exact_and_calibrated() -> None:
    rng = np.random.default_rng(3)
    z = []
    for _ in range(REPEATS):
        logs = 0.5 * rng.normal(size=(128, 4)) + 1000.0
        value, error = statistics.log_mean(logs)
        z.append((value - (1000.0 + 0.125)) / error)
    assert np.mean(np.square(z)) == pytest.approx(1.0, abs=4 * np.sqrt(2 / REPEATS) + 0.1)


def test_log_mean_of_few_batches_has_an_error_that_is_not_known() -> None:
    assert statistics.log_mean(np.zeros((3, 2))) == (0.0, np.inf)
    assert statistics.log_mean(np.full((8, 2), -np.inf)) == (-np.inf, np.inf)


@pytest.mark.parametrize("shape", [(8, 1, 4), (8,), ()])
def test_log_mean_of_other_axes_is_one_sentence(shape: tuple[int, ...]) -> None:
    with pytest.raises(
        SpinbenchError, match=rf"an array of shape {re.escape(str(shape))} was given; \(batches, chains\)"
    ):
        statistics.log_mean(np.zeros(shape))


def test_marginal_rmse() -> None:
    assert statistics.marginal_rmse(np.array([0.1, 0.5]), np.array([0.1, 0.1])) == pytest.approx(0.4 / np.sqrt(2))
    lists = [np.array([0.2, 0.8]), np.array([0.1, 0.2, 0.7])]
    assert statistics.marginal_rmse(lists, lists) == 0.0


@pytest.mark.parametrize(
    ("points", "seconds"),
    [
        ([], None),
        ([(1.0, 0.1), (10.0, 0.02)], None),
        ([(1.0, 0.1), (100.0, 0.001)], 10.0),  # a straight line on logarithmic axes
        ([(1.0, 0.005), (2.0, 0.1), (4.0, 0.02)], None),  # a dip
        ([(1.0, 0.005), (2.0, 0.1), (200.0, 0.001), (300.0, 0.002)], 20.0),
        ([(0.5, 0.01), (2.0, 0.001)], 0.5),  # never above
        ([(1.0, 0.1), (3.0, 0.0)], 3.0),  # an exact answer
        ([(1.0, 0.1), (2.0, float("nan"))], None),
    ],
)
def test_time_to_error_is_the_last_crossing(points: list[tuple[float, float]], seconds: float | None) -> None:
    assert statistics.time_to_error(points, 0.01) == pytest.approx(seconds)


@pytest.mark.parametrize("target", [0.3, 0.03, 0.003])
def test_time_to_error_of_a_power_law(target: float) -> None:
    points = [(t, t**-0.5) for t in np.geomspace(1.0, 1e6, 7)]
    assert statistics.time_to_error(points, target) == pytest.approx(target**-2)


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


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("batches", [4, 16, 64])
def test_errors_of_means_are_those_that_normal_chains_have(batches: int, correlation: float) -> None:
    """16 chains, whose batches follow each other at autocorrelation times of 1, 3 and 19."""
    series = autoregressive(np.random.default_rng(5), correlation, batches, 1000, 16)
    errors = errors_of_means(series)
    z = series.mean(axis=(0, 2)) / (t_factor(errors.freedom) * errors.se)
    assert np.sqrt(np.mean(z**2)) == pytest.approx(1.0, abs=0.08)
