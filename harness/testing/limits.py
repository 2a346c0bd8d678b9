"""How far a correct plugin may stray by chance: limits of test statistics at a fixed rate of false alarms.

All checks have fixed seeds, so a correct plugin passes always or never; `FALSE_ALARM_RATE` is the probability of never.
A check that makes m comparisons gives each the rate FALSE_ALARM_RATE / m (Bonferroni), whatever their dependence.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import bdtrc, chdtri, kolmogi, ndtri, stdtrit, xlogy

from spinbench.testing.check import require

# Tolerated factor on a standard error: batch means and the delta method are asymptotic.
SLACK = 1.25
FloatArray = npt.NDArray[np.float64]

# False alarms per check. With 8 comparisons the limit is 4.9 standard errors; 5.2 for means of 67 chains.
FALSE_ALARM_RATE = 1e-5
# Smallest expected count of a cell.
MIN_EXPECTED_COUNT = 20


def normal_limit(comparisons: int) -> float:
    """Largest |z| of so many standard normal numbers."""
    return float(-ndtri(FALSE_ALARM_RATE / (2 * comparisons)))


def student_limit(degrees: int, comparisons: int) -> float:
    """Largest |t| of so many Student t numbers."""
    return float(-stdtrit(degrees, FALSE_ALARM_RATE / (2 * comparisons)))


def chi_square_limits(degrees: float, comparisons: int) -> tuple[float, float]:
    """Smallest and largest of so many chi-square numbers."""
    tail = FALSE_ALARM_RATE / (2 * comparisons)
    return float(chdtri(degrees, 1 - tail)), float(chdtri(degrees, tail))


def binomial_limit(trials: int, rate: float) -> int:
    """Most of so many trials that happen, each with this probability."""
    return next(k for k in range(trials + 1) if k == trials or bdtrc(k, trials, rate) <= FALSE_ALARM_RATE)


def kolmogorov_limit(draws: int, comparisons: int) -> float:
    """Largest of so many Kolmogorov-Smirnov distances between `draws` numbers and their own law (asymptotic)."""
    return float(kolmogi(FALSE_ALARM_RATE / comparisons) / np.sqrt(draws))


def kolmogorov_distance(probabilities: npt.ArrayLike) -> float:
    """Distance of the distribution function's values at the draws from the uniform law."""
    ordered = np.sort(np.ravel(np.asarray(probabilities, dtype=np.float64)))
    steps = np.arange(ordered.size + 1) / ordered.size
    # The distance is largest just before or at a draw.
    return float(max((steps[1:] - ordered).max(), (ordered - steps[:-1]).max()))


def likelihood_ratio(counts: npt.ArrayLike, probabilities: npt.ArrayLike) -> tuple[float, int]:
    """G = 2 Σ n log(n / expected) and its degrees of freedom, by chi-square; rare cells are pooled into one.

    Pearson's statistic has nearly three times too many values beyond ALARM where cells expect 10 draws: such counts
    are skew. G has twice too many there, and as many as it should where cells expect 20.
    """
    pooled_counts, p = np.asarray(counts, dtype=np.float64), np.asarray(probabilities, dtype=np.float64)
    expected = p * pooled_counts.sum()
    rare = expected < MIN_EXPECTED_COUNT
    pooled_counts = np.append(pooled_counts[~rare], pooled_counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    # Even pooled, the rare cells are too few: their draws are added to the likeliest cell.
    if expected[-1] < MIN_EXPECTED_COUNT:
        top = int(expected[:-1].argmax())
        for array in (pooled_counts, expected):
            array[top] += array[-1]
        pooled_counts, expected = pooled_counts[:-1], expected[:-1]
    return float(2 * xlogy(pooled_counts, pooled_counts / expected).sum()), expected.size - 1


def require_law(sample: str, counts: npt.ArrayLike, probabilities: npt.ArrayLike) -> None:
    """Require that counts of states agree with these probabilities, up to chance.

    Raises:
        CheckError: they are not; `sample` says whose counts they are.
    """
    statistic, degrees = likelihood_ratio(counts, probabilities)
    max_statistic = chi_square_limits(degrees, 1)[1]
    require(
        statistic <= max_statistic,
        f"{sample} has G = {statistic:.1f} (twice a log likelihood ratio) with {degrees} degrees of freedom; at most "
        f"{max_statistic:.1f} is chance",
    )
