"""Two sets of runs compared: what `spinbench gate` and `spinbench report --compare` both say, and why.

What is judged, and how, stands in conf/axes/inference.yaml; cost.py and accuracy.py hold the two kinds of tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spinbench.history import axes
from spinbench.history.axes import Metric
from spinbench.history.judging import accuracy, cost
from spinbench.history.judging.cost import BUSY_WAITING
from spinbench.history.judging.evidence import Place, Run, Sides
from spinbench.history.judging.findings import Detectable, Failure, Finding, Judged, untested


@dataclass(frozen=True)
class Judgement:
    """What is said of head against base.

    Attributes:
        findings: of every metric: cells, groups and all.
        failures: cells that work on one side only.
        detectable: what would have been found, by metric and level.
        identical, common: runs of equal seeds whose numbers are equal to the last bit, and all of them.
        notes: sentences about what was not judged, and about disturbances.
    """

    findings: tuple[Finding, ...]
    failures: tuple[Failure, ...]
    detectable: tuple[Detectable, ...]
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
    tests = {"cost": cost.judged, "accuracy": accuracy.judged, "certain": accuracy.judged, "no": _shown}
    seeds = [runs for side in (sides.base, sides.head) for runs in side.values()]
    measured = {name for runs in seeds for one in runs.values() for name in one.values}
    found = [tests[metric.judged](metric, sides) for metric in axes.metrics() if metric.name in measured]
    pairs = [
        (base[seed], head[seed])
        for base, head in ((sides.base[place], sides.head[place]) for place in sides.common)
        for seed in base.keys() & head.keys()
    ]
    known = [(one.answer, other.answer) for one, other in pairs if one.answer and other.answer]
    return Judgement(
        findings=tuple(finding for one in found for finding in one.findings),
        failures=tuple(_failures(sides)),
        detectable=tuple(size for one in found for size in one.detectable),
        identical=sum(one == other for one, other in known),
        common=len(known),
        notes=(*(note for one in found for note in one.notes), *_disturbances(sides)),
    )


def _shown(metric: Metric, sides: Sides) -> Judged:
    found = (untested(metric, sides, place, "shown") for place in sides.common)
    return Judged(tuple(one for one in found if one.base is not None or one.head is not None))


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


def _disturbances(sides: Sides) -> Iterable[str]:
    runs = [one for side in (sides.base, sides.head) for seeds in side.values() for one in seeds.values()]
    disturbed = sum(one.disturbed for one in runs)
    if disturbed:
        yield f"{disturbed} of {len(runs)} records were disturbed: other programs used the processor meanwhile"
    waited = [one.waited for one in runs if one.waited is not None]
    if waited and float(np.median(waited)) > BUSY_WAITING:
        yield f"the machine was busy: processes waited for {np.median(waited):.0%} of their time"


def worst(findings: Sequence[Finding]) -> list[Finding]:
    """Worse ones first, then better ones; wide ones before their parts, certain ones before others."""
    order = ("worse", "better", "undecided", "not worse than 10 %", "identical", "shown")
    levels = ("all", "group", "cell")

    def key(one: Finding) -> tuple[int, int, float, Place]:
        return order.index(one.verdict), levels.index(one.level), 1.0 if one.p is None else one.p, one.place

    return sorted(findings, key=key)
