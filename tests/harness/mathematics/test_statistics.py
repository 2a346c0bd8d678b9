"""Standard errors are calibrated, on independent and on autocorrelated series with known variance."""

from __future__ import annotations

import re

import numpy as np
import pytest

from spinbench.errors import SpinbenchError
from spinbench.mathematics import statistics

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
