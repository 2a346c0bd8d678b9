"""log Z from the transition probabilities T(s* <- s) that a run of `gibbs` has seen, and what may be claimed of it."""

from __future__ import annotations

import numpy as np

from spinbench.api import PairwiseModel, Trace
from spinbench.mathematics import statistics
from spinbench.mathematics.bennett import Ratio, one_sided, ratio
from spinbench.mathematics.claims import Claim
from spinbench.mathematics.graphs.rows import AnyRows, matrix
from spinbench.mathematics.graphs.sweep_layouts import FloatArray, Layout
from spinbench.mathematics.stepping_stones import stepping_stones

Claims = dict[str, Claim]
# Nats by which the log of T = 0 lies below every reachable value, so that it has no weight in Bennett's ratio.
UNREACHABLE_NATS = 100.0


def log_z_estimates(
    estimator: str, base: float, mode_log_weight: float, trace: Trace, *, mixed: bool
) -> tuple[str, Claims, dict[str, float]]:
    """What is reported, and every estimate of log Z that a run allows, by name, with its errors; diagnostics.

    Errors are infinite where nothing supports the value: averages of T alone cannot tell that the states which carry
    them were never visited, the look from both sides ("chib_bar") and the overlap of rungs ("stones") can.

    Args:
        estimator: the setting `log_z`.
        base: log Z at inverse temperature 0, the model's constant included.
        mode_log_weight: log p*(s*).
        trace: of the run.
        mixed: whether chains agree on marginals. Those that were cooled too fast do not, and their log Z is too low, on
            planar Gaussian glasses of 24 × 24 and 64 × 64 by 3 to 8 standard errors.
    """
    if estimator == "none" or not trace.looks:
        return estimator, {}, {}
    if trace.climb is not None:
        bridge = stepping_stones(trace.climb.betas, trace.climb.slopes, trace.looked("slope"))
        # From the product of uniform laws up.
        bridge = bridge._replace(value=float(base + bridge.value), supported=bridge.supported and mixed)
        estimates: Claims = {"stones": bridge.claim}
        diagnostics = {"stones_rungs": float(len(trace.climb.betas))}
    else:
        bridge = ratio(
            *_cap_unreachable(mode_log_weight - trace.looked("log_t"), mode_log_weight - trace.looked("log_r").ravel())
        )
        estimates, diagnostics = _transition_estimates(estimator, mode_log_weight, trace, bridge)
    diagnostics |= {"log_z_overlap": bridge.overlap, "log_z_weight_ess": bridge.weight}
    if trace.wanted:
        diagnostics["stones_burn_in_needed"] = float(trace.wanted)
    if estimator == "auto":
        estimator = next(iter(estimates))
    return estimator, estimates, diagnostics


def collect_doubts(marginals_doubt: str, estimator: str, claim: Claim | None) -> tuple[str, ...]:
    """Why not to believe marginals, as they are told by themselves, or log Z with its errors."""
    unresolved = estimator != "none" and (claim is None or not np.isfinite(claim.error_bound))
    doubts = []
    if marginals_doubt:
        doubts.append(f"marginals {marginals_doubt}")
    if unresolved:
        doubts.append("log Z unresolved")
    return tuple(doubts)


def _cap_unreachable(forward: FloatArray, backward: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Logs of T as far as they matter: where zeros are in the way, T is 0, and any log so small says the same."""
    largest = float(np.where(np.isfinite(forward), forward, -np.inf).max(initial=float(backward.max())))
    return np.minimum(forward, largest + UNREACHABLE_NATS), backward


def _transition_estimates(
    estimator: str, mode_log_weight: float, trace: Trace, bridge: Ratio
) -> tuple[Claims, dict[str, float]]:
    """From T(s* <- s), beside the look from both sides; log p*(s*) is the weight."""
    estimates: Claims = {"chib_bar": bridge.claim}
    diagnostics = {}
    if estimator == "chib":
        chib, diagnostics["chib_weight_ess"] = _chib_estimate(mode_log_weight, trace, bridge)
        if np.isfinite(chib.value):
            estimates["chib"] = chib
    return estimates, diagnostics


def _chib_estimate(mode_log_weight: float, trace: Trace, bridge: Ratio) -> tuple[Claim, float]:
    """Chib's estimate, which is as good as it is near the one from both sides; Kish's sample size of its batches."""
    series = trace.series("log_t")
    level, error = statistics.log_mean(series)
    # Zeros block the way to s* within a sweep from every recorded state: T is 0 throughout.
    if not np.isfinite(level):
        return Claim(np.inf, np.inf, np.inf), 0.0
    # Kish's effective sample size of the batches: a few states may carry the average of 1 / Z.
    shares = np.exp(series - series.max())
    return one_sided(mode_log_weight - level, error, bridge), float(shares.sum() ** 2 / (shares**2).sum())


def sum_log_conditionals(model: PairwiseModel, plan: Layout, rows: AnyRows, state: FloatArray, first_row: int) -> float:
    """Sum of log p(s_i | rest) at `state` over the rows from `first_row` on."""
    fields = model.biases[plan.order[first_row:]] + matrix(rows, first_row) @ state
    return float(-np.logaddexp(0.0, (1 - 2 * state[first_row:]) * fields).sum())
