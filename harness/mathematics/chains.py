"""What batches of several chains show of each variable: errors, how far the chains are apart, and whether they move.

Chains forget where they began in the end. Until then their means differ, in both halves of a run alike, or all of them
move to the same side.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from spinbench.mathematics.statistics import (
    FloatArray,
    apart,
    blocks,
    chain_means,
    errors_and_variances,
    half_means,
    r_hat_of_means,
    standard_error,
)

# Smallest number of chains whose agreement is evidence of mixing: k chains all miss one of two equal modes with
# probability 2^(1 - k). Of 80 runs on such a model four chains were misled 4 times, eight chains never.
FEWEST_CHAINS = 8
# Smallest number of chains for a test whether chains remember their initial states.
FEWEST_TOLD = 4
# Rounding error of means of float32 chains, which depends on their states.
_ROUNDING = 1e-6
# Probability that, among N variables, chance correlates some variable's chain means in the two halves of a run although
# its chains have mixed.
_CHANCE = 0.05
# Probability that chains which have mixed are taken for slow ones.
_SLOW = 0.01
# Length in autocorrelation times of stretches of a chain that count as independent.
STRETCH = 10.0
# Probability that, among N variables, the means of some variable's halves differ by chance; small, since every run is
# tested.
_DRIFT = 0.001


class HalfComparison(NamedTuple):
    """Of n variables, (n,) each, of which chains tell that are enough to be compared.

    Attributes:
        move, wander: mean and standard deviation over chains of what their second halves are beyond the first; 0 where
            there are too few to tell.
        alike: correlation of the chains' means in both halves; 1 where there are too few to tell.
    """

    move: FloatArray
    wander: FloatArray
    alike: FloatArray


class ChainSummary(NamedTuple):
    """Of n variables, (n,) each.

    Attributes:
        means, variance: of all batches and chains; standard: errors; spread: as of `spread_of_chains`; r_hat: split.
        compared: None of fewer than `FEWEST_TOLD` chains.
    """

    means: FloatArray
    variance: FloatArray
    standard: FloatArray
    spread: FloatArray
    r_hat: FloatArray
    compared: HalfComparison | None

    def ungroup(self, size: float) -> ChainSummary:
        """What it says of single chains, where what was summarized are means of groups of `size` independent ones.

        Margossian et al., "Nested R-hat", Bayesian Analysis 2024: group means are closer by the square root of `size`.
        How their halves compare stays that of groups, of whose number the degrees of freedom are.
        """
        with np.errstate(divide="ignore"):
            within = np.maximum(1 - size * (1 - 1 / self.r_hat**2), 0.0)
            r_hat = 1 / np.sqrt(within)
        return self._replace(variance=self.variance * size, spread=self.spread * np.sqrt(size), r_hat=r_hat)


class MeanErrors(NamedTuple):
    """Of N means, (N,) each.

    Attributes:
        se: standard errors by batches, and by the spread of chains where these are apart by more than chance, or not
            longer than a stretch, of which batches tell no more. The larger of both would be a tenth too large.
        freedom: degrees of freedom of `se`: chains are independent, and so are stretches of `STRETCH` autocorrelation
            times.
        spread: as of `spread_of_chains`.
    """

    se: FloatArray
    freedom: FloatArray
    spread: FloatArray


class Every(NamedTuple):
    """What is known of a run beyond a series of it, which has some of its chains, or its batches pooled.

    Attributes:
        chains: how many they are.
        variance: (N,) of means of the batches as they were: longer ones do not tell an autocorrelation that is shorter.
        levels: (B, N) the series' batch means over all chains; None where it has them all.
    """

    chains: int
    variance: FloatArray
    levels: FloatArray | None = None

    def extend_summary(self, summary: ChainSummary, n_chains: int) -> ChainSummary:
        """What so many chains have shown, of all of them."""
        if self.levels is None:
            return summary._replace(variance=self.variance.copy())
        half, odd, compared = len(self.levels) // 2, len(self.levels) % 2, summary.compared
        move = np.zeros(self.levels.shape[1])
        if half:
            move = self.levels[odd + half :].mean(axis=0) - self.levels[odd : odd + half].mean(axis=0)
        return summary._replace(
            means=self.levels.mean(axis=0),
            variance=self.variance.copy(),
            standard=summary.standard * np.sqrt(n_chains / self.chains),
            compared=None if compared is None else compared._replace(move=move),
        )


class Batches(Protocol):
    """A series (B, N, C), or what finds some variables of it: `series[:, some]`."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, key: tuple[slice, slice], /) -> FloatArray: ...


def summarize_chains(series: Batches) -> ChainSummary:
    """What a series shows; a few variables at a time, so that it takes little memory beside."""
    count, chains = series.shape[1], series.shape[-1]
    means, variance, standard, spread, r_hat = np.empty((5, count))
    compared = None
    if chains >= FEWEST_TOLD:
        compared = HalfComparison(np.empty(count), np.empty(count), np.empty(count))
    summary = ChainSummary(means, variance, standard, spread, r_hat, compared)
    for rows in blocks(count, len(series) * chains):
        part = _summarize_block(series[:, rows])
        pairs = [*zip(summary[:5], part[:5], strict=True), *zip(compared or (), part.compared or (), strict=True)]
        for whole, values in pairs:
            whole[rows] = values
    return summary


def _summarize_block(series: FloatArray) -> ChainSummary:
    batches, _, chains = series.shape
    means = half_means(series)
    halves = apart(means)
    standard, about = errors_and_variances(series, means, halves)
    whole = chain_means(series, means)
    mean = whole.mean(axis=-1)
    variance = np.zeros(len(mean))
    if batches < 4 or batches % 2:
        if batches * chains > 1:
            variance = series.var(axis=(0, 2), ddof=1)
    else:
        between = ((means - mean[:, None]) ** 2).mean(axis=-1)
        variance = (about + between) * (batches * chains / (batches * chains - 1))
    spread = np.sqrt(halves) if parts_of(series) > chains else spread_of(whole)
    compared = None
    if chains >= FEWEST_TOLD:
        compared = HalfComparison(*_half_moves(means), _half_correlations(means))
    return ChainSummary(mean, variance, standard, spread, r_hat_of_means(means, halves), compared)


def drifts(series: FloatArray, claimed: FloatArray) -> bool:
    """Whether all chains still move away from their starts, by more than chance and than what is claimed.

    R-hat compares chains with each other: those that are on their way together are alike.

    Args:
        series: (B, N, C) of any numbers.
        claimed: (N,) errors of their means.
    """
    return drift(*_half_moves(half_means(series)), series.shape[-1], claimed)


def _half_moves(means: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(N,) mean and standard deviation over chains of the difference of their halves; 0 of chains too few to tell."""
    first, second = np.split(means, 2, axis=-1)
    if np.isnan(means).any() or first.shape[-1] < FEWEST_CHAINS:
        return np.zeros(len(means)), np.zeros(len(means))
    moves = second - first
    return moves.mean(axis=-1), moves.std(axis=-1, ddof=1)


def drift(move: FloatArray, wander: FloatArray, chains: int, claimed: FloatArray) -> bool:
    """As `drifts`, of what is known of so many chains."""
    from scipy.special import stdtrit

    farthest = stdtrit(max(chains - 1, 1), 1 - _DRIFT / max(len(move), 1)) * wander / np.sqrt(chains)
    return bool((np.abs(move) > np.maximum(farthest, np.maximum(claimed, _ROUNDING))).any())


def _half_correlations(means: FloatArray) -> FloatArray:
    """(N,) correlation over chains of the means of both halves; 1 of chains too few to tell, 0 where they are equal."""
    if np.isnan(means).any() or means.shape[-1] < 2 * FEWEST_TOLD:
        return np.ones(len(means))
    first, second = np.split(means, 2, axis=-1)
    first, second = first - first.mean(axis=-1, keepdims=True), second - second.mean(axis=-1, keepdims=True)
    norm = np.sqrt((first**2).sum(axis=-1) * (second**2).sum(axis=-1))
    return np.where(norm > 0, (first * second).sum(axis=-1) / np.where(norm > 0, norm, 1.0), 0.0)


def certain(alike: FloatArray, chains: int) -> npt.NDArray[np.bool_]:
    """(N,) of which variables the chains are alike in both halves by more than chance.

    R-hat is above 1 by chance too, and the largest of many the more; but chance is not the same in both halves.
    """
    from scipy.special import stdtrit

    if chains < FEWEST_TOLD:
        return np.ones(len(alike), dtype=np.bool_)
    # t-test of a correlation, with the level divided by the number of variables (Bonferroni).
    t = stdtrit(chains - 2, 1 - _CHANCE / max(len(alike), 1))
    return np.asarray(alike > t / np.sqrt(chains - 2 + t**2))


def spread_of_chains(series: FloatArray) -> tuple[FloatArray, int]:
    """(N,) standard deviation of the means of chains, and of how many; of their halves where chains are few."""
    parts = parts_of(series)
    return spread_of(half_means(series) if parts > series.shape[-1] else series.mean(axis=0)), parts


def errors_of_means(series: FloatArray) -> MeanErrors:
    """Of means of any numbers (B, N, C) over batches and chains."""
    batches, _, chains = series.shape
    spread, parts = spread_of_chains(series)
    se, of_chains = np.nan_to_num(standard_error(series)), spread / np.sqrt(parts)
    variance = np.maximum(series.var(axis=(0, 2)), np.finfo(float).tiny)
    time = np.maximum(se**2 * batches * chains / variance, 1.0)
    freedom = chains * np.maximum(batches / (STRETCH * time), 1.0) - 1
    by_chains = are_apart(of_chains, se, parts) | (freedom < chains if chains >= FEWEST_CHAINS else of_chains > se)
    return MeanErrors(np.where(by_chains, of_chains, se), np.where(by_chains, parts - 1, freedom), spread)


def are_apart(of_chains: npt.ArrayLike, se: npt.ArrayLike, parts: int) -> npt.NDArray[np.bool_]:
    """Whether standard errors by the spread of so many independent means are larger than others by more than chance."""
    from scipy.special import chdtri

    freedom = max(parts - 1, 1)
    return np.asarray(of_chains > np.asarray(se) * np.sqrt(chdtri(freedom, _SLOW) / freedom))


def parts_of(series: Batches) -> int:
    """Of how many means the spread of chains is found."""
    chains: int = series.shape[-1]
    return 2 * chains if chains < FEWEST_TOLD and len(series) > 1 else chains


def spread_of(means: FloatArray) -> FloatArray:
    """(N,) standard deviations of means (N, P); 0 of a single one."""
    return np.asarray(means.std(axis=-1, ddof=min(means.shape[-1] - 1, 1)))


def r_hat_of(values: FloatArray) -> FloatArray:
    """(N,) split R-hat of any numbers (B, N, C)."""
    half = len(values) // 2
    if not half:
        return np.full(values.shape[1], np.nan)
    halves = np.concatenate([values[:half], values[half : 2 * half]], axis=-1)
    within = halves.var(axis=0, ddof=min(half - 1, 1)).mean(axis=-1)
    between = halves.mean(axis=0).var(axis=-1, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        r_hat = np.sqrt((within * (half - 1) / half + between) / within)
    return np.where(within > 0, r_hat, np.where(between > 0, np.inf, 1.0))
