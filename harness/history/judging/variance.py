"""Variances of many units that lend each other strength, as few replicates leave each one's own badly known.

The units' variances are taken to be draws of a scaled inverse chi-square law fitted to all of them (the moderated
t-test of Smyth, "Linear models and empirical Bayes methods for assessing differential expression", Stat. Appl. Genet.
Mol. Biol. 3, 2004). Where the units differ much in noise, the fit says so and each falls back on its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

NOTHING = 1e-12
"""Spreads and differences of logarithms below this are rounding errors."""
FEWEST = 6
"""Units with replicates below which no common law is fitted."""
ROUNDS = 8
"""Of alternating means, exact at once where no block is missing."""
MOST_FREEDOM = 30.0
"""Degrees of freedom that a moderated variance is credited with at most: the law itself is an approximation."""


@dataclass(frozen=True)
class Noise:
    """Variances, one a unit, and the degrees of freedom with which they are known (0: not at all)."""

    variance: FloatArray
    freedom: FloatArray


def separate(values: FloatArray) -> Noise:
    """The variance of each unit's blocks about the means of their commits; (units, commits, blocks), NaN: missing."""
    known = np.isfinite(values)
    count = known.sum(axis=2)
    residual = _less_mean(np.where(known, values, 0.0), known, 2)
    freedom = np.maximum(count - 1, 0).sum(axis=1)
    return Noise((residual**2).sum(axis=(1, 2)) / np.maximum(freedom, 1), freedom.astype(np.float64))


def additive(values: FloatArray) -> Noise:
    """The same about the sum of what the commit and what the seed contributes."""
    known = np.isfinite(values)
    residual = np.where(known, values, 0.0)
    for _ in range(ROUNDS):
        residual = _less_mean(_less_mean(residual, known, 2), known, 1)
    parts = known.any(axis=2).sum(axis=1) + known.any(axis=1).sum(axis=1) - 1
    freedom = np.maximum(known.sum(axis=(1, 2)) - parts, 0)
    return Noise((residual**2).sum(axis=(1, 2)) / np.maximum(freedom, 1), freedom.astype(np.float64))


def _less_mean(values: FloatArray, known: BoolArray, axis: int) -> FloatArray:
    """Values less their mean over an axis, of what is known."""
    mean = values.sum(axis=axis, keepdims=True) / np.maximum(known.sum(axis=axis, keepdims=True), 1)
    return np.where(known, values - mean, 0.0)


def moderated(own: Noise) -> Noise:
    """Posterior variances; units without replicates have the common law's. Too few units share one pooled variance."""
    known = (own.freedom > 0) & (own.variance > NOTHING**2)
    variance, freedom = np.where(known, own.variance, 0.0), np.where(known, own.freedom, 0.0)
    law = fit(Noise(variance[known], freedom[known]))
    if law is None:
        total = freedom.sum()
        mean = float(variance @ freedom) / total if total else 0.0
        return Noise(np.full(len(variance), mean), np.full(len(variance), min(total, MOST_FREEDOM)))
    common, strength = law
    if math.isinf(strength):
        return Noise(np.full(len(variance), common), np.full(len(variance), MOST_FREEDOM))
    total_freedom = freedom + strength
    posterior = (freedom * variance + strength * common) / total_freedom
    return Noise(posterior, np.minimum(total_freedom, MOST_FREEDOM))


def fit(own: Noise) -> tuple[float, float] | None:
    """The law of the units' variances: its scale, and degrees of freedom that are small where the units differ.

    Moments of log variances (Smyth 2004, section 6.2). None for fewer than 6 units.
    """
    from scipy.special import digamma, polygamma

    if len(own.variance) < FEWEST:
        return None
    half = own.freedom / 2
    logs = np.log(own.variance) - digamma(half) + np.log(half)
    excess = float(logs.var(ddof=1) - polygamma(1, half).mean())
    if excess <= 0:
        return float(np.exp(logs.mean())), math.inf
    strength = _inverse_trigamma(excess)
    return float(np.exp(logs.mean() + digamma(strength)) / strength), 2 * strength


def _inverse_trigamma(value: float) -> float:
    """x > 0 with ψ'(x) = value, by Newton's method on 1 / ψ' (Smyth 2004, appendix)."""
    from scipy.special import polygamma

    x = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(polygamma(1, x))
        step = trigamma * (1 - trigamma / value) / float(polygamma(2, x))
        x += step
        if abs(step) < 1e-10 * x:
            break
    return x
