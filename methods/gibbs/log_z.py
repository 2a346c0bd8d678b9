"""log Z from the transition probabilities T(s* <- s) that a run of `gibbs` has seen, and what may be claimed of it."""

from __future__ import annotations

import numpy as np

from spinbench.api.burn_in import Climb
from spinbench.api.trace import Trace
from spinbench.mathematics import statistics
from spinbench.mathematics.bennett import Ratio, one_sided, ratio
from spinbench.mathematics.claims import Claim
from spinbench.mathematics.graphs.rows import AnyRows, matrix
from spinbench.mathematics.graphs.sweep_layouts import FloatArray, Layout
from spinbench.mathematics.stepping_stones import stepping_stones
from spinbench.models import PairwiseModel

Claims = dict[str, Claim]
UNREACHED = 100.0
"""Nats beyond all that can be reached."""


def estimates(asked: str, base: float, weight: float, trace: Trace) -> tuple[str, Claims, dict[str, float]]:
    """What is reported, and every estimate of log Z that a run allows, by name, with its errors; diagnostics.

    Errors are infinite where nothing supports the value: averages of T alone cannot tell that the states which carry
    them were never visited, the look from both sides ("chib_bar") and the overlap of rungs ("stones") can.

    Args:
        asked: the setting `log_z`.
        base: log Z at inverse temperature 0, the model's constant included.
        weight: log p*(s*).
        trace: of the run.
    """
    if asked == "none" or not trace.looks:
        return asked, {}, {}
    if trace.climb is not None:
        both = _stones(base, trace.climb, trace.looked("slope"))
        found: Claims = {"stones": both.claim}
        diagnostics = {"stones_rungs": float(len(trace.climb.betas))}
    else:
        both = ratio(*_bounded(weight - trace.looked("log_t"), weight - trace.looked("log_r").ravel()))
        found, diagnostics = _by_transitions(asked, weight, trace, both)
    diagnostics |= {"log_z_overlap": both.overlap, "log_z_weight_ess": both.weight}
    if trace.wanted:
        diagnostics["stones_burn_in_needed"] = float(trace.wanted)
    return (next(iter(found)) if asked == "auto" else asked), found, diagnostics


def doubts(marginals: str, asked: str, claim: Claim | None) -> tuple[str, ...]:
    """Why not to believe marginals, as they are told by themselves, or log Z with its errors."""
    unresolved = asked != "none" and (claim is None or not np.isfinite(claim.error_bound))
    return ((f"marginals {marginals}",) if marginals else ()) + (("log Z unresolved",) if unresolved else ())


def log_z_without_couplings(model: PairwiseModel) -> float:
    """At inverse temperature 0, where variables are uniform and independent."""
    return float(model.log_constant + model.num_variables * np.log(2))


def _bounded(forward: FloatArray, backward: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Logs of T as far as they matter: where zeros are in the way, T is 0, and any log so small says the same."""
    most = float(np.where(np.isfinite(forward), forward, -np.inf).max(initial=float(backward.max())))
    return np.minimum(forward, most + UNREACHED), backward


def _stones(base: float, climb: Climb, top: FloatArray) -> Ratio:
    """From the product of uniform laws up."""
    found = stepping_stones(climb.betas, climb.slopes, top)
    return found._replace(value=float(base + found.value))


def _by_transitions(asked: str, weight: float, trace: Trace, both: Ratio) -> tuple[Claims, dict[str, float]]:
    """From T(s* <- s), beside the look from both sides; log p*(s*) is the weight."""
    found: Claims = {"chib_bar": both.claim}
    diagnostics = {}
    if asked == "chib":
        seen, diagnostics["chib_weight_ess"] = _one_sided(weight, trace, both)
        if np.isfinite(seen.value):
            found["chib"] = seen
    return found, diagnostics


def _one_sided(weight: float, trace: Trace, both: Ratio) -> tuple[Claim, float]:
    """Chib's estimate, which is as good as it is near the one from both sides; Kish's sample size of its batches."""
    series = trace.series("log_t")
    level, error = statistics.log_mean(series)
    if not np.isfinite(level):  # zeros are always in the way
        return Claim(np.inf, np.inf, np.inf), 0.0
    shares = np.exp(series - series.max())
    return one_sided(weight - level, error, both), float(shares.sum() ** 2 / (shares**2).sum())


def log_conditional(model: PairwiseModel, plan: Layout, rows: AnyRows, state: FloatArray, low: int) -> float:
    """Sum of log p(s_i | rest) at `state` over the rows from `low` on."""
    fields = model.biases[plan.order[low:]] + matrix(rows, low) @ state
    return float(-np.logaddexp(0.0, (1 - 2 * state[low:]) * fields).sum())
