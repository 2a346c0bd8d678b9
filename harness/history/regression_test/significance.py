"""The one test of whether a number got worse: `spinbench gate`, `report --compare` and `history` all ask it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from spinbench.history.regression_test.noise import FloatArray

Verdict = Literal["worse", "better", "not worse than 10 %", "undecided"]
# "identical" and "shown" are the verdicts of what is not tested: equal numbers and metrics that are not judged.
FindingVerdict = Verdict | Literal["identical", "shown"]

# An effect whose one-sided upper confidence bound is below this is "not worse than 10 %".
EQUIVALENCE_BOUND = math.log(1.10)
# Confidence of that bound and of the printed intervals.
CONFIDENCE = 0.95
# Probability of detecting a change of the printed detectable size.
POWER = 0.8
# Smallest number of cells whose spread is used as an estimate of the day's noise.
MIN_CELLS = 12
# Median of |z| of a standard normal z.
NORMAL_MAD = 0.6744897501960817


@dataclass(frozen=True)
class Level:
    """Differences of units that are tested together.

    Attributes:
        name: "cell", "group" or "all".
        difference: of logarithms, head less base; one a unit, as the others are.
        error: standard errors of the differences; 0 of numbers without noise.
        freedom: degrees of freedom with which these are known.
        weights: (units, cells) of the cells in each unit's difference.
    """

    name: str
    difference: FloatArray
    error: FloatArray
    freedom: FloatArray
    weights: FloatArray


@dataclass(frozen=True)
class Decision:
    """What is said of a level's units.

    Attributes:
        level: as tested, before its errors are inflated.
        worse, better: p-values of the two one-sided tests, corrected for the number of units.
        verdicts: one a unit.
        low, high: 95 % interval of the difference.
        detectable: the log ratio that would have been found with probability 0.8.
    """

    level: Level
    worse: FloatArray
    better: FloatArray
    verdicts: tuple[Verdict, ...]
    low: FloatArray
    high: FloatArray
    detectable: FloatArray


def error_inflation(difference: FloatArray, error: FloatArray) -> float:
    """How much more today's cells scatter about their median than their errors say, at least 1.

    A busy day widens its own bounds, while a change of everything, or of fewer than half of the cells, does not.
    """
    if len(difference) < MIN_CELLS:
        return 1.0
    z = (difference - np.median(difference)) / error
    return max(1.0, float(np.median(np.abs(z))) / NORMAL_MAD)


def decide_verdicts(
    level: Level, margin: float, alpha: float, inflation: float = 1.0, tries: FloatArray | float = 1.0
) -> Decision:
    """Test each unit's difference against a margin.

    P-values are corrected by Benjamini and Hochberg (J. R. Statist. Soc. B 57, 1995): those below α are a set with at
    most a share α of false ones; if all are, there is one with chance α.

    Args:
        level: differences of logarithms and their errors.
        margin: a log ratio that is let pass, however certain it is.
        alpha: probability of any "worse" in this level if nothing has changed, and of any "better".
        inflation: factor of all errors.
        tries: among how many differences each unit's was the most striking one (Bonferroni's factor of its p-values).
    """
    from scipy.special import stdtr, stdtrit

    error, freedom, difference = level.error * inflation, level.freedom, level.difference
    scores = _t_scores(np.stack([-difference, difference]) + margin, error)
    worse, better = _adjust_p_values(np.minimum(tries * stdtr(freedom, scores), 1.0))
    upper = difference + stdtrit(freedom, CONFIDENCE) * error
    half = stdtrit(freedom, 0.5 + CONFIDENCE / 2) * error
    quantiles = stdtrit(freedom, 1 - alpha / (tries * max(len(error), 1))) + stdtrit(freedom, POWER)
    return Decision(
        level=level,
        worse=worse,
        better=better,
        verdicts=tuple(map(_verdict, worse < alpha, better < alpha, upper < EQUIVALENCE_BOUND)),
        low=difference - half,
        high=difference + half,
        detectable=margin + quantiles * error,
    )


def _adjust_p_values(p: FloatArray) -> FloatArray:
    """P-values corrected along the second axis; scipy.stats has this, and takes a second to import."""
    units = p.shape[1]
    order = np.argsort(p, axis=1)[:, ::-1]
    scaled = np.take_along_axis(p, order, axis=1) * units / np.arange(units, 0, -1)
    adjusted = np.empty_like(p)
    np.put_along_axis(adjusted, order, np.minimum(np.minimum.accumulate(scaled, axis=1), 1.0), axis=1)
    return adjusted


def _t_scores(difference: FloatArray, error: FloatArray) -> FloatArray:
    certain = np.where(difference < 0, -np.inf, np.inf)
    return np.where(error > 0, difference / np.where(error > 0, error, 1.0), certain)


def _verdict(worse: bool, better: bool, bounded: bool) -> Verdict:
    if worse:
        return "worse"
    if better:
        return "better"
    if bounded:
        return "not worse than 10 %"
    return "undecided"
