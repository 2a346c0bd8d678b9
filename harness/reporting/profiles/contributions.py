"""What each solver adds to the others: right decimals, the virtual best solver, Shapley values; which ranks differ.

A solver's score on a model is its number of right decimals, -log10 of the error. The virtual best solver has on each
model the score of the best of its solvers (Xu, Hutter, Hoos, Leyton-Brown: "Evaluating component solver contributions
to portfolio-based algorithm selectors", SAT 2012).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

FloatArray = npt.NDArray[np.float64]
SIGNIFICANCE = 0.05


class RankTest(NamedTuple):
    """Friedman's test that all solvers are alike, and Nemenyi's critical difference of mean ranks."""

    p_value: float
    critical_difference: float


def right_decimals(values: FloatArray, floor: float) -> FloatArray:
    """(M, S) -log10 of errors: 0 from an error of 1 on and where a model is not solved, at most -log10 of the floor."""
    return -np.log10(np.clip(values, floor, 1.0))


def shapley_values(scores: FloatArray) -> FloatArray:
    """(M, S) of each solver on each model, in the game whose value is the best score of a coalition.

    The step from one score to the next is shared by all solvers that reach it: Fréchette, Kotthoff, Michalak, Rahwan,
    Hoos and Leyton-Brown, "Using the Shapley value to analyze algorithm portfolios", AAAI 2016, section 3.

    Args:
        scores: (M, S), 0 or more.
    """
    order = np.argsort(scores, axis=1)
    steps = np.diff(np.take_along_axis(scores, order, axis=1), axis=1, prepend=0.0)
    shares = np.cumsum(steps / np.arange(scores.shape[1], 0, -1), axis=1)
    values = np.empty_like(shares)
    np.put_along_axis(values, order, shares, axis=1)
    return values


def marginal_contributions(scores: FloatArray) -> FloatArray:
    """(M, S) by how much the virtual best solver's score falls without each solver (Xu and others, SAT 2012)."""
    if scores.shape[1] == 1:
        return scores.copy()
    second, first = np.partition(scores, -2, axis=1)[:, -2:].T
    return np.where(scores == first[:, None], (first - second)[:, None], 0.0)


def compare_ranks(ranks: FloatArray) -> RankTest | None:
    """Whether solvers differ (Demšar, "Statistical comparisons of classifiers over multiple data sets", JMLR 2006).

    Args:
        ranks: (M, S) of each solver on each model.

    Returns:
        None for less than three solvers or two models, of which Friedman's test knows nothing.
    """
    models, solvers = ranks.shape
    if solvers < 3 or models < 2:
        return None
    quantile = stats.studentized_range.ppf(1 - SIGNIFICANCE, solvers, np.inf) / np.sqrt(2)
    difference = float(quantile * np.sqrt(solvers * (solvers + 1) / (6 * models)))
    # All ranks equal: nothing tells the solvers apart.
    if np.ptp(ranks) == 0:
        return RankTest(1.0, difference)
    return RankTest(float(stats.friedmanchisquare(*ranks.T).pvalue), difference)


def rank_groups(mean_ranks: FloatArray, critical_difference: float) -> list[str]:
    """Of each solver the letters of its groups: within a group no two mean ranks differ significantly.

    Args:
        mean_ranks: (S,) ascending.
        critical_difference: two that differ by less are alike.
    """
    letters = [""] * len(mean_ranks)
    last_end, count = 0, 0
    for start, rank in enumerate(mean_ranks):
        end = int(np.searchsorted(mean_ranks, rank + critical_difference, side="right"))
        if end > last_end:
            for place in range(start, end):
                letters[place] += _letter(count)
            last_end, count = end, count + 1
    return letters


def _letter(number: int) -> str:
    return chr(ord("a") + number) if number < 26 else f"({number})"


def penalised_mean(seconds: FloatArray, limit: float) -> FloatArray:
    """PAR2, (S,): mean seconds over models, of unsolved ones twice the limit."""
    mean: FloatArray = np.where(seconds <= limit, seconds, 2 * limit).mean(axis=0)
    return mean
