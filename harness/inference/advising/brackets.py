"""What brackets on log Z say of candidates: who is outside of them, and how far off who is doubted may be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from spinbench.api.bounds import CERTAIN, Bound, Grade, Side
from spinbench.inference.advising.candidates import Candidate
from spinbench.inference.advising.ranking import AGREEMENT, View, view
from spinbench.inference.checks.evidence import OUTWARD, bracket_of
from spinbench.inference.result import Result

# Warning of who has no estimate.
ALONE = "bounds alone"
# Relative tolerance by which log Z may exceed a bound.
ROUNDING = 1e-9
# Warning for an estimate outside a bracket, by grade; bounds that rest on an assumption cause no warning.
OUTSIDE = {**dict.fromkeys(CERTAIN, "outside the certified bracket"), "probable": "outside the probable bracket"}


def tightest(results: Iterable[Result], others: Sequence[Bound] = ()) -> tuple[Bound, ...]:
    """The tightest bound of each side and grade; a probable one misses as often as all that were looked at together.

    Args:
        results: of all candidates.
        others: other bounds.
    """
    by_kind: dict[tuple[Side, Grade], list[Bound]] = {}
    for bound in (*others, *(bound for result in results for bound in result.bounds)):
        if np.isfinite(bound.value):
            by_kind.setdefault((bound.side, bound.grade), []).append(bound)
    return tuple(
        replace(
            min(bounds, key=lambda bound: OUTWARD[bound.side] * bound.value),
            delta=min(1.0, sum(bound.delta for bound in bounds)),
        )
        for bounds in by_kind.values()
    )


def view_of_bounds(candidate: Candidate, bounds: Sequence[Bound]) -> View:
    """Of log Z, by who has no estimate of it: the middle of its bracket, or the bound of the only side."""
    low, high = bracket_of([bound for bound in bounds if bound.grade in OUTSIDE])
    middle, half = (low + high) / 2, (high - low) / 2
    if np.isinf(half):
        middle = float(np.clip(0.0, low, high))
    return View(candidate, np.array([middle]), (4 * half) ** 2, believed=False, exact=False, doubt=ALONE)


def largest_error(log_z: float, bounds: Sequence[Bound]) -> float:
    """Distance to the far end of the bracket."""
    low, high = bracket_of([bound for bound in bounds if bound.grade in OUTSIDE])
    return max(log_z - low, high - log_z, 0.0)


def judge_by_bounds(log_z: View, bounds: Sequence[Bound]) -> View:
    """A view of log Z outside of a bracket is believed no more; one inside that is not believed is no farther off than
    the bracket is wide, wherever it stands. Bounds alone say less than it does, and who is outside says least."""
    judged = _reject_outside(log_z, bounds)
    low, high = bracket_of([bound for bound in bounds if bound.grade in OUTSIDE])
    if judged.believed or judged.doubt == ALONE:
        return judged
    if judged.doubt in OUTSIDE.values():
        reach = 2 * largest_error(float(log_z.values[0]), bounds)
        return replace(judged, claim=max(reach**2, judged.claim or 0.0))
    return replace(judged, claim=min((high - low) ** 2, np.inf if judged.claim is None else judged.claim))


def attach_bounds(candidate: Candidate, result: Result, bounds: tuple[Bound, ...]) -> Result:
    """The result with these bounds; its verdict says so where its estimate of log Z lies outside one of them."""
    log_z = view(candidate, result, "log_z")
    doubt = ""
    if log_z is not None:
        doubt = _reject_outside(replace(log_z, doubt=""), bounds).doubt
    if not doubt:
        return replace(result, bounds=bounds)
    flags = (flag for flag in (result.status, f"log Z {doubt}") if flag != "ok")
    return replace(result, bounds=bounds, status=", ".join(flags))


def _reject_outside(log_z: View, bounds: Sequence[Bound]) -> View:
    value, slack = float(log_z.values[0]), AGREEMENT * np.sqrt(log_z.claim or 0.0)
    for bound in bounds:
        excess = OUTWARD[bound.side] * (value - bound.value)
        if bound.grade in OUTSIDE and excess > slack + ROUNDING * max(abs(value), 1.0):
            return replace(log_z, believed=False, doubt=OUTSIDE[bound.grade])
    return log_z
