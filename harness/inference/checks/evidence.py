"""What a number rests on, from an exact answer to a doubtful one.

No sampler can know what it has not seen: that its own checks pass ("converged") says less than a bracket does, of which
a certified one always holds, and a probable one with a stated probability, whatever mixes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np

from spinbench.api import Estimate, LogZKind
from spinbench.api.bounds import CERTAIN, Bound, Grade
from spinbench.api.estimate import verdict
from spinbench.mathematics import all_states

if TYPE_CHECKING:
    from spinbench.api.host_arrays import PerVariable

Level = Literal["exact", "certified", "bounded", "supported", "converged", "doubtful"]
# In order of strength. Only the first three hold against a model built to mislead.
LEVELS: tuple[Level, ...] = get_args(Level)
# An error bound supports a level unless it exceeds both this tolerance (nats; probability) and `STANDARD_ERRORS`
# standard errors, the error bound that scatter alone gives.
LOG_Z_TOLERANCE, MARGINAL_TOLERANCE = 0.05, 0.01
STANDARD_ERRORS = 3.0
# Direction from log Z to each bound.
OUTWARD = {"lower": -1.0, "upper": 1.0}
# Standard errors of exact marginals averaged over steps are below this; it is rounding.
ROUNDING = 1e-9
_WIDE = "its error bound is too wide"
_UNKNOWN = "nobody knows its error"


class Evidence(NamedTuple):
    """What supports a number.

    Attributes:
        level: one of `LEVELS`.
        error_bound: how far off the number may be, at this level: of log Z in nats, of marginals that of the worst one;
            None where nobody knows.
        reason: why it is doubtful; or "".
    """

    level: Level
    error_bound: float | None = None
    reason: str = ""


def log_z_evidence(
    log_z: float,
    kind: LogZKind,
    errors: tuple[float | None, float | None],
    bounds: Sequence[Bound],
    status: str,
) -> Evidence:
    """Of log Z, by its bracket where that is narrow, else by the run's own checks.

    Args:
        log_z, kind: the number, and what it is.
        errors: its standard error and its error bound.
        bounds: on log Z.
        status: of the run.
    """
    if kind == "exact":
        return Evidence("exact", 0.0)
    se, error_bound = errors
    tolerance = max(LOG_Z_TOLERANCE, STANDARD_ERRORS * float(np.nan_to_num(se or 0.0, posinf=0.0)))
    if (bracket := bracket_evidence(log_z, bounds, tolerance)) is not None:
        return bracket
    reason = _doubts(status, "log Z")
    certain = [bound for bound in bounds if bound.grade in CERTAIN]
    if kind != "estimate":
        reason = {"lower": "a bound from below alone", "upper": "a bound from above alone"}[kind]
    elif _beyond(log_z, certain) > (error_bound or 0.0):
        reason = "outside its certified bracket"
    if reason or error_bound is None:
        return Evidence("doubtful", None, reason or _UNKNOWN)
    if error_bound <= tolerance:
        return Evidence("converged", error_bound)
    return Evidence("doubtful", error_bound, _WIDE)


def bracket_evidence(log_z: float, bounds: Sequence[Bound], tolerance: float) -> Evidence | None:
    """Certified or bounded where a bracket on log Z shows that a number is at most `tolerance` nats off; else None."""
    brackets: tuple[tuple[Level, tuple[Grade, ...]], ...] = (
        ("certified", CERTAIN),
        ("bounded", (*CERTAIN, "probable")),
    )
    for level, grades in brackets:
        distance = _largest_possible_error(log_z, [bound for bound in bounds if bound.grade in grades])
        if distance <= tolerance:
            return Evidence(level, distance)
    return None


def marginals_evidence(
    kind: LogZKind, se: PerVariable | None, error_bounds: PerVariable | None, status: str
) -> Evidence:
    """Of marginals: exact ones, or by the run's own checks.

    Args:
        kind: of log Z; marginals beside an exact one are exact, unless they have standard errors as those of draws do.
        se, error_bounds: in the layout of marginals, or None.
        status: of the run.
    """
    errors = np.zeros(0)
    if se is not None:
        errors = all_states.errors_of_all_states(se)
    if kind == "exact" and (errors <= ROUNDING).all():
        return Evidence("exact", 0.0)
    reason = _doubts(status, "marginals")
    if reason or se is None or error_bounds is None:
        return Evidence("doubtful", None, reason or _UNKNOWN)
    bounds = all_states.errors_of_all_states(error_bounds)
    worst = float(bounds.max(initial=0.0))
    if (bounds > np.maximum(MARGINAL_TOLERANCE, STANDARD_ERRORS * errors)).any():
        return Evidence("doubtful", worst, _WIDE)
    return Evidence("converged", worst)


def doubt(estimate: Estimate, quantity: str) -> str:
    """Why "marginals" or "log Z" of an estimate are doubtful; empty: they are not."""
    if quantity == "marginals":
        errors = estimate.marginals_se, estimate.marginals_error_bound
        evidence = marginals_evidence(estimate.log_z_kind, *errors, verdict(estimate))
    else:
        assert estimate.log_z is not None
        log_z_errors = estimate.log_z_se, estimate.log_z_error_bound
        evidence = log_z_evidence(estimate.log_z, estimate.log_z_kind, log_z_errors, estimate.bounds, verdict(estimate))
    return evidence.reason


def bracket_of(bounds: Sequence[Bound]) -> tuple[float, float]:
    """The greatest lower and the least upper of these bounds; infinite where a side is open."""
    low = max((bound.value for bound in bounds if bound.side == "lower"), default=-math.inf)
    return low, min((bound.value for bound in bounds if bound.side == "upper"), default=math.inf)


def _largest_possible_error(log_z: float, bounds: Sequence[Bound]) -> float:
    """The farthest that log Z may be from a number within a bracket; infinite outside, or where a side is open."""
    low, high = bracket_of(bounds)
    if low <= log_z <= high:
        return max(log_z - low, high - log_z)
    return math.inf


def _beyond(log_z: float, bounds: Sequence[Bound]) -> float:
    """By how much a number contradicts the worst of these bounds; not above 0 where it contradicts none."""
    return max((OUTWARD[bound.side] * (log_z - bound.value) for bound in bounds), default=0.0)


def _doubts(status: str, quantity: str) -> str:
    """What a verdict says against a quantity, or against the whole run."""
    return ", ".join(doubt for doubt in status.split(", ") if doubt.startswith((quantity, "not converged")))
