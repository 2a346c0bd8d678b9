"""What compares solvers over models, as functions of an array alone: (models, solvers), infinite where unsolved."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
RESAMPLES = 2000
CONFIDENCE = 0.95


class MeanRanks(NamedTuple):
    """Of each solver, (S,): the mean over models, and the ends of its interval."""

    mean: FloatArray
    low: FloatArray
    high: FloatArray


def ratios(values: FloatArray, floor: float) -> FloatArray:
    """Each value over the least of its model, (M, S), 1 or more; infinite where unsolved.

    These are the performance ratios of Dolan and Moré, "Benchmarking optimization software with performance profiles",
    Math. Program. 91 (2002), equation (1.1). Values below `floor` are equal: who needs one that small has no use for
    a smaller one, and an exact answer would be infinitely better than any other.
    """
    floored = np.maximum(values, floor)
    best = floored.min(axis=1, keepdims=True)
    return np.where(np.isfinite(floored), floored / np.where(np.isfinite(best), best, 1.0), np.inf)


def performance(ratio: FloatArray, factors: FloatArray) -> FloatArray:
    """The profiles ρ, (F, S): on which share of the models a solver is within each factor of the best (the same)."""
    within: FloatArray = (ratio[None] <= factors[:, None, None]).mean(axis=1)
    return within


def places(ratio: FloatArray) -> FloatArray:
    """The rank of each solver on each model, (M, S), from 1; equals, and all that solve nothing, share their mean."""
    less = (ratio[:, None, :] < ratio[:, :, None]).sum(axis=2)
    equal = (ratio[:, None, :] == ratio[:, :, None]).sum(axis=2)
    shared: FloatArray = less + (equal + 1) / 2
    return shared


def mean_ranks(place: FloatArray, *, resamples: int = RESAMPLES, seed: int = 0) -> MeanRanks:
    """Over models, with percentile intervals of the bootstrap over models (Efron and Tibshirani 1993, chapter 13).

    The interval says how much the rank hangs on which models were asked; noise within a model is no part of it.
    """
    models = len(place)
    drawn = np.random.default_rng(seed).integers(models, size=(resamples, models))
    counts = np.stack([np.bincount(row, minlength=models) for row in drawn])
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(counts @ place / models, (tail, 1 - tail), axis=0)
    return MeanRanks(place.mean(axis=0), low, high)
