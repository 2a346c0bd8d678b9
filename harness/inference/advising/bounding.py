"""What all candidates' bounds say together, beside those of heavy states, and whom they contradict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from spinbench.api.bounds import CERTAIN, Bound, Grade, Side
from spinbench.errors import UnsupportedError
from spinbench.foundation.aside import DiedError, OverdueError, aside
from spinbench.inference.advising.judging import AGREEMENT, View
from spinbench.inference.bracketing import states
from spinbench.inference.result import Result
from spinbench.models import Model

ROUNDING = 1e-9
OUTSIDE = {"certified": "outside the certified bracket", "probable": "outside the probable bracket"}


def of_states(model: Model, seed: int, seconds: float) -> tuple[Bound, ...]:
    """What heavy states weigh together, as far as they are found in time; none where they are hard to find.

    Raises:
        ModelError: no state has positive weight, so Z = 0.
    """
    found: list[Bound] = []
    with suppress(OverdueError, DiedError, UnsupportedError, MemoryError):
        found.extend(bound for bound in aside(_climbing, (model, seed), seconds) if bound is not None)
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
    return [_beside(view, bounds) for view in views]


def _beside(view: View, bounds: tuple[Bound, ...]) -> View:
    value, slack = float(view.values[0]), AGREEMENT * np.sqrt(view.claim or 0.0)
    for bound in bounds:
        beyond = value - bound.value if bound.side == "upper" else bound.value - value
        if bound.grade != "assumed" and beyond > slack + ROUNDING * max(abs(value), 1.0):
            grade = "certified" if bound.grade in CERTAIN else "probable"
            return replace(view, believed=False, doubt=OUTSIDE[grade])
    return view


def _best(bounds: list[Bound]) -> Bound:
    if bounds[0].side == "lower":
        return max(bounds, key=lambda bound: bound.value)
    return min(bounds, key=lambda bound: bound.value)
