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
# Rows with a larger fourth moment are skipped: a product of two chains that are both rarely 1 is not normal.
MAX_FOURTH_MOMENT = 8.0
# Factor on the normal limit for means of such products.
PRODUCT_SLACK = 1.15
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


def require_no_correlation(name: str, *runs: FloatArray) -> npt.NDArray[np.bool_]:
    """Require that chains as far from each other as can be, in a circle, of rows (R, C) of a statistic with one seed,
    and with the next where that is given, are not correlated.

    Returns:
        Which rows have tails so light that they were looked at.

    Raises:
        CheckError: some are.
    """
    chains, scaled = runs[0].shape[1], []
    for rows in runs:
        scaled.append((rows - rows.mean(axis=1, keepdims=True)) / rows.std(axis=1, keepdims=True))
    is_light_tailed = np.all([(x**4).mean(axis=1) < MAX_FOURTH_MOMENT for x in scaled], axis=0)
    spectra = [np.fft.rfft(x[is_light_tailed], axis=1) for x in scaled]
    products = [np.fft.irfft(spectra[0] * s.conj(), chains, axis=1) / np.sqrt(chains) for s in spectra]
    products[0] = products[0][:, 1 : chains // 2 + 1]
    limit = PRODUCT_SLACK * normal_limit(max(sum(z.size for z in products), 1))
    for z, first in zip(products, (1, 0), strict=False):
        largest = np.abs(z).max(axis=0, initial=0)
        # What chains share with one another they share with each multiple: the first counts.
        far = int(np.argmax(largest >= 0.9 * largest.max(initial=0)))
        worst, far = float(largest[far]), far + first
        if far > chains // 2:
            far -= chains
        relation = f"chains c and c + {far}" if far > 1 else "neighbouring chains"
        if not first:
            relation = "chains of two seeds"
            if far:
                relation = f"chain c {'+-'[far < 0]} {abs(far)} and chain c of the next seed"
        require(
            worst <= limit, f"{relation} are correlated in {name}: |z| = {worst:.1f}, at most {limit:.1f} is chance"
        )
    return np.asarray(is_light_tailed)
