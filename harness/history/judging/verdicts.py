"""The one test of whether a number got worse: `spinbench gate`, `report --compare` and `history` all ask it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from spinbench.history.judging.pooling import Level
from spinbench.history.judging.variance import FloatArray

Verdict = Literal["worse", "better", "not worse than 10 %", "undecided"]

EQUIVALENCE = math.log(1.10)
"""Whose one-sided upper bound lies below this is not worse."""
CONFIDENCE = 0.95
"""Of that bound, and of the intervals that are shown."""
POWER = 0.8
"""With which a change of the detectable size is found."""
FEWEST_CELLS = 12
"""Cells below which their spread is no measure of the day's noise."""
NORMAL_MAD = 0.6744897501960817
"""Median of |z| for a normal z."""


@dataclass(frozen=True)
class Decision:
    """What is said of a level's units.

    Attributes:
        level: as tested, its errors inflated.
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


def inflation(cells: Level) -> float:
    """How much more today's cells scatter about their median than their errors say, at least 1.

    A busy day widens its own bounds, while a change of everything, or of fewer than half of the cells, does not.
    """
    if len(cells.difference) < FEWEST_CELLS:
        return 1.0
    z = (cells.difference - np.median(cells.difference)) / cells.error
    return max(1.0, float(np.median(np.abs(z))) / NORMAL_MAD)


def decide(
    level: Level, margin: float, alpha: float, inflation: float = 1.0, tries: FloatArray | float = 1.0
) -> Decision:
    """Test each unit's difference against a margin.

    Args:
        level: differences of logarithms and their errors; an error of 0 stands for a number without noise.
        margin: a log ratio that is let pass, however certain it is.
        alpha: probability of any "worse" in this level if nothing has changed, and of any "better".
        inflation: factor of all errors.
        tries: among how many differences each unit's was the most striking one (Bonferroni's factor of its p-values).
    """
    from scipy.special import stdtr, stdtrit

    error = level.error * inflation
    freedom, difference = level.freedom, level.difference
    raw = [np.minimum(tries * stdtr(freedom, _scores(sign * difference + margin, error)), 1.0) for sign in (-1, 1)]
    worse, better = (adjusted(one) for one in raw)
    upper = difference + stdtrit(freedom, CONFIDENCE) * error
    half = stdtrit(freedom, 0.5 + CONFIDENCE / 2) * error
    quantiles = stdtrit(freedom, 1 - alpha / (tries * max(len(error), 1))) + stdtrit(freedom, POWER)
    return Decision(
        level=level,
        worse=worse,
        better=better,
        verdicts=tuple(_verdict(*one) for one in zip(worse < alpha, better < alpha, upper < EQUIVALENCE, strict=True)),
        low=difference - half,
        high=difference + half,
        detectable=margin + quantiles * error,
    )


def adjusted(p_values: Sequence[float] | FloatArray) -> FloatArray:
    """Of which those below α are a set with at most a share α of false ones; if all are, there is one with chance α.

    Benjamini and Hochberg, "Controlling the false discovery rate", J. R. Statist. Soc. B 57, 1995.
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p)
    scaled = p[order] * len(p) / np.arange(1, len(p) + 1)
    found = np.empty(len(p))
    found[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return found


def _scores(difference: FloatArray, error: FloatArray) -> FloatArray:
    certain = np.where(difference < 0, -np.inf, np.inf)
    return np.where(error > 0, difference / np.where(error > 0, error, 1.0), certain)


def _verdict(worse: bool, better: bool, bounded: bool) -> Verdict:
    if worse:
        return "worse"
    if better:
        return "better"
    return "not worse than 10 %" if bounded else "undecided"
