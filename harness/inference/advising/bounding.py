"""What all candidates' bounds say together, beside those of heavy states, and whom they contradict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from spinbench.api.bounds import CERTAIN, Bound, Grade, Side
from spinbench.errors import UnsupportedError
from spinbench.foundation.child import DiedError, OverdueError, run_in_child
from spinbench.inference.advising.candidates import Candidate
from spinbench.inference.advising.judging import AGREEMENT, View, view
from spinbench.inference.bracketing import states
from spinbench.inference.result import Result
from spinbench.models import Model

ROUNDING = 1e-9
OUTSIDE = {"certified": "outside the certified bracket", "probable": "outside the probable bracket"}


def of_states(model: Model, seed: int, seconds: float) -> tuple[Bound, ...]:
    """What no states can weigh more than, and what heavy ones weigh together, as far as they are found in time.

    Raises:
        ModelError: no state has positive weight, so Z = 0.
    """
    found = [states.above(model)]
    with suppress(OverdueError, DiedError, UnsupportedError, MemoryError):
        found.extend(bound for bound in run_in_child(_climbing, (model, seed), seconds) if bound is not None)
    return tuple(found)


def _climbing(given: tuple[Model, int]) -> Iterator[Bound]:
    yield from states.below(*given)


def tightest(results: Iterable[Result], known: Sequence[Bound] = ()) -> tuple[Bound, ...]:
    """The tightest bound of each side and grade; a probable one misses as often as all that were looked at together.

    Args:
        results: of all candidates.
        known: other bounds.
    """
    found: dict[tuple[Side, Grade], list[Bound]] = {}
    for bound in (*known, *(bound for result in results for bound in result.bounds)):
        if np.isfinite(bound.value):
            found.setdefault((bound.side, bound.grade), []).append(bound)
    return tuple(
        replace(_best(bounds), delta=min(1.0, sum(bound.delta for bound in bounds))) for bounds in found.values()
    )


def doubted(views: Sequence[View], bounds: tuple[Bound, ...]) -> list[View]:
    """Views of log Z; those outside a bracket are believed no more."""
    return [_beside(each, bounds) for each in views]


def flagged(candidate: Candidate, result: Result, bounds: tuple[Bound, ...]) -> Result:
    """The result with these bounds; its verdict says so where its estimate of log Z lies outside one of them."""
    said = view(candidate, result, "log_z")
    doubt = "" if said is None else _beside(replace(said, doubt=""), bounds).doubt
    if not doubt:
        return replace(result, bounds=bounds)
    before = "" if result.status == "ok" else f"{result.status}, "
    return replace(result, bounds=bounds, status=f"{before}log Z {doubt}")


def _beside(said: View, bounds: tuple[Bound, ...]) -> View:
    value, slack = float(said.values[0]), AGREEMENT * np.sqrt(said.claim or 0.0)
    for bound in bounds:
        beyond = value - bound.value if bound.side == "upper" else bound.value - value
        if bound.grade != "assumed" and beyond > slack + ROUNDING * max(abs(value), 1.0):
            grade = "certified" if bound.grade in CERTAIN else "probable"
            return replace(said, believed=False, doubt=OUTSIDE[grade])
    return said


def _best(bounds: list[Bound]) -> Bound:
    if bounds[0].side == "lower":
        return max(bounds, key=lambda bound: bound.value)
    return min(bounds, key=lambda bound: bound.value)
