"""Statistics of draws: how many independent ones they are worth, how likely their means are under a law, and the
log weights of each variable's states given all others, with the inverse temperature that fits them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special
from scipy.optimize import brentq

from spinbench.models import FactorGraph

IntArray = npt.NDArray[np.int64]

# A larger estimate of β means that the draws are colder than the check can resolve.
MAX_BETA = 1e3
# Absolute and relative tolerance of β, far below its standard error.
TOLERANCE = 1e-10
FloatArray = npt.NDArray[np.float64]

# Autocorrelations are summed up to this many autocorrelation times (Sokal, "Monte Carlo methods in statistical
# mechanics").
WINDOW = 5.0
# Draws below which a chain is too short for an autocorrelation time and counts as one effective draw.
MIN_DRAWS = 10
# Numbers in a block of Fourier transforms.
BLOCK = 2**22


class Logits(NamedTuple):
    """Log weights of each variable's states, given all others, for draws that have positive weight.

    Attributes:
        values: for each variable (K, C, D), 0 where the state is not possible.
        possible: for each variable (K, C, D) bool.
        states: (N, C, D).
    """

    values: list[FloatArray]
    possible: list[npt.NDArray[np.bool_]]
    states: IntArray


def local_logits(graph: FactorGraph, states: IntArray) -> Logits:
    """Of states (N, C, D): the log weights that a heat bath at each variable would use."""
    values = [np.zeros((k, *states.shape[1:])) for k in graph.cardinalities]
    for factor in graph.factors:
        for axis, v in enumerate(factor.scope):
            table = np.moveaxis(factor.log_table, axis, 0)
            others = tuple(states[u] for u in factor.scope if u != v)
            rows = table[(slice(None), *others)] if others else table[:, None, None]
            values[v] = values[v] + rows
    possible = [np.isfinite(rows) for rows in values]
    finite = [np.where(finite_rows, rows, 0.0) for finite_rows, rows in zip(possible, values, strict=True)]
    return Logits(finite, possible, states)


def probabilities(logits: Logits, v: int, beta: float = 1.0) -> FloatArray:
    """(K, C, D) of the states of variable v at an inverse temperature."""
    scaled = np.where(logits.possible[v], beta * logits.values[v], -np.inf)
    weights = np.exp(scaled - scaled.max(axis=0))
    return np.asarray(weights / weights.sum(axis=0))


def fit_beta(logits: Logits) -> tuple[float, float]:
    """Inverse temperature of the draws by maximum pseudo-likelihood (Besag, 1975), and its standard error.

    The error is that of the estimating equation Σ_v (ℓ_v(x_v) - E_β ℓ_v) = 0, with the draws' correlations. Infinite
    where nothing bounds β from above; (nan, inf) where the model does not depend on β.
    """
    if not slope(logits, 0.0)[1] > 0:
        return float("nan"), float("inf")
    low, high = -1.0, 2.0
    while slope(logits, high)[0].mean() > 0:
        low, high = high, 2 * high
        if high > MAX_BETA:
            return float("inf"), float("inf")
    while slope(logits, low)[0].mean() < 0:
        low, high = 2 * low, low
        if low < -MAX_BETA:
            return -float("inf"), float("inf")
    beta = float(brentq(lambda beta: slope(logits, beta)[0].mean(), low, high, xtol=TOLERANCE, rtol=TOLERANCE))
    score, curvature = slope(logits, beta)
    effective = float(score.size)
    if score.shape[1] > 1:
        effective /= float(autocorrelation_times(score[None])[0])
    return beta, float(score.std() / np.sqrt(effective) / curvature)


def slope(logits: Logits, beta: float) -> tuple[FloatArray, float]:
    """(C, D) derivative of each draw's log pseudo-likelihood, and minus the mean second derivative."""
    score, curvature = np.zeros(logits.states.shape[1:]), 0.0
    for v, values in enumerate(logits.values):
        p = probabilities(logits, v, beta)
        mean = (p * values).sum(axis=0)
        score += np.take_along_axis(values, logits.states[v][None], axis=0)[0] - mean
        curvature += float(((p * values**2).sum(axis=0) - mean**2).mean())
    return score, curvature


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
