"""Marginals as ratios of means: chains whose states do not all count alike."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.api import Estimate
from spinbench.api.trace import Trace
from spinbench.mathematics import statistics
from spinbench.mathematics.claims import marginal_claims
from spinbench.models import Model
from spinbench.models.origin import equal_shares, laid_out

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]


LARGEST = 1e300
"""Weights beyond may be anything."""


class Weighed(NamedTuple):
    """Attributes: means (R,); series (B, R, C), of these means; share of the steps that count in effect, 0 to 1."""

    means: FloatArray
    series: FloatArray
    share: float


def state_pairs(cardinalities: npt.ArrayLike) -> tuple[IntArray, IntArray]:
    """(R,) variables and (R,) states: state 1 of each where all are binary, else all states, one after another."""
    sizes = np.asarray(cardinalities, dtype=np.int64)
    if (sizes == 2).all():
        return np.arange(len(sizes), dtype=np.int32), np.ones(len(sizes), dtype=np.int32)
    variables = np.repeat(np.arange(len(sizes)), sizes)
    states = np.arange(len(variables)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return variables.astype(np.int32), states.astype(np.int32)


def weighed(cardinalities: tuple[int, ...], trace: Trace) -> Weighed:
    """From "s" (R, C), sums of weights in states, and "w" (C,), sums of all weights.

    The ratio r = Σ s / Σ w over all chains is linearised, r + (s - r w) / mean w: these have its mean, and to first
    order its error, whatever s and w have to do with each other.
    """
    w = trace.series("w")
    top = float(w.max(initial=0.0))
    if not 0 < top < LARGEST:
        equal = equal_shares(cardinalities)
        return Weighed(equal, equal[None, :, None] + np.zeros((len(w), 1, w.shape[1])), 0.0)
    w, mean = w / top, float(trace.mean("w").mean()) / top  # squares of small numbers are none
    means = np.clip(trace.mean("s").mean(axis=-1) / top / mean, 0.0, 1.0)
    series = means[:, None] + (trace.series("s") / top - means[:, None] * w[:, None, :]) / mean
    return Weighed(means, series, float(w.sum() ** 2 / (w.size * (w**2).sum())))


def weighed_estimate(model: Model, trace: Trace, stuck: bool, visits: float = np.inf) -> Estimate:
    """Of `weighed`; the arguments are those of `marginal_estimate`."""
    found = weighed(model.cardinalities, trace)
    estimate = marginal_estimate(model, trace, found, stuck, visits)
    return replace(estimate, diagnostics={"effective_share": found.share})


def marginal_estimate(model: Model, trace: Trace, found: Weighed, stuck: bool, visits: float) -> Estimate:
    """Marginals with what they may claim.

    Args:
        model: the model.
        trace: of the run.
        found: in it.
        stuck: whether what the chains tell is known not to be believed.
        visits: independent draws at most, see `marginal_claims`.
    """
    zeros = np.zeros(len(found.means))
    claims = marginal_claims(found.series, max(int(trace.samples * found.share), 1), zeros, zeros + 1, visits)
    draws = trace.samples * found.series.shape[-1]
    ess = statistics.effective_sample_size(found.means, claims.standard_errors, draws)
    parts = {"marginals": found.means, "marginals_se": claims.errors, "ess": ess, "r_hat": claims.r_hat}
    doubt = claims.doubt or ("not mixed" if stuck else "")
    return Estimate(**laid_out(model.cardinalities, **parts), doubts=(f"marginals {doubt}",) if doubt else ())
