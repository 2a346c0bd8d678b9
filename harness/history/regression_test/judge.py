"""Two sets of runs compared: what `spinbench gate` and `spinbench report --compare` both say, and why.

What is judged, and how, stands in conf/axes/inference.yaml.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from spinbench.history import axes
from spinbench.history.regression_test.effects import EFFECTS, Effects
from spinbench.history.regression_test.measurements import Place, Run, Sides, runs_with_metric
from spinbench.history.regression_test.pair_effects import pair_effects
from spinbench.history.regression_test.significance import Decision, FindingVerdict
from spinbench.inference.checks.evidence import LEVELS

# Quantities of a result whose levels of evidence are compared, and their titles.
QUANTITIES = {"marginals": "marginals", "log_z": "log Z"}
VERDICTS = ("worse", "better", "undecided", "not worse than 10 %", "identical", "shown")
# Share of waiting in the runs' wall time from which the machine counts as busy.
BUSY_WAITING = 0.5


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
        detectable: the ratio that would have been found with probability 0.8; None where nothing was tested.
        reason: why nothing was tested.
    """

    metric: axes.Metric
    level: str
    place: Place
    verdict: FindingVerdict
    base: float | None = None
    head: float | None = None
    seeds: tuple[int, int] = (0, 0)
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    detectable: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Change:
    """What is otherwise at head than at base, in a cell.

    Attributes:
        verdict: "fails" or "mended" of a cell that works on one side only; "weaker" or "stronger" of a number that
            rests on other evidence at head, for most seeds.
        error: why it does not work.
        title: which evidence.
        base, head: its levels.
    """

    place: Place
    verdict: Literal["fails", "mended", "weaker", "stronger"]
    error: str = ""
    title: str = ""
    base: str = ""
    head: str = ""


@dataclass(frozen=True)
class Tested:
    """The units of a level, how many have which verdict, and the ratio that would have been found with probability 0.8
    at the median one."""

    metric: axes.Metric
    level: str
    verdicts: Mapping[str, int]
    detectable: float


@dataclass(frozen=True)
class Judgement:
    """What is said of head against base.

    Attributes:
        findings: of every metric: cells, groups and all; worse ones first, then better ones; wide ones before their
            parts, certain ones before others.
        changes: cells that work on one side only, then those whose numbers rest on other evidence than before.
        tested: by metric and level.
        identical, common: runs of equal seeds whose numbers are equal to the last bit, and all of them.
        notes: sentences about what was not judged, and about disturbances.
        exclusions: sentences about what has no counterpart.
    """

    findings: tuple[Finding, ...]
    changes: tuple[Change, ...]
    tested: tuple[Tested, ...]
    identical: int
    common: int
    notes: tuple[str, ...]
    exclusions: tuple[str, ...]

    @property
    def significant(self) -> list[Finding]:
        """What is worse or better beyond noise and margin."""
        return [finding for finding in self.findings if finding.verdict in ("worse", "better")]

    @property
    def worse(self) -> list[Finding]:
        """What is worse beyond noise and margin."""
        return [finding for finding in self.findings if finding.verdict == "worse"]

    @property
    def verdict(self) -> Literal["PASS", "FAIL", "UNDECIDED"]:
        """FAIL where it is red; PASS where each number that was tested is better, equal or not worse than 10 %."""
        if self.red:
            return "FAIL"
        if any(finding.verdict == "undecided" for finding in self.findings):
            return "UNDECIDED"
        return "PASS"

    @property
    def red(self) -> bool:
        """Whether anything is worse, or fails that worked."""
        return bool(self.worse) or any(change.verdict == "fails" for change in self.changes)


def judge(sides: Sides, pairs: Mapping[Place, Sequence[float]] | None = None) -> Judgement:
    """Test every metric that any of the runs has, in the cells that both sides have; costs as `pair_effects` does in
    cells that were measured by `pairs`."""
    by_seeds = sides.without(pairs or ())
    runs = [run for side in (sides.base, sides.head) for cell_runs in side.values() for run in cell_runs.values()]
    measured = {name for run in runs for name in run.values}
    effects = [
        EFFECTS[metric.judged](metric, by_seeds if metric.judged == "cost" else sides)
        for metric in axes.metrics()
        if metric.name in measured
    ]
    if pairs:
        effects.append(pair_effects(pairs))
    decided = [(tested_effects, decision) for tested_effects in effects for decision in tested_effects.decisions()]
    common = [(sides.base[place], sides.head[place]) for place in sides.common]
    answers = [(base[seed].answer, head[seed].answer) for base, head in common for seed in base.keys() & head.keys()]
    fingerprints = [pair for pair in answers if all(pair)]
    findings = (
        *(finding for tested, decision in decided for finding in _findings_with_test(tested, decision, sides)),
        *(finding for tested_effects in effects for finding in _findings_without_test(tested_effects, sides)),
    )
    return Judgement(
        findings=tuple(sorted(findings, key=_sort_key)),
        changes=(*_find_failures(sides), *_find_level_changes(sides)),
        tested=tuple(
            Tested(
                tested_effects.metric,
                level.level.name,
                Counter(level.verdicts),
                math.exp(float(np.median(level.detectable))),
            )
            for tested_effects, level in decided
        ),
        identical=sum(base_answer == head_answer for base_answer, head_answer in fingerprints),
        common=len(fingerprints),
        notes=(*(note for tested_effects in effects for note in tested_effects.notes), *_disturbance_notes(runs)),
        exclusions=sides.exclusions,
    )


def has_change(metrics: Iterable[axes.Metric], sides: Sides) -> bool:
    """Whether any of these metrics is better or worse beyond noise."""
    verdicts = {
        verdict
        for metric in metrics
        for decision in EFFECTS[metric.judged](metric, sides).decisions()
        for verdict in decision.verdicts
    }
    return not verdicts.isdisjoint({"worse", "better"})


def _sort_key(finding: Finding) -> tuple[int, int, float, Place]:
    p = 1.0 if finding.p is None else finding.p
    return VERDICTS.index(finding.verdict), ("all", "group", "cell").index(finding.level), p, finding.place


def _findings_with_test(effects: Effects, decision: Decision, sides: Sides) -> Iterable[Finding]:
    level = decision.level
    for unit, place in enumerate(effects.units(level)):
        yield Finding(
            effects.metric,
            level.name,
            place,
            decision.verdicts[unit],
            **_geometric_means(effects.metric, sides, place) if level.name == "cell" else {},
            ratio=math.exp(level.difference[unit]),
            low=math.exp(decision.low[unit]),
            high=math.exp(decision.high[unit]),
            p=float(min(decision.worse[unit], decision.better[unit])),
            detectable=math.exp(decision.detectable[unit]),
        )


def _findings_without_test(effects: Effects, sides: Sides) -> Iterable[Finding]:
    for place, (verdict, reason) in effects.untested.items():
        means = _geometric_means(effects.metric, sides, place)
        ratio = None
        if means["head"] and means["base"]:
            ratio = means["head"] / means["base"]
        yield Finding(effects.metric, "cell", place, verdict, **means, ratio=ratio, reason=reason)


def _geometric_means(metric: axes.Metric, sides: Sides, place: Place) -> dict[str, Any]:
    """Geometric means of a cell at base and at head, and the numbers of seeds with a value."""
    values = [
        [run.values[metric.name] for run in runs_with_metric(side[place], metric).values()]
        for side in (sides.base, sides.head)
    ]
    base, head = (math.exp(math.fsum(side) / len(side)) if side else None for side in values)
    return {"base": base, "head": head, "seeds": (len(values[0]), len(values[1]))}


def _find_failures(sides: Sides) -> Iterable[Change]:
    """Cells that failed for at least half of the seeds that are good on the other side."""
    for place in sides.common:
        base, head = sides.base[place], sides.head[place]
        if error := _usual_error_of_counterparts(base, head):
            yield Change(place, "fails", error)
        elif error := _usual_error_of_counterparts(head, base):
            yield Change(place, "mended", error)


def _usual_error_of_counterparts(this_side: Mapping[int, Run], other_side: Mapping[int, Run]) -> str:
    """The error of most of the good seeds, or, without common ones, of all others; empty where it works."""
    seeds = [seed for seed, run in this_side.items() if not run.failed]
    common = [other_side[seed] for seed in seeds if seed in other_side] or (list(other_side.values()) if seeds else [])
    errors = [run.failed for run in common if run.failed]
    return errors[0] if errors and 2 * len(errors) >= len(common) else ""


def _find_level_changes(sides: Sides) -> Iterable[Change]:
    """Of cells where at least half of the common seeds changed to the same side."""
    for place, quantity in itertools.product(sides.common, QUANTITIES):
        base, head = sides.base[place], sides.head[place]
        changes: dict[Literal["weaker", "stronger"], Counter[tuple[str, str]]]
        changes, pairs = {"weaker": Counter(), "stronger": Counter()}, 0
        for seed in base.keys() & head.keys():
            before, after = (side[seed].levels.get(quantity, "") for side in (base, head))
            if before not in LEVELS or after not in LEVELS:
                continue
            pairs += 1
            if before != after:
                changes["weaker" if LEVELS.index(before) < LEVELS.index(after) else "stronger"][before, after] += 1
        for verdict, counts in changes.items():
            if counts and 2 * counts.total() >= pairs:
                (levels, _), *_ = counts.most_common(1)
                yield Change(place, verdict, "", f"evidence of {QUANTITIES[quantity]}", *levels)


def _disturbance_notes(runs: Sequence[Run]) -> Iterable[str]:
    disturbed = sum(run.disturbed for run in runs)
    if disturbed:
        yield f"{disturbed} of {len(runs)} records were disturbed: other programs used the processor meanwhile"
    waited = [run.waited for run in runs if run.waited is not None]
    if waited and float(np.median(waited)) > BUSY_WAITING:
        yield f"the machine was busy: processes waited for {np.median(waited):.0%} of their time"
