"""Is a step slower? Tested over blocks of seeds, for all cells together, each method on each backend, and each cell."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from spinbench.history.axes import Metric
from spinbench.history.judging import pooling, verdicts
from spinbench.history.judging.evidence import Place, Runs, Sides
from spinbench.history.judging.findings import ALL, Detectable, Finding, Judged, centres, tested, untested
from spinbench.history.judging.pooling import Level
from spinbench.history.judging.table import Table, table
from spinbench.history.judging.verdicts import Decision

SHARES = {"all": 0.2, "group": 0.5, "cell": 0.3}
"""Of a metric's alpha that the levels have."""
MOST_DRIFT = math.log(1.03)
"""Of the yardstick between base and head, beyond which all cells together say nothing of the program."""
FEWEST_GROUPS = 3
"""Needed for a median group to compare the others with after such a drift."""
BUSY_INFLATION, BUSY_WAITING = 2.0, 0.5


def compare(found: Table) -> tuple[Level, ...]:
    """The levels that can be tested; none without a cell."""
    if not found.places:
        return ()
    cells, groups, whole = pooling.levels(found.blocks, found.groups)
    if abs(found.drift) <= MOST_DRIFT:
        return cells, groups, whole
    if len(groups.difference) < FEWEST_GROUPS:
        return ()
    middle = float(np.median(groups.difference))
    return tuple(replace(level, difference=level.difference - middle) for level in (cells, groups))


def decide(metric: Metric, levels: Sequence[Level]) -> tuple[list[Decision], float]:
    """The verdicts at each level, and the inflation of their errors."""
    factor = verdicts.inflation(levels[0]) if levels else 1.0
    margin = math.log1p(metric.margin)
    return [verdicts.decide(one, margin, metric.alpha * SHARES[one.name], factor) for one in levels], factor


def judged(metric: Metric, sides: Sides) -> Judged:
    """All findings of a metric of cost."""
    found = table(metric, sides)
    decisions, factor = decide(metric, compare(found))
    findings: list[Finding] = []
    for decision in decisions:
        for unit, place in enumerate(_units(found, decision.level.name)):
            known = centres(metric, sides, place) if decision.level.name == "cell" else {}
            findings.append(tested(metric, decision, unit, place, known))
    left_out = dict(found.left_out)
    if not decisions:
        left_out |= dict.fromkeys(found.places, "the machine's speed changed, and too few others tell by how much")
    findings += [untested(metric, sides, place, "undecided", reason) for place, reason in left_out.items()]
    detectable = [
        Detectable(metric, one.level.name, len(one.verdicts), math.exp(float(np.median(one.detectable))))
        for one in decisions
    ]
    return Judged(tuple(findings), tuple(detectable), tuple(_notes(found, left_out, factor)))


def _notes(found: Table, left_out: dict[Place, str], factor: float) -> list[str]:
    title, cells = found.metric.title, Counter(left_out.values())
    notes = [f"{title}: {count} cell{'s' * (count > 1)} without a verdict: {why}" for why, count in cells.items()]
    if found.slow:
        notes.append(f"{title}: {found.slow} runs left out: a fixed loop next to them took over 15 % longer than usual")
    if abs(found.drift) > MOST_DRIFT:
        notes.append(
            f"{title}: a fixed loop took x{math.exp(found.drift):.2f} as long at head, so that the machine's speed "
            "changed; groups and cells are compared with the median group, and nothing is said of all together"
        )
    if factor > BUSY_INFLATION:
        notes.append(f"{title}: the machine was busy; bounds are x{factor:.1f} as wide as usual")
    return notes


def _units(found: Table, level: str) -> list[Place]:
    if level == "cell":
        return list(found.places)
    if level == "group":
        firsts = {place.group: place for place in found.places}
        return [firsts[name]._replace(model=ALL) for name in sorted(firsts)]
    return [Place(ALL, ALL, ALL)]


def changed(metrics: Sequence[Metric], before: Runs, after: Runs) -> bool:
    """Whether a cost differs beyond noise between two commits, by what is known of them alone."""
    sides = Sides(before, after)
    for metric in metrics:
        decisions, _ = decide(metric, compare(table(metric, sides)))
        if any(said in ("worse", "better") for one in decisions for said in one.verdicts):
            return True
    return False
