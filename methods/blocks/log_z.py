"""log Z of a run of `blocks`, and what may be claimed of it."""

from __future__ import annotations

import numpy as np

from spinbench.api.trace import Trace
from spinbench.mathematics.claims import Ratio, ratio
from spinbench.mathematics.stepping_stones import stepping_stones
from spinbench.methods.blocks.tables import Tables

_BEYOND = 50.0
"""Nats past all others, where states from which s* cannot be reached are put: they count for nothing all the same."""


def estimates(t: Tables, trace: Trace, *, mixed: bool) -> tuple[dict[str, tuple[float, float]], dict[str, float]]:
    """The estimate that the run allows, by name, as (value, claimed error); diagnostics.

    Args:
        t: tables of the method.
        trace: of the run.
        mixed: whether chains are where the law is, as far as they and probes show: else what they look at is not it.
    """
    if not trace.looks:
        return {}, {}
    name, diagnostics = "chib_bar", {}
    if trace.climb is None:
        both = _from_both_sides(trace)
        both = both._replace(supported=both.supported and mixed)
    else:
        name, diagnostics = "stones", {"stones_rungs": float(len(trace.climb.betas))}
        both = stepping_stones(trace.climb.betas, trace.climb.slopes, trace.looked("slope"))
        both = both._replace(value=both.value + _log_states(t))
    diagnostics |= {"log_z_overlap": both.overlap, "log_z_weight_ess": both.weight}
    if trace.wanted:
        diagnostics["stones_burn_in_needed"] = float(trace.wanted)
    value, error = both.claim
    return {name: (float(value + t.constant), error)}, diagnostics


def _log_states(t: Tables) -> float:
    """Log of the number of all states."""
    _, first = np.unique(t.variable, return_index=True)  # a variable has a bucket in several blocks
    return float(np.log(t.cards[first, 0]).sum())


def _from_both_sides(trace: Trace) -> Ratio:
    """Bennett's ratio of p and of reversed transitions from s*, from log p*(s*) / T(s* <- s) at both."""
    forward, backward = -trace.looked("log_t"), -trace.looked("log_r").ravel()
    reached = np.isfinite(forward)
    if not reached.any():
        return Ratio(float(backward.mean()), np.inf, 0.0, 0.0, supported=False)
    farthest = max(forward[reached].max(), backward.max()) + _BEYOND
    return ratio(np.where(reached, forward, farthest), backward)
