"""Is a metric worse than before, beyond its noise? One-sided tests and Holm's correction for many comparisons.

Few seeds leave a cell's own variance badly known, and some hundred comparisons leave no test of three against three
values significant. The cells of one metric therefore lend each other strength: their variances are taken to be
draws of a scaled inverse chi-square law fitted to all of them (the moderated t-test of Smyth, "Linear models and
empirical Bayes methods for assessing differential expression", Stat. Appl. Genet. Mol. Biol. 3, 2004). Where the
cells differ much in noise, the fit says so and each falls back on its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spinbench.history.axes import Metric
from spinbench.history.journal import Replicates

FloatArray = npt.NDArray[np.float64]

_NOTHING = 1e-12
"""Spreads and differences below this are rounding errors."""
_FEWEST = 6
"""Cells with replicates below which no common law is fitted."""


@dataclass(frozen=True)
class Comparison:
    """A metric of a cell before and after.

    Attributes:
        base, head: its values in the centre (geometric mean on a log scale, else the mean), at least the floor.
        worse: probability of a rise like this, or a greater one, if nothing had changed.
        better: the same of a fall.
        evidence: what the probabilities come from.
    """

    base: float
    head: float
    worse: float
    better: float
    evidence: str

    @property
    def ratio(self) -> float:
        """head / base; above 1 is worse."""
        return self.head / self.base


@dataclass(frozen=True)
class Noise:
    """Variance of one value and the degrees of freedom with which it is known."""

    variance: float
    freedom: float


def compare(metric: Metric, pairs: Sequence[tuple[Replicates, Replicates]]) -> list[Comparison]:
    """Compare the cells of a metric, each with at least one value before and after.

    Replicates give the variance, moderated as said above; single values take it from the other cells' replicates.
    Without any replicates, single values are compared by the metric's usual noise, or by their recorded standard
    errors where these are greater: those of chains that have not converged are far too small.
    """
    scaled = [(_scaled(metric, base.values), _scaled(metric, head.values)) for base, head in pairs]
    own = [_pooled(x, y) for x, y in scaled]
    common = fit([noise for noise in own if noise.freedom and noise.variance > _NOTHING**2])
    found = []
    for (base, head), (x, y), noise in zip(pairs, scaled, own, strict=True):
        difference = float(y.mean() - x.mean())
        count = f"{len(x)} and {len(y)} values"
        if noise.freedom and noise.variance <= _NOTHING**2:
            worse, better, evidence = *_tails(difference, 0.0, math.inf), f"{count} without noise"
        elif noise.freedom or common:
            used = moderate(noise, common) if common else noise
            scale = math.sqrt(used.variance * (1 / len(x) + 1 / len(y)))
            worse, better, evidence = *_tails(difference, scale, used.freedom), count
        else:
            scale, evidence = _single(metric, base, head)
            worse, better = _tails(difference, scale, math.inf)
        found.append(Comparison(_centre(metric, x), _centre(metric, y), worse, better, evidence))
    return found


def fit(noises: Sequence[Noise]) -> Noise | None:
    """The law of the cells' variances: its scale, and degrees of freedom that are small where the cells differ.

    Moments of log variances (Smyth 2004, section 6.2). None for fewer than 6 cells.
    """
    from scipy.special import digamma, polygamma

    if len(noises) < _FEWEST:
        return None
    half = np.array([noise.freedom for noise in noises]) / 2
    logs = np.log([noise.variance for noise in noises]) - digamma(half) + np.log(half)
    excess = float(logs.var(ddof=1) - polygamma(1, half).mean())
    if excess <= 0:
        return Noise(float(np.exp(logs.mean())), math.inf)
    half_common = _inverse_trigamma(excess)
    return Noise(float(np.exp(logs.mean() + digamma(half_common)) / half_common), 2 * half_common)


def moderate(own: Noise, common: Noise) -> Noise:
    """The posterior of a cell's variance."""
    freedom = own.freedom + common.freedom
    if math.isinf(freedom):
        return common
    variance = (own.freedom * own.variance + common.freedom * common.variance) / freedom
    return Noise(variance, freedom)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values: calling those below α significant errs at all with probability at most α.

    Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6, 1979.
    """
    adjusted = [1.0] * len(p_values)
    least = 0.0
    for rank, i in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        least = max(least, min(1.0, p_values[i] * (len(p_values) - rank)))
        adjusted[i] = least
    return adjusted


def _scaled(metric: Metric, values: Sequence[float]) -> FloatArray:
    raised = np.maximum(np.asarray(values, dtype=np.float64), metric.floor)
    return np.log(raised) if metric.scale == "log" else raised


def _centre(metric: Metric, scaled: FloatArray) -> float:
    mean = float(scaled.mean())
    return math.exp(mean) if metric.scale == "log" else mean


def _pooled(x: FloatArray, y: FloatArray) -> Noise:
    freedom = len(x) + len(y) - 2
    squares = float(((x - x.mean()) ** 2).sum() + ((y - y.mean()) ** 2).sum())
    return Noise(squares / freedom if freedom else 0.0, freedom)


def _tails(difference: float, scale: float, freedom: float) -> tuple[float, float]:
    """P(T >= t) and P(T <= t) of Student's law for t = difference / scale."""
    from scipy.special import ndtr, stdtr

    if scale <= _NOTHING:
        sign = 0.0 if abs(difference) <= _NOTHING else math.copysign(1.0, difference)
        return 0.5 - sign / 2, 0.5 + sign / 2
    score = difference / scale
    if math.isinf(freedom):
        return float(ndtr(-score)), float(ndtr(score))
    return float(stdtr(freedom, -score)), float(stdtr(freedom, score))


def _single(metric: Metric, base: Replicates, head: Replicates) -> tuple[float, str]:
    """Standard deviation of the difference of two single values, on the metric's scale."""
    usual = metric.noise * math.sqrt(2)
    if not (base.errors and head.errors):
        return usual, "single values"
    errors = (
        one.errors[0] / max(one.values[0], metric.floor) if metric.scale == "log" else one.errors[0]
        for one in (base, head)
    )
    return max(usual, math.hypot(*errors)), "single values with standard errors"


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
