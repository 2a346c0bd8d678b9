"""Two sets of runs compared: what `spinbench gate` and `spinbench report --compare` both say, and why.

What is judged, and how, stands in conf/axes/inference.yaml.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from spinbench.history import axes
from spinbench.history.axes import Metric
from spinbench.history.regression_test.effects import EFFECTS, Effects
from spinbench.history.regression_test.measurements import Place, Run, Sides, having
from spinbench.history.regression_test.significance import Decision, Said

BUSY_WAITING = 0.5
"""Share of their time for which runs waited, from which on the machine is called busy."""


@dataclass(frozen=True)
class Finding:
    """A metric of a cell, of a group of cells (method and backend), or of all cells, at head against base.

    Attributes:
        metric: which.
        level: "cell", "group" or "all".
        place: which cell; in a group and in all, "all" stands for what is pooled.
        verdict: "identical" where the numbers of common seeds are equal, "shown" where the metric is not judged.
        base, head: geometric means over seeds; None where there is none, and for what is pooled.
        seeds: numbers of them at base and at head.
        ratio: head / base; above 1 is worse.
        low, high: of the ratio's 95 % interval; None where nothing was tested.
        p: of "worse" or of "better", whichever is less, corrected; None where nothing was tested.
        reason: why nothing was tested.
    """

    metric: Metric
    level: str
    place: Place
    verdict: Said
    base: float | None = None
    head: float | None = None
    seeds: tuple[int, int] = (0, 0)
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Failure:
    """A cell that works on one side only; "fails" is that of head."""

    place: Place
    verdict: Literal["fails", "mended"]
    error: str


@dataclass(frozen=True)
class Tested:
    """The units of a level, how many have which verdict, and the ratio that would have been found with probability 0.8
    at the median one."""

    metric: Metric
    level: str
    verdicts: Mapping[str, int]
    detectable: float


@dataclass(frozen=True)
class Judgement:
    """What is said of head against base.

    Attributes:
        findings: of every metric: cells, groups and all.
        failures: cells that work on one side only.
        tested: by metric and level.
        identical, common: runs of equal seeds whose numbers are equal to the last bit, and all of them.
        notes: sentences about what was not judged, and about disturbances.
    """

    findings: tuple[Finding, ...]
    failures: tuple[Failure, ...]
    tested: tuple[Tested, ...]
    identical: int
    common: int
    notes: tuple[str, ...]

    @property
    def worse(self) -> tuple[Finding, ...]:
        """What is worse beyond noise and margin."""
        return tuple(one for one in self.findings if one.verdict == "worse")

    @property
    def red(self) -> bool:
        """Whether anything is worse, or fails that worked."""
        return bool(self.worse) or any(one.verdict == "fails" for one in self.failures)


def judge(sides: Sides) -> Judgement:
    """Test every metric that any of the runs has, in the cells that both sides have."""
    runs = [one for side in (sides.base, sides.head) for own in side.values() for one in own.values()]
    measured = {name for one in runs for name in one.values}
    effects = [EFFECTS[metric.judged](metric, sides) for metric in axes.metrics() if metric.name in measured]
    decided = [(one, decision) for one in effects for decision in one.decisions()]
    common = [(sides.base[place], sides.head[place]) for place in sides.common]
    pairs = [(base[seed].answer, head[seed].answer) for base, head in common for seed in base.keys() & head.keys()]
    known = [pair for pair in pairs if all(pair)]
    return Judgement(
        findings=(
            *(found for one, decision in decided for found in _findings_of_test(one, decision, sides)),
            *(found for one in effects for found in _findings_without_test(one, sides)),
        ),
        failures=tuple(_failures(sides)),
        tested=tuple(
            Tested(one.metric, level.level.name, Counter(level.verdicts), math.exp(float(np.median(level.detectable))))
            for one, level in decided
        ),
        identical=sum(one == other for one, other in known),
        common=len(known),
        notes=(*(note for one in effects for note in one.notes), *_disturbances(runs)),
    )


def changed(metrics: Iterable[Metric], sides: Sides) -> bool:
    """Whether any of these metrics is better or worse beyond noise."""
    verdicts = {
        verdict
        for metric in metrics
        for decision in EFFECTS[metric.judged](metric, sides).decisions()
        for verdict in decision.verdicts
    }
    return not verdicts.isdisjoint({"worse", "better"})


def worst(findings: Sequence[Finding]) -> list[Finding]:
    """Worse ones first, then better ones; wide ones before their parts, certain ones before others."""
    order = ("worse", "better", "undecided", "not worse than 10 %", "identical", "shown")
    levels = ("all", "group", "cell")

    def key(one: Finding) -> tuple[int, int, float, Place]:
        return order.index(one.verdict), levels.index(one.level), 1.0 if one.p is None else one.p, one.place

    return sorted(findings, key=key)


def _findings_of_test(effects: Effects, decision: Decision, sides: Sides) -> Iterable[Finding]:
    level = decision.level
    for unit, place in enumerate(effects.units(level)):
        yield Finding(
            effects.metric,
            level.name,
            place,
            decision.verdicts[unit],
            **_means(effects.metric, sides, place) if level.name == "cell" else {},
            ratio=math.exp(level.difference[unit]),
            low=math.exp(decision.low[unit]),
            high=math.exp(decision.high[unit]),
            p=float(min(decision.worse[unit], decision.better[unit])),
        )


def _findings_without_test(effects: Effects, sides: Sides) -> Iterable[Finding]:
    for place, (verdict, reason) in effects.untested.items():
        means = _means(effects.metric, sides, place)
        ratio = means["head"] / means["base"] if means["head"] and means["base"] else None
        yield Finding(effects.metric, "cell", place, verdict, **means, ratio=ratio, reason=reason)


def _means(metric: Metric, sides: Sides, place: Place) -> dict[str, Any]:
    """Geometric means of a cell at base and at head, and the numbers of seeds with a value."""
    values = [
        [one.values[metric.name] for one in having(side[place], metric).values()] for side in (sides.base, sides.head)
    ]
    base, head = (math.exp(math.fsum(side) / len(side)) if side else None for side in values)
    return {"base": base, "head": head, "seeds": (len(values[0]), len(values[1]))}


def _failures(sides: Sides) -> Iterable[Failure]:
    """Cells that failed for at least half of the seeds that are good on the other side."""
    for place in sides.common:
        base, head = sides.base[place], sides.head[place]
        if error := _broken(base, head):
            yield Failure(place, "fails", error)
        elif error := _broken(head, base):
            yield Failure(place, "mended", error)


def _broken(good: Mapping[int, Run], other: Mapping[int, Run]) -> str:
    """The error of most of the good seeds, or, without common ones, of all others; empty where it works."""
    seeds = [seed for seed, one in good.items() if not one.failed]
    common = [other[seed] for seed in seeds if seed in other] or (list(other.values()) if seeds else [])
    errors = [one.failed for one in common if one.failed]
    return errors[0] if errors and 2 * len(errors) >= len(common) else ""


def _disturbances(runs: Sequence[Run]) -> Iterable[str]:
    disturbed = sum(one.disturbed for one in runs)
    if disturbed:
        yield f"{disturbed} of {len(runs)} records were disturbed: other programs used the processor meanwhile"
    waited = [one.waited for one in runs if one.waited is not None]
    if waited and float(np.median(waited)) > BUSY_WAITING:
        yield f"the machine was busy: processes waited for {np.median(waited):.0%} of their time"
