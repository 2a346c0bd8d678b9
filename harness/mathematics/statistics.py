"""Monte Carlo standard errors, effective sample sizes and split R-hat from batch means; errors against a reference.

Batch means are treated as a short time series and the variance of their mean is found as for a chain's draws:
Geyer's initial monotone sequence over all chains, with the spread between chains included (Vehtari, Gelman,
Simpson, Carpenter, Bürkner, "Rank-normalization, folding, and localization", Bayesian Analysis 2021, eq. 3-13).
For long batches this reduces to the classical batch-means estimate, for short ones it keeps the autocorrelation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from spinbench.errors import SpinbenchError

FloatArray = npt.NDArray[np.float64]

# Marginal error to which `time_to_error` is tracked.
TARGET_RMSE = 0.01

# Numbers in a block, which fits a processor's cache.
_BLOCK = 2**17
# Up to this many lags, direct sums of products are faster than Fourier transforms.
FEW = 16
# Number of chains from which their spread alone gives the standard error, to 1 / sqrt(2 * 15) = 18 %.
MANY_CHAINS = 16


def blocks(rows: int, numbers: int) -> Iterator[slice]:
    """Slices of rows of so many numbers each that are worked on at a time; one at least."""
    step = max(1, _BLOCK // max(numbers, 1))
    for first in range(0, max(rows, 1), step):
        yield slice(first, first + step)


def standard_error(series: FloatArray) -> FloatArray:
    """Standard error of the mean over all batches and chains.

    Args:
        series: (B, …, C) batch means, B batches of (nearly) equal length, C chains.

    Returns:
        (…) float64; NaN where fewer than 4 batches leave nothing to estimate it from.
    """
    shape = series.shape[1:-1]
    flat = series.reshape(len(series), int(np.prod(shape)), series.shape[-1])
    errors = np.empty(flat.shape[1])
    for rows in blocks(flat.shape[1], len(flat) * flat.shape[-1]):
        means = half_means(flat[:, rows])
        errors[rows] = errors_and_variances(flat[:, rows], means, apart(means))[0]
    return errors.reshape(shape)


def half_means(series: FloatArray) -> FloatArray:
    """(…, 2C) means of the halves of each chain, first halves first, from (B, …, C); an odd first batch is left out."""
    half, odd = len(series) // 2, len(series) % 2
    if not half:
        return np.full((*series.shape[1:-1], 2 * series.shape[-1]), np.nan)
    means = _empty(*series.shape[1:-1], 2 * series.shape[-1])
    series[odd : odd + half].mean(axis=0, out=means[..., : series.shape[-1]])
    series[odd + half :].mean(axis=0, out=means[..., series.shape[-1] :])
    return means


def apart(means: FloatArray) -> FloatArray:
    """(…) how far the `half_means` (…, 2C) are from each other: their variance."""
    return np.asarray(means.var(axis=-1, ddof=1))


def errors_and_variances(series: FloatArray, means: FloatArray, between: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(n,) standard errors of (B, n, C), as `standard_error`, and (n,) mean squares about the half chains' means.

    Args:
        series: (B, n, C).
        means: (n, 2C) its `half_means`; between: (n,) how far they are `apart`.
    """
    batches, chains = len(series) // 2, 2 * series.shape[-1]
    if batches < 2:
        return np.full(series.shape[1], np.nan), np.full(series.shape[1], np.nan)
    odd = len(series) % 2
    halves = _empty(batches, *means.shape)
    for place, part in (
        (slice(None, chains // 2), slice(odd, odd + batches)),
        (slice(chains // 2, None), slice(odd + batches, None)),
    ):
        np.subtract(series[part], means[:, place], out=halves[:, :, place])
    variance = _product(halves, 0)
    total = variance + between
    time = _time(halves, variance, total)
    # At most B log10(B) effective batches: antithetic chains are credited only up to this limit (ibid., section 3.2).
    floor = 1 / max(np.log10(batches * chains), 1.0)
    squares = np.where(total > 0, total * np.maximum(time, floor) / (batches * chains), 0.0)
    if series.shape[-1] >= MANY_CHAINS:
        # Nor smaller than the spread of the chain means, which needs no model of the autocorrelation.
        spread = chain_means(series, means).var(axis=-1, ddof=1) / series.shape[-1]
        squares = np.where(time < 1, np.maximum(squares, spread), squares)
    return np.asarray(np.sqrt(squares)), variance


def _empty(*shape: int) -> FloatArray:
    """An array of such a shape in which the longer of the last two axes lies together, as loops over few are slow."""
    if len(shape) < 2 or shape[-2] <= shape[-1]:
        return np.empty(shape)
    return np.empty((*shape[:-2], shape[-1], shape[-2])).swapaxes(-1, -2)


def chain_means(series: FloatArray, means: FloatArray) -> FloatArray:
    """(n, C) means over (B, n, C), of which the `half_means` are known."""
    chains = series.shape[-1]
    return series.mean(axis=0) if len(series) % 2 else (means[:, :chains] + means[:, chains:]) / 2


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
    means = half_means(series)
    return r_hat_of_means(means, apart(means))


def r_hat_of_means(means: FloatArray, between: FloatArray) -> FloatArray:
    """As `split_r_hat`, of the `half_means` (…, 2C), and how far they are `apart` (…)."""
    within = (means * (1 - means)).mean(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        r_hat = np.sqrt((within + between) / within)
    with_limits = np.where(within > 0, r_hat, np.where(between > 0, np.inf, 1.0))
    return np.where(np.isnan(within), np.nan, with_limits)


def log_mean(series: FloatArray) -> tuple[float, float]:
    """Log of the mean of positive weights, with its standard error by the delta method.

    Args:
        series: (B, C) log batch means of the weights, of which each chain has one.

    Returns:
        (log of the mean over batches and chains, standard error of that logarithm: infinite, which is to say unknown,
        from fewer than 4 batches, or where no weight is positive).

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
        return float(top), float("inf")
    weights = np.exp(series - top)
    mean = weights.mean()
    error = float(standard_error(weights))
    return float(top + np.log(mean)), float(np.nan_to_num(error / mean, nan=np.inf, posinf=np.inf))


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


def _product(series: FloatArray, lag: int) -> FloatArray:
    """(n,) biased autocovariance of centred series (B, n, C) at a lag, averaged over chains."""
    sums = np.einsum("bnc,bnc->n", series[: len(series) - lag], series[lag:])
    return np.asarray(sums / series.shape[-1] / len(series))


def _spectrum(series: FloatArray) -> FloatArray:
    """(B, n): `_product` at all lags, by one transform of every chain and, of their mean spectrum, one back."""
    size = 1 << (2 * len(series) - 1).bit_length()
    spectrum = np.fft.rfft(series, n=size, axis=0)
    power = (spectrum.real**2 + spectrum.imag**2).mean(axis=-1)
    return np.asarray(np.fft.irfft(power, n=size, axis=0)[: len(series)] / len(series))


def _time(series: FloatArray, variance: FloatArray, total: FloatArray) -> FloatArray:
    """(n,) integrated autocorrelation times: 2 Σ P_t - 1 over pair sums P_t = ρ_2t + ρ_2t+1, kept positive and falling.

    Of most variables the first pairs are all that counts: only of those whose sums are not over products are formed at
    further lags, and after a few lags at all of them at once.

    Args:
        series: (B, n, C), centred; variance: (n,) at lag 0; total: (n,) with what lies between the chains.
    """
    batches = len(series)
    left, products = np.arange(series.shape[1]), np.empty((0, 0))
    level, least, sums = variance * batches / (batches - 1), np.full(len(left), np.inf), np.empty(0)

    def correlations(lag: int) -> FloatArray:
        """Of those that are left, at a lag; 0 where nothing varies."""
        product = products[lag] if len(products) else _product(series, lag)
        rho = level - product * batches / (batches - 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            rho /= total
        np.subtract(1.0, rho, out=rho)
        rho[np.isnan(rho)] = 0.0
        return rho

    for first in range(0, batches // 2 * 2, 2):
        if first == FEW and not len(products):
            products = _spectrum(series)
        pair = correlations(first) if first else np.ones(len(left))
        pair += correlations(first + 1)
        going = pair > 0
        np.minimum(least, pair, out=least)
        if not first:
            sums = least.copy()
        if not going.all():
            left, level, total, least = left[going], level[going], total[going], least[going]
            if len(products):
                products = products[:, going]
            else:
                series = series[:, going]
        if first:
            sums[left] += least
        if not len(left):
            break
    return 2 * sums - 1
