"""Marginals as ratios of means: chains whose states do not all count alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spinbench.api import Estimate, Model, Trace
from spinbench.methods.weighted_means import ChainMeans, chain_estimate
from spinbench.models.conditionals import uniform_marginals

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]


# Larger weights are excluded: the squares of their shares overflow or underflow.
MAX_WEIGHT = 1e300


def state_pairs(cardinalities: npt.ArrayLike) -> tuple[IntArray, IntArray]:
    """(R,) variables and (R,) states: state 1 of each where all are binary, else all states, one after another."""
    sizes = np.asarray(cardinalities, dtype=np.int64)
    if (sizes == 2).all():
        return np.arange(len(sizes), dtype=np.int32), np.ones(len(sizes), dtype=np.int32)
    variables = np.repeat(np.arange(len(sizes)), sizes)
    states = np.arange(len(variables)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return variables.astype(np.int32), states.astype(np.int32)


def ratio_means(cardinalities: tuple[int, ...], trace: Trace) -> ChainMeans:
    """From "s" (R, C), sums of weights in states, and "w" (C,), sums of all weights.

    The ratio r = Σ s / Σ w over all chains is linearised, r + (s - r w) / mean w: these have its mean, and to first
    order its error, whatever s and w have to do with each other.
    """
    w = trace.series("w")
    top = float(w.max(initial=0.0))
    if not 0 < top < MAX_WEIGHT:
        equal = uniform_marginals(cardinalities)
        return ChainMeans(equal, equal[None, :, None] + np.zeros((len(w), 1, w.shape[1])), 0.0)
    # Relative to the largest weight, since squares of small numbers would underflow to 0.
    w, mean = w / top, float(trace.mean("w").mean()) / top
    means = np.clip(trace.mean("s").mean(axis=-1) / top / mean, 0.0, 1.0)
    series = means[:, None] + (trace.series("s") / top - means[:, None] * w[:, None, :]) / mean
    return ChainMeans(means, series, float(w.sum() ** 2 / (w.size * (w**2).sum())))


def weighted_marginals(model: Model, trace: Trace, stuck: bool, visits: float = np.inf) -> Estimate:
    """Of `ratio_means`; the arguments are those of `chain_estimate`."""
    means = ratio_means(model.cardinalities, trace)
    estimate = chain_estimate(model, trace, means, stuck, visits)
    return replace(estimate, diagnostics={"effective_share": means.share})
