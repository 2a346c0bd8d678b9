"""What a comparison says of one number, and of all of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from spinbench.history.axes import Metric
from spinbench.history.judging.evidence import Place, Sides
from spinbench.history.judging.verdicts import Decision, Verdict

Said = Verdict | Literal["identical", "shown"]

ALL = "all"
"""Stands for every model, method or backend in the place of a group or of the level "all"."""


@dataclass(frozen=True)
class Finding:
    """A metric of a cell, of a group of cells (method and backend), or of all cells, at head against base.

    Attributes:
        metric: which.
        level: "cell", "group" or "all".
        place: which cell; in a group and in all, `ALL` stands for what is pooled.
        verdict: "identical" where the numbers of common seeds are equal, "shown" where the metric is not judged.
        base, head: geometric means over seeds; None where there is none, and for what is pooled.
        ratio: head / base; above 1 is worse.
        low, high: of the ratio's 95 % interval; None where nothing was tested.
        p: of "worse" or of "better", whichever is less, corrected; None where nothing was tested.
        seeds: numbers of them at base and at head.
        reason: why nothing was tested.
    """

    metric: Metric
    level: str
    place: Place
    verdict: Said
    base: float | None = None
    head: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    seeds: tuple[int, int] = (0, 0)
    reason: str = ""


@dataclass(frozen=True)
class Failure:
    """A cell that works on one side only; "fails" is that of head."""

    place: Place
    verdict: Literal["fails", "mended"]
    error: str


@dataclass(frozen=True)
class Detectable:
    """The ratio of a metric that would have been found with probability 0.8, at the median unit of a level."""

    metric: Metric
    level: str
    units: int
    ratio: float


@dataclass(frozen=True)
class Judged:
    """What was found of one metric."""

    findings: tuple[Finding, ...]
    detectable: tuple[Detectable, ...] = ()
    notes: tuple[str, ...] = ()


def tested(metric: Metric, decision: Decision, unit: int, place: Place, known: Mapping[str, Any]) -> Finding:
    """The finding of a tested unit; `known` are its `centres`."""
    level = decision.level
    return Finding(
        metric,
        level.name,
        place,
        decision.verdicts[unit],
        **known,
        ratio=math.exp(level.difference[unit]),
        low=math.exp(decision.low[unit]),
        high=math.exp(decision.high[unit]),
        p=float(min(decision.worse[unit], decision.better[unit])),
    )


def untested(metric: Metric, sides: Sides, place: Place, verdict: Said, reason: str = "") -> Finding:
    """The finding of a cell of which nothing was tested."""
    known = centres(metric, sides, place)
    ratio = known["head"] / known["base"] if known["head"] and known["base"] else None
    return Finding(metric, "cell", place, verdict, **known, ratio=ratio, reason=reason)


def centres(metric: Metric, sides: Sides, place: Place) -> dict[str, Any]:
    """Geometric means of a cell at base and at head, and the numbers of seeds with a value."""
    values = [
        [one.values[metric.name] for one in side.get(place, {}).values() if metric.name in one.values]
        for side in (sides.base, sides.head)
    ]
    base, head = (math.exp(math.fsum(side) / len(side)) if side else None for side in values)
    return {"base": base, "head": head, "seeds": (len(values[0]), len(values[1]))}
