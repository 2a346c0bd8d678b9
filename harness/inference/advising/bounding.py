"""What all candidates' bounds say together, and whom they contradict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from spinbench.api.bounds import CERTAIN, Bound, Grade, Side
from spinbench.inference.advising.judging import AGREEMENT, View
from spinbench.inference.result import Result

ROUNDING = 1e-9
OUTSIDE = {"certified": "outside the certified bracket", "probable": "outside the probable bracket"}


def tightest(results: Iterable[Result]) -> tuple[Bound, ...]:
    """The tightest bound of each side and grade; a probable one misses as often as all that were looked at together."""
    found: dict[tuple[Side, Grade], list[Bound]] = {}
    for result in results:
        for bound in result.bounds:
            if np.isfinite(bound.value):
                found.setdefault((bound.side, bound.grade), []).append(bound)
    return tuple(
        replace(_best(bounds), delta=min(1.0, sum(bound.delta for bound in bounds))) for bounds in found.values()
    )


def doubted(views: Sequence[View], results: Sequence[Result]) -> list[View]:
    """Views of log Z; those outside a bracket are believed no more."""
    bounds = tightest(results)
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
