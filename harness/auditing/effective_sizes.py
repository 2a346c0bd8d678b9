"""How many independent draws chains are worth, and how likely means of draws are under a law."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import special

FloatArray = npt.NDArray[np.float64]

# Autocorrelations are summed up to this many autocorrelation times (Sokal, "Monte Carlo methods in statistical
# mechanics").
WINDOW = 5.0
# Draws below which a chain is too short for an autocorrelation time and counts as one effective draw.
MIN_DRAWS = 10
# Numbers in a block of Fourier transforms.
BLOCK = 2**22


def autocorrelation_times(series: FloatArray) -> FloatArray:
    """(Q,) integrated autocorrelation times in draws, 1 or more, of series (Q, C, D), each chain about its own mean.

    What tells chains apart for good is not in it.
    """
    quantities, chains, draws = series.shape
    if draws < MIN_DRAWS:
        return np.full(quantities, float(draws))
    times = np.ones(quantities)
    step = max(1, BLOCK // (chains * draws))
    for first in range(0, quantities, step):
        some = series[first : first + step]
        spectrum = np.fft.rfft(some - some.mean(axis=-1, keepdims=True), 2 * draws)
        covariance = np.fft.irfft(np.abs(spectrum) ** 2)[..., :draws].mean(axis=1)
        varies = covariance[:, 0] > 1e-12
        ratio = covariance / np.where(varies, covariance[:, 0], 1.0)[:, None]
        sums = 2 * np.cumsum(ratio, axis=1) - 1
        stops = np.arange(draws) >= WINDOW * sums
        window = np.where(stops.any(axis=1), stops.argmax(axis=1), draws - 1)
        chosen = np.clip(sums[np.arange(len(some)), window], 1.0, draws)
        times[first : first + step] = np.where(varies, chosen, 1.0)
    return times


def binomial_p_values(means: FloatArray, p: FloatArray, draws: FloatArray) -> FloatArray:
    """Two-sided p-values of frequencies of events of probability p among so many independent draws.

    Exact for whole numbers of draws (twice the smaller tail, so that a test is at most as often wrong as it says);
    others are interpolated by the incomplete beta function. The arrays are broadcast.
    """
    means, p, draws = np.broadcast_arrays(means, p, draws)
    count = np.clip(means * draws, 0.0, draws)
    inside = np.clip(p, 0.0, 1.0)
    at_least = np.where(count > 0, special.betainc(np.maximum(count, 1e-300), draws - count + 1, inside), 1.0)
    at_most = np.where(count < draws, special.betaincc(count + 1, np.maximum(draws - count, 1e-300), inside), 1.0)
    two_sided = np.minimum(1.0, 2 * np.minimum(at_least, at_most))
    certain = (inside <= 0.0) | (inside >= 1.0)
    return np.asarray(np.where(certain, np.where(abs(means - inside) < 1e-12, 1.0, 0.0), two_sided))


def normal_p_values(z: FloatArray, freedom: npt.ArrayLike) -> FloatArray:
    """Two-sided p-values of Student's t."""
    return np.asarray(2 * special.stdtr(np.maximum(freedom, 1.0), -np.abs(z)))


def z_scores(p_values: FloatArray, signs: FloatArray) -> FloatArray:
    """Standard normal scores of two-sided p-values."""
    return np.asarray(-np.sign(signs) * special.ndtri(np.clip(p_values, 1e-300, 1.0) / 2))
