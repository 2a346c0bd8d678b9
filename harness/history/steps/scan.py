"""Where a series most strikingly changes its level: all windows of a fixed net, all places to cut them in two.

The net is that of seeded binary segmentation (Kovács, Bühlmann, Li and Munk, "Seeded binary segmentation: a general
methodology for fast and optimal changepoint detection", Biometrika 110, 2023): windows of halving lengths that overlap
by half, so that a spell between two changes is seen as well as a change for good.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from spinbench.history.judging.variance import BoolArray, FloatArray

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Rows:
    """Stretches of series, (rows, commits) where no other shape is given.

    Attributes:
        values: logarithms; 0 where there is none.
        weights: 1 / variance; 0 where there is no value, or the commit lies outside the stretch.
        lengths: by how much fewer samples raise a value, as logarithms; a difference counts only as far as it is there
            with and without them.
        pool: (units, rows) of 0 and 1, sparse, the rows that are cut together and of which the mean difference counts.
        common: (units,) variance between commits that the rows of a unit share.
    """

    values: FloatArray
    weights: FloatArray
    lengths: FloatArray
    pool: csr_array
    common: FloatArray


@dataclass(frozen=True)
class Cuts:
    """The most striking cut of each unit.

    Attributes:
        at: index of the first commit after it; -1 where there is nothing to cut.
        difference: after less before; variance: its own.
        tries: among how many cuts it was chosen.
    """

    at: Indices
    difference: FloatArray
    variance: FloatArray
    tries: FloatArray


def windows(length: int) -> Iterator[tuple[int, int]]:
    """First commit and the one after the last, of all windows."""
    for halvings in range(max(math.ceil(math.log2(max(length, 2))), 1)):
        size, count = length / 2**halvings, 2 ** (halvings + 1) - 1
        step = (length - size) / (count - 1) if count > 1 else 0.0
        spans = {(math.floor(i * step), min(math.ceil(i * step + size), length)) for i in range(count)}
        yield from sorted(span for span in spans if span[1] - span[0] > 1)


def most_striking(rows: Rows, margin: float) -> Cuts:
    """Of all cuts of all windows the one that lies the most standard errors beyond the margin."""
    length = rows.values.shape[1]
    units = rows.pool.shape[0]
    sums = [_running(part) for part in (rows.weights, rows.weights * rows.values, rows.weights * rows.lengths)]
    here = rows.pool @ (rows.weights > 0) > 0
    counts = _running(here.astype(np.float64))
    best = Cuts(np.full(units, -1), np.zeros(units), np.ones(units), np.ones(units))
    score, seen = np.full(units, -1.0), np.zeros((units, length))
    for first, end in windows(length):
        cuts = np.arange(first + 1, end)
        difference, variance = _differences(sums, first, cuts, end)
        known = np.isfinite(variance)
        precision = rows.pool @ np.where(known, 1 / variance, 0.0)
        before, after = counts[:, cuts] - counts[:, [first]], counts[:, [end]] - counts[:, cuts]
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = rows.pool @ np.where(known, difference / variance, 0.0) / precision
            spread = 1 / precision + rows.common[:, None] * (1 / before + 1 / after)
            found = np.maximum(np.abs(mean) - margin, 0.0) / np.sqrt(spread)
        valid: BoolArray = (precision > 0) & here[:, cuts]
        seen[:, cuts] += valid
        found = np.where(valid, found, -1.0)
        place = found.argmax(axis=1)
        unit = np.arange(units)
        better = found[unit, place] > score
        score = np.where(better, found[unit, place], score)
        best.at[better] = cuts[place[better]]
        best.difference[better] = mean[better, place[better]]
        best.variance[better] = spread[better, place[better]]
    return Cuts(best.at, best.difference, best.variance, _tries(seen, counts))


def _differences(sums: list[FloatArray], first: int, cuts: Indices, end: int) -> tuple[FloatArray, FloatArray]:
    """Of each row's weighted means after and before each cut, and the variances; infinite where one side is empty."""
    before = [one[:, cuts] - one[:, [first]] for one in sums]
    after = [one[:, [end]] - one[:, cuts] for one in sums]
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = 1 / before[0] + 1 / after[0]
        difference, longer = (after[i] / after[0] - before[i] / before[0] for i in (1, 2))
    return _between(difference, difference + longer), variance


def _between(one: FloatArray, other: FloatArray) -> FloatArray:
    """The median of both and 0."""
    return np.maximum(np.minimum(one, other), np.minimum(np.maximum(one, other), 0.0))


def _running(values: FloatArray) -> FloatArray:
    """Sums of what comes before each commit, and of all."""
    found: FloatArray = np.pad(np.cumsum(values, axis=1, dtype=np.float64), ((0, 0), (1, 0)))
    return found


def _tries(seen: FloatArray, counts: FloatArray) -> FloatArray:
    """How many windows hold different values, at all cuts: not more than there are stretches that end there."""
    before, after = counts[:, :-1], counts[:, -1:] - counts[:, :-1]
    tries: FloatArray = np.maximum(np.minimum(seen, before * after).sum(axis=1), 1.0)
    return tries
