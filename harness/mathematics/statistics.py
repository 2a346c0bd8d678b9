"""Monte Carlo standard errors, effective sample sizes and split R-hat from batch means; errors against a reference.

Batch means are treated as a short time series and the variance of their mean is found as for a chain's draws:
Geyer's initial monotone sequence over all chains, with the spread between chains included (Vehtari, Gelman,
Simpson, Carpenter, Bürkner, "Rank-normalization, folding, and localization", Bayesian Analysis 2021, eq. 3-13).
For long batches this reduces to the classical batch-means estimate, for short ones it keeps the autocorrelation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spinbench.errors import SpinbenchError

FloatArray = npt.NDArray[np.float64]

TARGET_RMSE = 0.01
"""The error to which `time_to_error` is tracked: one per cent of probability."""

_BLOCK = 2**17
"""Numbers that are worked on at a time, so that they stay in a processor's cache."""
FEW = 16
"""Batches whose products are summed sooner than transformed."""
MANY_CHAINS = 16
"""So many chains tell the error of their mean to 1 / sqrt(2 * 15) = 18 % from their spread alone."""


def standard_error(series: FloatArray) -> FloatArray:
    """Standard error of the mean over all batches and chains.

    Args:
        series: (B, …, C) batch means, B batches of (nearly) equal length, C chains.

    Returns:
        (…) float64; NaN where fewer than 4 batches leave nothing to estimate it from.
    """
    halves = _split(series)
    batches, chains = halves.shape[0], halves.shape[-1]
    if batches < 2:
        return np.full(series.shape[1:-1], np.nan)
    means = halves.mean(axis=0)
    covariance = _mean_autocovariance(halves, means)
    within = covariance[0] * batches / (batches - 1)
    total = covariance[0] + means.var(axis=-1, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = 1 - (within - covariance * batches / (batches - 1)) / total
    time = _initial_monotone_time(rho)
    # At most B log10(B) effective batches: antithetic chains are believed only so far (ibid., section 3.2).
    floor = 1 / max(np.log10(batches * chains), 1.0)
    variance = np.where(total > 0, total * np.maximum(time, floor) / (batches * chains), 0.0)
    if series.shape[-1] >= MANY_CHAINS:
        # Nor further than the chains' own means, whose spread asks for no model of the autocorrelation.
        spread = series.mean(axis=0).var(axis=-1, ddof=1) / series.shape[-1]
        variance = np.where(time < 1, np.maximum(variance, spread), variance)
    return np.asarray(np.sqrt(variance))


def effective_sample_size(marginals: FloatArray, errors: FloatArray, draws: int) -> FloatArray:
    """Independent exact draws of s_i that would give the standard error `errors` of p(s_i = 1).

    Args:
        marginals: (N,) estimates.
        errors: (N,) their standard errors.
        draws: of all chains together; what a variable counts that never varied.

    Returns:
        (N,) m(1 - m) / se²; NaN where the standard error is.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ess = np.maximum(marginals * (1 - marginals), 0.0) / errors**2
    return np.where(errors == 0, float(draws), ess)


def split_r_hat(series: FloatArray) -> FloatArray:
    """Split R-hat of the binary variables s_i.

    The variance of s_i within a half chain with mean m is m(1 - m), so batch means suffice.

    Args:
        series: (B, N, C) batch means of s_i or of p(s_i = 1 | rest).

    Returns:
        (N,) float64; 1 where a variable never varies, NaN for fewer than 2 batches.
    """
    halves = _split(series)
    if len(series) < 2:
        return np.full(series.shape[1:-1], np.nan)
    means = halves.mean(axis=0)
    within = (means * (1 - means)).mean(axis=-1)
    between = means.var(axis=-1, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        r_hat = np.sqrt((within + between) / within)
    return np.where(within > 0, r_hat, np.where(between > 0, np.inf, 1.0))


def log_mean(series: FloatArray) -> tuple[float, float]:
    """Log of the mean of positive weights, with its standard error by the delta method.

    Args:
        series: (B, C) log batch means of the weights, of which each chain has one.

    Returns:
        (log of the mean over batches and chains, standard error of that logarithm).

    Raises:
        SpinbenchError: there are other axes.
    """
    if np.ndim(series) != 2:
        raise SpinbenchError(
            f"log_mean: an array of shape {np.shape(series)} was given; (batches, chains) is needed, from one "
            "statistic (C,) or one row of others"
        )
    top = series.max()
    if not np.isfinite(top):
        return float(top), float("nan")
    weights = np.exp(series - top)
    mean = weights.mean()
    error = float(standard_error(weights))
    return float(top + np.log(mean)), error / float(mean)


def marginal_rmse(estimated: Sequence[FloatArray] | FloatArray, exact: Sequence[FloatArray] | FloatArray) -> float:
    """Root mean square error over all entries of all marginals.

    Both are (N,) vectors of p(s_i = 1), or lists of (K_v,) arrays.
    """
    pairs = zip(estimated, exact, strict=True)
    squares = np.concatenate([np.ravel((np.asarray(a) - np.asarray(b)) ** 2) for a, b in pairs])
    return float(np.sqrt(squares.mean()))


def time_to_error(points: Sequence[tuple[float, float]], target: float = TARGET_RMSE) -> float | None:
    """Seconds after which the error stays at or below a target.

    A dip of a noisy curve does not count: what is found is the last crossing, interpolated between the checkpoints
    around it on logarithmic axes. A curve that starts below the target gives its first checkpoint's seconds.

    Args:
        points: (seconds, error) of the checkpoints in order of time, both positive or the error 0.
        target: positive.

    Returns:
        None where the last error is above the target, or there is none.
    """
    above = [i for i, (_, error) in enumerate(points) if not error <= target]
    if not points or (above and above[-1] == len(points) - 1):
        return None
    if not above:
        return points[0][0]
    (before, high), (after, low) = points[above[-1] : above[-1] + 2]
    if not 0 < low < high < np.inf or before <= 0:
        return after
    share = np.log(high / target) / np.log(high / low)
    return float(before * (after / before) ** share)


def _split(series: FloatArray) -> FloatArray:
    """(B, …, C) to (B // 2, …, 2C): each chain becomes its two halves; an odd first batch is dropped."""
    half = len(series) // 2
    kept = series[len(series) - 2 * half :]
    return np.concatenate([kept[:half], kept[half:]], axis=-1)


def _mean_autocovariance(series: FloatArray, means: FloatArray) -> FloatArray:
    """(B, …) biased autocovariances along axis 0, averaged over the last axis; `means` are those along axis 0."""
    batches, chains = len(series), series.shape[-1]
    flat, centres = series.reshape(batches, -1, chains), means.reshape(-1, chains)
    found = np.empty(flat.shape[:2])
    products = _by_lag if batches <= FEW else _by_spectrum
    block = max(1, _BLOCK // (2 * batches * chains))
    for first in range(0, flat.shape[1], block):
        some = slice(first, first + block)
        found[:, some] = products(flat[:, some] - centres[some])
    return np.asarray(found.reshape(series.shape[:-1]) / batches)


def _by_lag(series: FloatArray) -> FloatArray:
    """(B, n) mean over chains of the sums of products at each lag."""
    sums = [np.einsum("bnc,bnc->n", series[: len(series) - lag], series[lag:]) for lag in range(len(series))]
    return np.asarray(np.array(sums) / series.shape[-1])


def _by_spectrum(series: FloatArray) -> FloatArray:
    """As `_by_lag`, by one transform of every chain and, of their mean spectrum, one back."""
    size = 1 << (2 * len(series) - 1).bit_length()
    spectrum = np.fft.rfft(series, n=size, axis=0)
    power = (spectrum.real**2 + spectrum.imag**2).mean(axis=-1)
    return np.asarray(np.fft.irfft(power, n=size, axis=0)[: len(series)])


def _initial_monotone_time(rho: FloatArray) -> FloatArray:
    """Integrated autocorrelation time: 2 Σ P_t - 1 over pair sums P_t = ρ_2t + ρ_2t+1, kept positive and falling."""
    rho = np.nan_to_num(rho, nan=0.0)
    rho[0] = 1.0
    pairs = rho[0 : len(rho) // 2 * 2 : 2] + rho[1::2][: len(rho) // 2]
    if len(pairs) == 0:
        return np.ones(rho.shape[1:])
    positive = np.logical_and.accumulate(pairs > 0, axis=0)
    positive[0] = True
    monotone = np.minimum.accumulate(pairs, axis=0)
    return np.asarray(2 * np.sum(monotone * positive, axis=0) - 1)
