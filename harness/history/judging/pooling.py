"""Differences of cost between two commits, and their noise, for each cell, each group of cells, and all of them.

A commit's cost was measured in blocks, one a seed. The mean over k blocks has variance W / k + B: W between blocks
of one commit, B between commits whose program costs the same (another day, another place in memory). W is learnt from
replicates of both commits and of the past, B from neighbouring commits of the past, beginning with usual values. What a
step costs may depend on the seed, by the path that the chains take, so that blocks of equal seeds are compared.

A run that other programs disturbed is slower at its quartile, and its batches scatter more. By how much more they
scatter at head than at base is therefore a part of the error, which is all that there is to know of single runs.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from spinbench.history.judging.variance import (
    FEWEST,
    NOTHING,
    BoolArray,
    FloatArray,
    Noise,
    additive,
    moderated,
    separate,
)

WITHIN = Noise(np.array([0.06**2]), np.array([20.0]))
"""W without any replicates."""
FEW_FREEDOM = 5.0
"""Degrees of freedom of `WITHIN` that count beside the replicates of a level with too few units for a common law."""
BETWEEN = {"cell": 0.05**2, "group": 0.03**2, "all": 0.02**2}
"""B without any history."""
BETWEEN_FREEDOM = 20.0
MOST_FREEDOM = 60.0
DISTURBANCE = 0.5
"""Standard error of a difference for each unit by which the batches scatter more."""


@dataclass(frozen=True)
class Blocks:
    """Costs in blocks: (units, commits, blocks).

    Attributes:
        values: logarithms; NaN where a unit was not measured. The last commit is head, the last but one base, and
            what was measured before them comes first, in order of time.
        scatter: of the batches within each run, as a logarithm; 0 where it is not known.
        paired: whether the n-th block has the same seed at all commits.
        changed: for each neighbouring pair up to base, whether its cost changed, so that its difference is no noise; of
            all units, or of each.
    """

    values: FloatArray
    scatter: FloatArray
    paired: bool
    changed: Sequence[bool | BoolArray]

    def pooled(self, weights: FloatArray) -> Blocks:
        """Weighted means of units."""
        return replace(self, values=_weighted(weights, self.values), scatter=_weighted(weights, self.scatter))

    def centred(self) -> Blocks:
        """Less each unit's level, and what each seed adds to it, so that units with missing blocks can be pooled."""
        axis = 1 if self.paired else (1, 2)
        return replace(self, values=self.values - mean(self.values, axis, keepdims=True))

    def differences(self, before: int, after: int) -> tuple[FloatArray, FloatArray]:
        """Of two commits, and from how many blocks (a harmonic mean, where base and head have different seeds)."""
        return _differences(self.values, before, after, paired=self.paired)

    def disturbance(self) -> FloatArray:
        """By how much more batches scatter at head than at base."""
        return np.nan_to_num(_differences(self.scatter, -2, -1, paired=self.paired)[0])


@dataclass(frozen=True)
class Level:
    """Differences of units that are tested together.

    Attributes:
        name: "cell", "group" or "all".
        difference: of logarithms, head less base; one a unit, as the others are.
        error: standard errors of the differences.
        freedom: degrees of freedom with which these are known.
        weights: (units, cells) of the cells in each unit's difference.
    """

    name: str
    difference: FloatArray
    error: FloatArray
    freedom: FloatArray
    weights: FloatArray

    def shifted(self, shift: FloatArray) -> Level:
        """The same noise, with cells that differ by `shift` more."""
        return replace(self, difference=self.difference + self.weights @ shift)


def levels(blocks: Blocks, groups: Sequence[str]) -> tuple[Level, ...]:
    """The levels "cell", "group" and "all".

    Args:
        blocks: of cells, each of which was measured at base and at head.
        groups: of each cell.
    """
    centred = blocks.centred()
    cells = _level("cell", centred, np.eye(len(groups)))
    member = np.array([[group == name for group in groups] for name in sorted(set(groups))], dtype=np.float64)
    precision = member / cells.error**2
    weights = precision / precision.sum(axis=1, keepdims=True)
    independent = 1 / np.sqrt(precision.sum(axis=1))
    grouped = centred.pooled(weights)
    middle = _level("group", grouped, weights)
    # cells' errors may go together, but do not cancel
    middle = replace(middle, error=np.maximum(middle.error, independent))
    share = (1 / middle.error**2 / np.sum(1 / middle.error**2))[None]
    return cells, middle, _level("all", grouped.pooled(share), share @ weights)


def _level(name: str, blocks: Blocks, weights: FloatArray) -> Level:
    difference, count = blocks.differences(-2, -1)
    replicates = within(blocks)
    commits = between(name, blocks, replicates.variance)
    part = replicates.variance / count
    variance = part + commits.variance
    # Satterthwaite (1946)
    freedom = variance**2 / (part**2 / replicates.freedom + commits.variance**2 / commits.freedom)
    error = np.sqrt(2 * variance + (DISTURBANCE * blocks.disturbance()) ** 2)
    return Level(name, difference, error, np.minimum(freedom, MOST_FREEDOM), weights)


def within(blocks: Blocks) -> Noise:
    """W of each unit."""
    own = additive(blocks.values) if blocks.paired else separate(blocks.values)
    units = len(own.freedom)
    if not (own.variance > NOTHING**2).any():
        return Noise(np.full(units, WITHIN.variance[0]), np.full(units, WITHIN.freedom[0]))
    if units >= FEWEST:
        return moderated(own)
    freedom = own.freedom + FEW_FREEDOM
    return Noise((own.freedom * own.variance + FEW_FREEDOM * WITHIN.variance) / freedom, freedom)


def between(name: str, blocks: Blocks, replicates: FloatArray) -> Noise:
    """B, from what neighbouring commits up to base differ by beyond W."""
    units, usual = len(replicates), BETWEEN[name]
    total, pairs = np.zeros(units), np.zeros(units)
    for turn, changed in enumerate(blocks.changed):
        difference, count = blocks.differences(turn, turn + 1)
        known = np.isfinite(difference) & np.logical_not(changed)
        total += np.where(known, np.nan_to_num(difference) ** 2 / 2 - replicates / np.maximum(count, 1), 0.0)
        pairs += known
    excess = np.maximum(total / np.maximum(pairs, 1), 0.0)
    freedom = pairs * 2 / 3  # neighbouring differences share a commit
    strength = freedom.sum()
    if not strength:
        return Noise(np.full(units, usual), np.full(units, BETWEEN_FREEDOM))
    common = (BETWEEN_FREEDOM * usual + strength * _typical(excess, freedom)) / (BETWEEN_FREEDOM + strength)
    variance = (BETWEEN_FREEDOM * common + freedom * excess) / (BETWEEN_FREEDOM + freedom)
    return Noise(variance, BETWEEN_FREEDOM + freedom)


def _typical(excess: FloatArray, freedom: FloatArray) -> float:
    """A scale for all units that a few whose cost did change do not raise."""
    from scipy.special import chdtri

    known = freedom > 0
    mean = float(excess[known].mean())
    if known.sum() < FEWEST:
        return mean
    nu = float(freedom[known].mean())
    return min(mean, float(np.median(excess[known])) * nu / float(chdtri(nu, 0.5)))


def _differences(values: FloatArray, before: int, after: int, *, paired: bool) -> tuple[FloatArray, FloatArray]:
    one, other = values[:, before], values[:, after]
    if paired:
        each = other - one
        return mean(each, 1), np.isfinite(each).sum(axis=1).astype(np.float64)
    counts = [np.maximum(np.isfinite(side).sum(axis=1), 1e-9) for side in (one, other)]
    return mean(other, 1) - mean(one, 1), 2 / (1 / counts[0] + 1 / counts[1])


def _weighted(weights: FloatArray, values: FloatArray) -> FloatArray:
    """Means over the first axis, of what is known; NaN where nothing is."""
    known = np.isfinite(values)
    total = np.einsum("gc,cts->gts", weights, known)
    sums = np.einsum("gc,cts->gts", weights, np.where(known, values, 0.0))
    return np.where(total > 0, sums / np.where(total > 0, total, 1.0), np.nan)


def mean(values: FloatArray, axis: int | tuple[int, ...], *, keepdims: bool = False) -> FloatArray:
    """Of what is known; NaN where nothing is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of nothing: NaN is what is wanted
        found: FloatArray = np.nanmean(values, axis=axis, keepdims=keepdims)
    return found
