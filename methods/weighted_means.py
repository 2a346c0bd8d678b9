"""Means of weighted independent draws and of chains, whose states may not all count alike, with their errors."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, NamedTuple, TypedDict

import numpy as np
import numpy.typing as npt

from spinbench.api import Estimate, Model, Trace, marginal_claims
from spinbench.mathematics import statistics
from spinbench.mathematics.claims import NOTHING, UNSEEN, error_bound, widen_of_rare
from spinbench.models.conditionals import split_fields, uniform_marginals

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]
Marginals = Literal["rao_blackwell", "empirical"]
# Statistic that each setting averages: conditional probabilities, or states.
MARGINAL_STATISTICS: dict[Marginals, str] = {"rao_blackwell": "p", "empirical": "s"}
# Larger sums of weights of chains are excluded: the squares of their shares overflow or underflow.
MAX_WEIGHT = 1e300


class ChainMeans(NamedTuple):
    """Attributes: means (R,); series (B, R, C), of these means; share of the steps that count in effect, 0 to 1; low,
    high: between which the means lie."""

    means: FloatArray
    series: FloatArray
    share: float = 1.0
    low: FloatArray | float = 0.0
    high: FloatArray | float = 1.0


def group_sums(trace: Trace, weight: str, part: str) -> tuple[FloatArray, FloatArray, float]:
    """(sums of weights (B, C), and of those in a state (B, R, C), as shares of the largest; its log).

    Args:
        trace: of independent draws; a group of them is a batch of a chain.
        weight, part: names of statistics, log-sum-exp of the log weights of all draws (C,) and of those in a state
            (R, C).
    """
    counts = np.log(np.array(trace.counts, dtype=np.float64))[:, None]
    logs = trace.series(weight) + counts
    # Relative to the largest weight of all batches and chains: log weights may lie thousands of nats from 0.
    top = float(logs.max())
    return np.exp(logs - top), np.exp(trace.series(part) + counts[:, None] - top), top


def ratio_means(weights: FloatArray, parts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(R,) ratios of the sums over groups (B, C) and (B, R, C), and their standard errors, which one group does not
    show: there the farthest that a mean may be off."""
    groups, total = weights.size, weights.sum()
    means = np.clip(parts.sum(axis=(0, 2)) / total, 0.0, 1.0)
    if groups < 2:
        return means, np.maximum(means, 1 - means)
    # Error of a ratio of two sums to first order (delta method): parts - mean · weights includes their correlation.
    rest = parts - means[:, None] * weights[:, None, :]
    return means, np.sqrt((rest**2).sum(axis=(0, 2)) * groups / (groups - 1)) / total


class MarginalParts(TypedDict, total=False):
    """Parts of an `Estimate`, under its names, each (R,)."""

    marginals: FloatArray
    marginals_se: FloatArray
    marginals_error_bound: FloatArray


def with_bounds(means: FloatArray, se: FloatArray, unseen: float) -> MarginalParts:
    """Means with their errors, by their names in an `Estimate`, none larger than means can be off.

    Args:
        means: (R,).
        se: (R,) their standard errors.
        unseen: share of the law that draws may not have shown, by which bounds are wider.
    """
    farthest = np.maximum(means, 1 - means)
    # Rule of three (Hanley and Lippman-Hand 1983): states of mass 3 / n may be unseen, however small the scatter is.
    of_rare = widen_of_rare(se, np.where(se > NOTHING, np.minimum(means, 1 - means), 0.0), farthest, UNSEEN / unseen)
    return {
        "marginals": means,
        "marginals_se": np.minimum(of_rare, farthest),
        "marginals_error_bound": np.minimum(error_bound(se, unseen * farthest), farthest),
    }


def chain_estimate(model: Model, trace: Trace, chains: ChainMeans, stuck: bool, visits: float = np.inf) -> Estimate:
    """Marginals with their errors, R-hat and effective sample sizes.

    Args:
        model: the model.
        trace: of the run.
        chains: what they averaged.
        stuck: whether what the chains tell is known not to be believed.
        visits: independent draws at most, see `marginal_claims`.
    """
    low, high = (bound + np.zeros(len(chains.means)) for bound in (chains.low, chains.high))
    errors = marginal_claims(chains.series, max(int(trace.samples * chains.share), 1), low, high, visits)
    draws = trace.samples * chains.series.shape[-1]
    parts = {
        "marginals": chains.means,
        "marginals_se": errors.se,
        "marginals_error_bound": errors.error_bounds,
        "ess": statistics.effective_sample_size(chains.means, errors.mcse, draws),
        "r_hat": errors.r_hat,
    }
    doubt = errors.doubt
    if stuck and not doubt:
        doubt = "not mixed"
    doubts = (f"marginals {doubt}",) if doubt else ()
    return Estimate(**split_fields(model.cardinalities, **parts), doubts=doubts)


def state_pairs(cardinalities: npt.ArrayLike) -> tuple[IntArray, IntArray]:
    """(R,) variables and (R,) states: state 1 of each where all are binary, else all states, one after another."""
    sizes = np.asarray(cardinalities, dtype=np.int64)
    if (sizes == 2).all():
        return np.arange(len(sizes), dtype=np.int32), np.ones(len(sizes), dtype=np.int32)
    variables = np.repeat(np.arange(len(sizes)), sizes)
    states = np.arange(len(variables)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return variables.astype(np.int32), states.astype(np.int32)


def importance_means(cardinalities: tuple[int, ...], trace: Trace) -> ChainMeans:
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


def importance_marginals(model: Model, trace: Trace, stuck: bool, visits: float = np.inf) -> Estimate:
    """Of `importance_means`; the arguments are those of `chain_estimate`."""
    means = importance_means(model.cardinalities, trace)
    estimate = chain_estimate(model, trace, means, stuck, visits)
    return replace(estimate, diagnostics={"effective_share": means.share})
