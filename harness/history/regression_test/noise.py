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

# Spreads and differences of logarithms below this are rounding errors.
ROUNDING_ERROR = 1e-12
# Number of units with replicates from which a common prior of their variances is fitted.
MIN_UNITS = 6
# Iterations of alternating means; without missing blocks the first is exact.
N_MEAN_ITERATIONS = 8
# Limit of the degrees of freedom of a moderated variance, since its prior is an approximation.
MAX_MODERATED_FREEDOM = 30.0
# The same for a variance that includes the variance between commits.
MAX_FREEDOM = 60.0
# Variance within commits W if there are no replicates, and its degrees of freedom.
DEFAULT_WITHIN_VARIANCE, DEFAULT_WITHIN_FREEDOM = 0.06**2, 20.0
# Degrees of freedom of the default W beside the replicates of a level with too few units for a common prior.
FEW_UNITS_FREEDOM = 5.0
# Variance between commits B if there is no history.
DEFAULT_BETWEEN_VARIANCE = {"cell": 0.05**2, "group": 0.03**2, "all": 0.02**2}
# Degrees of freedom of these defaults beside those of the history.
BETWEEN_FREEDOM = 20.0
# Degrees of freedom of a difference of neighbouring commits: each commit enters two differences.
FREEDOM_OF_A_PAIR = 2 / 3
# Increase of the standard error of a difference per unit of excess scatter of the batches within runs.
DISTURBANCE = 0.5


@dataclass(frozen=True)
class VarianceEstimate:
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
        segment_index: (units, commits) or (1, commits), how many changes there are up to each commit; what
            neighbours differ by across a change is no noise.
    """

    values: FloatArray
    scatter: FloatArray
    paired: bool
    segment_index: FloatArray

    def pool(self, weights: FloatArray) -> Blocks:
        """Weighted means of units; `segment_index` has to be that of all of them."""
        return replace(
            self, values=_weighted_means(weights, self.values), scatter=_weighted_means(weights, self.scatter)
        )

    def centre(self) -> Blocks:
        """Less each unit's level, and what each seed adds to it, so that units with missing blocks can be pooled."""
        axis = 1 if self.paired else (1, 2)
        return replace(self, values=self.values - finite_mean(self.values, axis, keepdims=True))

    def differences(self) -> tuple[FloatArray, FloatArray]:
        """Of neighbouring commits, (units, commits - 1), and from how many blocks each.

        The number is a harmonic mean where the commits have different seeds.
        """
        return _neighbour_differences(self.values, self.paired)

    def scatter_increase(self) -> FloatArray:
        """By how much more batches scatter at the last commit than at the one before it."""
        return np.nan_to_num(_neighbour_differences(self.scatter, self.paired)[0][:, -1])


def finite_mean(values: FloatArray, axis: int | tuple[int, ...], *, keepdims: bool = False) -> FloatArray:
    """Of what is finite; NaN where nothing is."""
    is_finite = np.isfinite(values)
    count = is_finite.sum(axis=axis, keepdims=keepdims)
    total = np.where(is_finite, values, 0.0).sum(axis=axis, keepdims=keepdims)
    return np.where(count > 0, total / np.maximum(count, 1), math.nan)


def smaller_change(first: FloatArray, second: FloatArray) -> FloatArray:
    """Of two changes the smaller one, and none where they go different ways: the median of both and 0."""
    return np.maximum(np.minimum(first, second), np.minimum(np.maximum(first, second), 0.0))


def split_seed_effects(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What each seed adds, (units, 1, blocks), and what neither the commit nor the seed explains."""
    seeds, rest = np.zeros((len(values), 1, values.shape[2])), values
    for _ in range(N_MEAN_ITERATIONS):
        rest = rest - finite_mean(rest, 2, keepdims=True)
        added = finite_mean(rest, 1, keepdims=True)
        seeds, rest = seeds + added, rest - added
    return seeds, rest


def replicate_variance(values: FloatArray, *, paired: bool) -> VarianceEstimate:
    """The variance of each unit's blocks about the means of their commits, and of their seeds where these are paired.

    Args:
        values: (units, commits, blocks), NaN where a block is missing.
        paired: as of `Blocks`.
    """
    is_finite = np.isfinite(values)
    parts = is_finite.any(axis=2).sum(axis=1)
    if paired:
        rest = split_seed_effects(values)[1]
        # The means of commits and of seeds share one constant, hence - 1.
        parts = parts + is_finite.any(axis=1).sum(axis=1) - 1
    else:
        rest = values - finite_mean(values, 2, keepdims=True)
    freedom = np.maximum(is_finite.sum(axis=(1, 2)) - parts, 0)
    return VarianceEstimate(np.nansum(rest**2, axis=(1, 2)) / np.maximum(freedom, 1), freedom.astype(np.float64))


def within_commit_variance(blocks: Blocks) -> VarianceEstimate:
    """W of each unit."""
    estimate = replicate_variance(blocks.values, paired=blocks.paired)
    if not (estimate.variance > ROUNDING_ERROR**2).any():
        return VarianceEstimate(
            np.full(len(estimate.freedom), DEFAULT_WITHIN_VARIANCE),
            np.full(len(estimate.freedom), DEFAULT_WITHIN_FREEDOM),
        )
    if len(estimate.freedom) >= MIN_UNITS:
        return moderate_variances(estimate)
    freedom = estimate.freedom + FEW_UNITS_FREEDOM
    return VarianceEstimate(
        (estimate.freedom * estimate.variance + FEW_UNITS_FREEDOM * DEFAULT_WITHIN_VARIANCE) / freedom, freedom
    )


def between_commit_variance(level: str, blocks: Blocks, within: FloatArray) -> VarianceEstimate:
    """B, from what neighbouring commits of one segment differ by beyond W."""
    difference, count = (part[:, : blocks.segment_index.shape[1] - 1] for part in blocks.differences())
    within_segment = np.isfinite(difference) & (np.diff(blocks.segment_index, axis=1) == 0)
    # A difference of two commits has twice the variance; the part within blocks is subtracted.
    beyond = np.where(within_segment, difference**2 / 2 - within[:, None] / np.maximum(count, 1), 0.0)
    pairs = within_segment.sum(axis=1)
    excess = np.maximum(beyond.sum(axis=1) / np.maximum(pairs, 1), 0.0)
    freedom = pairs * FREEDOM_OF_A_PAIR
    strength = freedom.sum()
    common = DEFAULT_BETWEEN_VARIANCE[level]
    if strength:
        common = (BETWEEN_FREEDOM * common + strength * _typical_excess(excess, freedom)) / (BETWEEN_FREEDOM + strength)
    variance = (BETWEEN_FREEDOM * common + freedom * excess) / (BETWEEN_FREEDOM + freedom)
    return VarianceEstimate(variance, BETWEEN_FREEDOM + freedom)


def satterthwaite_variance(
    within: VarianceEstimate, count: FloatArray | float, between: VarianceEstimate
) -> VarianceEstimate:
    """The variance of a mean over `count` blocks, W / k + B (Satterthwaite 1946)."""
    part = within.variance / count
    variance = part + between.variance
    freedom = variance**2 / (part**2 / within.freedom + between.variance**2 / between.freedom)
    return VarianceEstimate(variance, np.minimum(freedom, MAX_FREEDOM))


def moderate_variances(noise: VarianceEstimate) -> VarianceEstimate:
    """Posterior variances; units without replicates have the common law's. Too few units share one pooled variance."""
    is_replicated = (noise.freedom > 0) & (noise.variance > ROUNDING_ERROR**2)
    variance, freedom = np.where(is_replicated, noise.variance, 0.0), np.where(is_replicated, noise.freedom, 0.0)
    law = fit_inverse_chi_square(VarianceEstimate(variance[is_replicated], freedom[is_replicated]))
    if law is None:
        total = freedom.sum()
        pooled = float(variance @ freedom) / (total or 1.0)
        return VarianceEstimate(
            np.full(len(variance), pooled), np.full(len(variance), min(total, MAX_MODERATED_FREEDOM))
        )
    common, strength = law
    if math.isinf(strength):
        return VarianceEstimate(np.full(len(variance), common), np.full(len(variance), MAX_MODERATED_FREEDOM))
    posterior = (freedom * variance + strength * common) / (freedom + strength)
    return VarianceEstimate(posterior, np.minimum(freedom + strength, MAX_MODERATED_FREEDOM))


def fit_inverse_chi_square(noise: VarianceEstimate) -> tuple[float, float] | None:
    """The law of the units' variances: its scale, and degrees of freedom that are small where the units differ.

    Moments of log variances (Smyth 2004, section 6.2). None for fewer than 6 units.
    """
    from scipy.special import digamma, polygamma

    if len(noise.variance) < MIN_UNITS:
        return None
    half = noise.freedom / 2
    # Subtracts the mean of log χ² with these degrees of freedom.
    logs = np.log(noise.variance) - digamma(half) + np.log(half)
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


def _neighbour_differences(values: FloatArray, paired: bool) -> tuple[FloatArray, FloatArray]:
    if paired:
        each = np.diff(values, axis=1)
        return finite_mean(each, 2), np.isfinite(each).sum(axis=2).astype(np.float64)
    count = np.maximum(np.isfinite(values).sum(axis=2), 1e-9)
    return np.diff(finite_mean(values, 2), axis=1), 2 / (1 / count[:, :-1] + 1 / count[:, 1:])


def _weighted_means(weights: FloatArray, values: FloatArray) -> FloatArray:
    """Means over the first axis, of what is known; NaN where nothing is."""
    is_finite = np.isfinite(values)
    total = np.einsum("gc,cts->gts", weights, is_finite)
    sums = np.einsum("gc,cts->gts", weights, np.where(is_finite, values, 0.0))
    return np.where(total > 0, sums / np.where(total > 0, total, 1.0), math.nan)


def _typical_excess(excess: FloatArray, freedom: FloatArray) -> float:
    """A scale for all units that a few whose cost did change do not raise."""
    from scipy.special import chdtri

    has_pairs = freedom > 0
    average = float(excess[has_pairs].mean())
    if has_pairs.sum() < MIN_UNITS:
        return average
    nu = float(freedom[has_pairs].mean())
    # The median over the median of χ² per degree of freedom also estimates the variance, and resists outliers.
    return min(average, float(np.median(excess[has_pairs])) * nu / float(chdtri(nu, 0.5)))
