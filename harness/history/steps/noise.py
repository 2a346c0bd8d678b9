"""What a series varies by between commits that changed nothing: variances of commits' means, and their certainty.

Costs vary between the blocks of a commit and between commits, as the gate has it (judging/pooling.py). Draws of an
error vary as the seeds of a commit do; where there is one seed, as neighbouring commits do.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np

from spinbench.history.judging import verdicts
from spinbench.history.judging.cost import FEWEST_GROUPS, MOST_DRIFT
from spinbench.history.judging.pooling import DISTURBANCE, MOST_FREEDOM, Blocks, Level, between, mean, within
from spinbench.history.judging.variance import NOTHING, ROUNDS, BoolArray, FloatArray, Noise, moderated, separate
from spinbench.history.steps.courses import Course

CERTAIN = 1e-18
"""Variance of numbers that have no noise."""


@dataclass(frozen=True)
class Weighed:
    """Commits' means of each cell, (cells, commits), and how well they are known.

    Attributes:
        values: logarithms; 0 where there is none.
        weights: 1 / variance; 0 where there is no value.
        freedom: (cells,) degrees of freedom behind the variances.
        certain: (cells,) whose numbers have no noise.
        common: variance between commits that the cells of a group share, by group.
    """

    values: FloatArray
    weights: FloatArray
    freedom: FloatArray
    certain: BoolArray
    common: dict[str, float]


def of_cost(course: Course, pieces: FloatArray) -> Weighed:
    """With `pieces`, (cells, commits): the number of changes that are known so far, up to each commit."""
    flags = list(np.diff(pieces, axis=1).T > 0)
    blocks = Blocks(course.values, course.scatter, course.paired, flags)
    replicates = within(blocks)
    commits = between("cell", blocks, replicates.variance)
    counts = np.isfinite(course.values).sum(axis=2)
    usual = np.median(counts[counts > 0]) if counts.any() else 1.0
    part, whole = replicates.variance / usual, replicates.variance / usual + commits.variance
    freedom = whole**2 / (part**2 / replicates.freedom + commits.variance**2 / commits.freedom)  # Satterthwaite (1946)
    values = _means(course)
    variance = replicates.variance[:, None] / np.maximum(counts, 1) + commits.variance[:, None]
    variance = variance + (DISTURBANCE * _disturbance(course.scatter)) ** 2 / 2
    values, variance = _levelled(course, values, variance, pieces)
    known = np.isfinite(values)
    return Weighed(
        values=np.where(known, values, 0.0),
        weights=np.where(known, 1 / variance, 0.0),
        freedom=np.minimum(freedom, MOST_FREEDOM),
        certain=np.zeros(len(values), dtype=bool),
        common=_shared(course, pieces, 1 / variance.mean(axis=1)),
    )


def of_accuracy(course: Course, pieces: FloatArray) -> Weighed:
    """The same of errors: independent draws, of which only those that are news are there."""
    own = separate(course.values)
    neighbours = _neighbours(course.values, pieces)
    alone = own.freedom == 0
    noise = moderated(
        Noise(np.where(alone, neighbours.variance, own.variance), np.where(alone, neighbours.freedom, own.freedom))
    )
    certain = (own.freedom > 0) & (own.variance <= NOTHING**2)
    variance = np.where(certain, CERTAIN, noise.variance)
    counts = np.isfinite(course.values).sum(axis=2)
    fit = certain if course.metric.judged == "certain" else certain | (noise.freedom > 0) & (noise.variance > 0)
    known = (counts > 0) & fit[:, None]
    return Weighed(
        values=np.where(known, mean(course.values, 2), 0.0),
        weights=np.where(known, counts / np.where(variance > 0, variance, 1.0)[:, None], 0.0),
        freedom=np.where(certain, MOST_FREEDOM, np.maximum(noise.freedom, 1.0)),
        certain=certain,
        common=dict.fromkeys(course.groups, 0.0),
    )


def residuals(values: FloatArray, weights: FloatArray, pieces: FloatArray) -> FloatArray:
    """Less the weighted mean of each cell's piece; NaN where there is no value."""
    found = np.full(values.shape, math.nan)
    for turn in range(int(pieces.max(initial=0)) + 1):
        own = (pieces == turn) & np.isfinite(values) & (weights > 0)
        total = np.where(own, weights, 0.0).sum(axis=1, keepdims=True)
        centre = np.where(own, weights * values, 0.0).sum(axis=1, keepdims=True) / np.where(total > 0, total, 1.0)
        found = np.where(own, values - centre, found)
    return found


def _means(course: Course) -> FloatArray:
    """Of each commit's blocks, less what each seed adds."""
    values = course.values
    if not course.paired:
        return mean(values, 2)
    rest = values.copy()
    seeds = np.zeros((len(values), 1, values.shape[2]))
    for _ in range(ROUNDS):
        rest = rest - np.nan_to_num(mean(rest, 2))[:, :, None]
        added = np.nan_to_num(mean(rest, 1))[:, None, :]
        seeds, rest = seeds + added, rest - added
    return mean(values - seeds, 2)


def _disturbance(scatter: FloatArray) -> FloatArray:
    """By how much more than usual the batches of a commit scatter."""
    own = mean(scatter, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        usual = np.nanmedian(own, axis=1, keepdims=True)
    return np.maximum(np.nan_to_num(own - usual), 0.0)


def _levelled(
    course: Course, values: FloatArray, variance: FloatArray, pieces: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Commits at which the machine was faster or slower are levelled by the median group, those at which all cells
    scatter have larger errors, as in the gate."""
    values, variance = values.copy(), variance.copy()
    rest = residuals(values, 1 / variance, pieces)
    speed = course.speed - np.nanmedian(course.speed) if np.isfinite(course.speed).any() else course.speed
    for turn in range(values.shape[1]):
        known = np.isfinite(rest[:, turn])
        if abs(speed[turn]) > MOST_DRIFT:
            groups = [float(np.mean(rest[own & known, turn])) for own in course.member if (own & known).any()]
            values[:, turn] -= np.median(groups) if len(groups) >= FEWEST_GROUPS else math.nan
        error = np.sqrt(variance[known, turn])
        level = Level("cell", rest[known, turn], error, np.ones(len(error)), np.empty((len(error), 0)))
        variance[:, turn] *= verdicts.inflation(level) ** 2
    return values, variance


def _shared(course: Course, pieces: FloatArray, precision: FloatArray) -> dict[str, float]:
    """B of each group, from what its mean varies by."""
    names = course.groups
    centred = course.values - _pieces_means(course.values, pieces)
    blocks = Blocks(centred, course.scatter, course.paired, [False] * (course.values.shape[1] - 1))
    grouped = blocks.pooled(course.member * precision) if names else blocks
    return dict(zip(names, between("group", grouped, within(grouped).variance).variance, strict=True)) if names else {}


def _pieces_means(values: FloatArray, pieces: FloatArray) -> FloatArray:
    """Of each cell between its changes, (cells, commits, 1)."""
    found = np.full((*values.shape[:2], 1), math.nan)
    for turn in range(int(pieces.max(initial=0)) + 1):
        own = pieces == turn
        centre = mean(np.where(own[:, :, None], values, math.nan), (1, 2))
        found[:, :, 0] = np.where(own, centre[:, None], found[:, :, 0])
    return found


def _neighbours(values: FloatArray, pieces: FloatArray) -> Noise:
    """Variance of a draw, from what neighbouring commits between changes differ by."""
    means, counts = mean(values, 2), np.isfinite(values).sum(axis=2)
    variance, freedom = np.zeros(len(values)), np.zeros(len(values))
    for i, (own, count, piece) in enumerate(zip(means, counts, pieces, strict=True)):
        (known,) = np.nonzero(count)
        one, other = known[:-1], known[1:]
        one, other = one[piece[known[:-1]] == piece[known[1:]]], other[piece[known[:-1]] == piece[known[1:]]]
        if len(one):
            variance[i] = float(np.mean((own[other] - own[one]) ** 2 / (1 / count[one] + 1 / count[other])))
            freedom[i] = len(one) * 2 / 3  # neighbouring differences share a commit
    return Noise(variance, freedom)
