"""Means of weighted independent draws and of chains, with their errors."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypedDict

import numpy as np
import numpy.typing as npt

from spinbench.api import Estimate, Model, Trace, marginal_claims
from spinbench.mathematics import statistics
from spinbench.mathematics.claims import NOTHING, UNSEEN, error_bound, widen_of_rare
from spinbench.models.conditionals import split_fields

FloatArray = npt.NDArray[np.float64]
Marginals = Literal["rao_blackwell", "empirical"]
# Statistic that each setting averages: conditional probabilities, or states.
MARGINAL_STATISTICS: dict[Marginals, str] = {"rao_blackwell": "p", "empirical": "s"}


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
