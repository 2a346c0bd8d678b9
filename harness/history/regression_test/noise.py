"""By how much numbers vary where nothing changed: the one noise model of the gate and of changepoints.

A commit is measured in blocks, one a seed. The mean over k blocks has variance W / k + B: W between blocks of one
commit, B between commits whose program is the same (another day, another place in memory). W is learnt from replicates
of all commits, B from neighbouring commits, beginning with usual values. What a step costs may depend on the seed, by
the path that the chains take, so that blocks of equal seeds are compared.

Few replicates leave each unit's variance badly known, so that units lend each other strength: their variances are taken
to be draws of a scaled inverse chi-square law fitted to all of them (the moderated t-test of Smyth, "Linear models and
empirical Bayes methods for assessing differential expression", Stat. Appl. Genet. Mol. Biol. 3, 2004). Where the units
differ much in noise, the fit says so and each falls back on its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

NOTHING = 1e-12
"""Spreads and differences of logarithms below this are rounding errors."""
MIN_UNITS = 6
"""Units with replicates below which no common law is fitted."""
ROUNDS = 8
"""Of alternating means, exact at once where no block is missing."""
MAX_MODERATED_FREEDOM = 30.0
"""Degrees of freedom that a moderated variance is credited with at most: the law itself is an approximation."""
MAX_FREEDOM = 60.0
"""The same of a variance with its part between commits."""
WITHIN, WITHIN_FREEDOM = 0.06**2, 20.0
"""W without any replicates."""
FEW_UNITS_FREEDOM = 5.0
"""Degrees of freedom of `WITHIN` that count beside the replicates of a level with too few units for a common law."""
BETWEEN = {"cell": 0.05**2, "group": 0.03**2, "all": 0.02**2}
"""B without any history."""
BETWEEN_FREEDOM = 20.0
FREEDOM_OF_A_PAIR = 2 / 3
"""Of the difference of neighbouring commits, which shares each of them with another one."""
DISTURBANCE = 0.5
"""Standard error of a difference for each unit by which the batches of a run scatter more than others."""


@dataclass(frozen=True)
class Noise:
    """Variances, one a unit, and the degrees of freedom with which they are known (0: not at all)."""

    variance: FloatArray
    freedom: FloatArray


@dataclass(frozen=True)
class Blocks:
    """Logarithms of a metric in blocks: (units, commits, blocks), commits in the order of time.

    Attributes:
        values: NaN where a unit was not measured.
        scatter: of the batches within each run, as a logarithm; 0 where it is not known.
        paired: whether the n-th block has the same seed at all commits.
        pieces: (units, commits) or (1, commits), how many changes there are up to each commit; what neighbours differ
            by across a change is no noise.
    """

    values: FloatArray
    scatter: FloatArray
    paired: bool
    pieces: FloatArray

    def pooled(self, weights: FloatArray) -> Blocks:
        """Weighted means of units; `pieces` have to be those of all of them."""
        return replace(self, values=_weighted(weights, self.values), scatter=_weighted(weights, self.scatter))

    def centred(self) -> Blocks:
        """Less each unit's level, and what each seed adds to it, so that units with missing blocks can be pooled."""
        axis = 1 if self.paired else (1, 2)
        return replace(self, values=self.values - mean(self.values, axis, keepdims=True))

    def differences(self) -> tuple[FloatArray, FloatArray]:
        """Of neighbouring commits, (units, commits - 1), and from how many blocks each.

        The number is a harmonic mean where the commits have different seeds.
        """
        return _differences(self.values, self.paired)

    def disturbance(self) -> FloatArray:
        """By how much more batches scatter at the last commit than at the one before it."""
        return np.nan_to_num(_differences(self.scatter, self.paired)[0][:, -1])


def mean(values: FloatArray, axis: int | tuple[int, ...], *, keepdims: bool = False) -> FloatArray:
    """Of what is finite; NaN where nothing is."""
    known = np.isfinite(values)
    count = known.sum(axis=axis, keepdims=keepdims)
    total = np.where(known, values, 0.0).sum(axis=axis, keepdims=keepdims)
    return np.where(count > 0, total / np.maximum(count, 1), math.nan)


def smaller(one: FloatArray, other: FloatArray) -> FloatArray:
    """Of two changes the smaller one, and none where they go different ways: the median of both and 0."""
    return np.maximum(np.minimum(one, other), np.minimum(np.maximum(one, other), 0.0))


def split_seeds(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What each seed adds, (units, 1, blocks), and what neither the commit nor the seed explains."""
    seeds, rest = np.zeros((len(values), 1, values.shape[2])), values
    for _ in range(ROUNDS):
        rest = rest - mean(rest, 2, keepdims=True)
        added = mean(rest, 1, keepdims=True)
        seeds, rest = seeds + added, rest - added
    return seeds, rest


def replicates(values: FloatArray, *, paired: bool) -> Noise:
    """The variance of each unit's blocks about the means of their commits, and of their seeds where these are paired.

    Args:
        values: (units, commits, blocks), NaN where a block is missing.
        paired: as of `Blocks`.
    """
    known = np.isfinite(values)
    parts = known.any(axis=2).sum(axis=1)
    if paired:
        rest = split_seeds(values)[1]
        parts = parts + known.any(axis=1).sum(axis=1) - 1
    else:
        rest = values - mean(values, 2, keepdims=True)
    freedom = np.maximum(known.sum(axis=(1, 2)) - parts, 0)
    return Noise(np.nansum(rest**2, axis=(1, 2)) / np.maximum(freedom, 1), freedom.astype(np.float64))


def within_commits(blocks: Blocks) -> Noise:
    """W of each unit."""
    own = replicates(blocks.values, paired=blocks.paired)
    if not (own.variance > NOTHING**2).any():
        return Noise(np.full(len(own.freedom), WITHIN), np.full(len(own.freedom), WITHIN_FREEDOM))
    if len(own.freedom) >= MIN_UNITS:
        return moderated(own)
    freedom = own.freedom + FEW_UNITS_FREEDOM
    return Noise((own.freedom * own.variance + FEW_UNITS_FREEDOM * WITHIN) / freedom, freedom)


def between_commits(level: str, blocks: Blocks, within: FloatArray) -> Noise:
    """B, from what neighbouring commits with `pieces` differ by beyond W."""
    difference, count = (part[:, : blocks.pieces.shape[1] - 1] for part in blocks.differences())
    known = np.isfinite(difference) & (np.diff(blocks.pieces, axis=1) == 0)
    beyond = np.where(known, difference**2 / 2 - within[:, None] / np.maximum(count, 1), 0.0)
    pairs = known.sum(axis=1)
    excess = np.maximum(beyond.sum(axis=1) / np.maximum(pairs, 1), 0.0)
    freedom = pairs * FREEDOM_OF_A_PAIR
    strength = freedom.sum()
    common = BETWEEN[level]
    if strength:
        common = (BETWEEN_FREEDOM * common + strength * _typical(excess, freedom)) / (BETWEEN_FREEDOM + strength)
    variance = (BETWEEN_FREEDOM * common + freedom * excess) / (BETWEEN_FREEDOM + freedom)
    return Noise(variance, BETWEEN_FREEDOM + freedom)


def satterthwaite(within: Noise, count: FloatArray | float, between: Noise) -> Noise:
    """The variance of a mean over `count` blocks, W / k + B (Satterthwaite 1946)."""
    part = within.variance / count
    variance = part + between.variance
    freedom = variance**2 / (part**2 / within.freedom + between.variance**2 / between.freedom)
    return Noise(variance, np.minimum(freedom, MAX_FREEDOM))


def moderated(own: Noise) -> Noise:
    """Posterior variances; units without replicates have the common law's. Too few units share one pooled variance."""
    known = (own.freedom > 0) & (own.variance > NOTHING**2)
    variance, freedom = np.where(known, own.variance, 0.0), np.where(known, own.freedom, 0.0)
    law = fit_law(Noise(variance[known], freedom[known]))
    if law is None:
        total = freedom.sum()
        pooled = float(variance @ freedom) / total if total else 0.0
        return Noise(np.full(len(variance), pooled), np.full(len(variance), min(total, MAX_MODERATED_FREEDOM)))
    common, strength = law
    if math.isinf(strength):
        return Noise(np.full(len(variance), common), np.full(len(variance), MAX_MODERATED_FREEDOM))
    posterior = (freedom * variance + strength * common) / (freedom + strength)
    return Noise(posterior, np.minimum(freedom + strength, MAX_MODERATED_FREEDOM))


def fit_law(own: Noise) -> tuple[float, float] | None:
    """The law of the units' variances: its scale, and degrees of freedom that are small where the units differ.

    Moments of log variances (Smyth 2004, section 6.2). None for fewer than 6 units.
    """
    from scipy.special import digamma, polygamma

    if len(own.variance) < MIN_UNITS:
        return None
    half = own.freedom / 2
    logs = np.log(own.variance) - digamma(half) + np.log(half)
    excess = float(logs.var(ddof=1) - polygamma(1, half).mean())
    if excess <= 0:
        return float(np.exp(logs.mean())), math.inf
    # ψ'(strength) = excess, by Newton's method on 1 / ψ' (Smyth 2004, appendix); scipy.optimize takes long to import
    strength, step = 0.5 + 1 / excess, math.inf
    while abs(step) >= 1e-10 * strength:
        trigamma = float(polygamma(1, strength))
        step = trigamma * (1 - trigamma / excess) / float(polygamma(2, strength))
        strength += step
    return float(np.exp(logs.mean() + digamma(strength)) / strength), 2 * strength


def _differences(values: FloatArray, paired: bool) -> tuple[FloatArray, FloatArray]:
    if paired:
        each = np.diff(values, axis=1)
        return mean(each, 2), np.isfinite(each).sum(axis=2).astype(np.float64)
    count = np.maximum(np.isfinite(values).sum(axis=2), 1e-9)
    return np.diff(mean(values, 2), axis=1), 2 / (1 / count[:, :-1] + 1 / count[:, 1:])


def _weighted(weights: FloatArray, values: FloatArray) -> FloatArray:
    """Means over the first axis, of what is known; NaN where nothing is."""
    known = np.isfinite(values)
    total = np.einsum("gc,cts->gts", weights, known)
    sums = np.einsum("gc,cts->gts", weights, np.where(known, values, 0.0))
    return np.where(total > 0, sums / np.where(total > 0, total, 1.0), math.nan)


def _typical(excess: FloatArray, freedom: FloatArray) -> float:
    """A scale for all units that a few whose cost did change do not raise."""
    from scipy.special import chdtri

    known = freedom > 0
    average = float(excess[known].mean())
    if known.sum() < MIN_UNITS:
        return average
    nu = float(freedom[known].mean())
    return min(average, float(np.median(excess[known])) * nu / float(chdtri(nu, 0.5)))
