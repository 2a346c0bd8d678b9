"""Is an answer less accurate? Asked only where the numbers changed; seeds then count as independent draws."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spinbench.history.axes import Metric
from spinbench.history.judging import verdicts
from spinbench.history.judging.evidence import Place, Run, Sides
from spinbench.history.judging.findings import ALL, Detectable, Finding, Judged, centres, tested, untested
from spinbench.history.judging.pooling import Level
from spinbench.history.judging.variance import NOTHING, FloatArray, moderated, separate
from spinbench.history.judging.verdicts import Decision

SHARE = 0.5
"""Of a metric's alpha that each of the two levels has."""
ROUNDING = 1e-6
"""Relative difference of numbers that are the same but for the order of their sums."""
FEWEST_SEEDS = 2
FEW_SEEDS = f"the numbers changed, and {FEWEST_SEEDS} seeds of both commits are needed"
NOISY = "it differs from seed to seed"
EDITED = "the results are identical, and so the metric has changed its meaning: raise its version"


@dataclass(frozen=True)
class Changed:
    """A metric where its numbers changed: values of each cell at base and at head, NaN where a row has fewer.

    Attributes:
        places: of the rows.
        base, head: logarithms, cells by seeds.
        shift: of the head less base, which comes from the numbers of samples.
        same: cells whose numbers are equal.
        left_out: why other cells are not judged.
    """

    metric: Metric
    places: tuple[Place, ...]
    base: FloatArray
    head: FloatArray
    shift: FloatArray
    same: tuple[Place, ...]
    left_out: dict[Place, str]


def changed(metric: Metric, sides: Sides) -> Changed:
    """Sort the cells that both sides have."""
    same: list[Place] = []
    left_out: dict[Place, str] = {}
    rows: dict[Place, tuple[Mapping[int, Run], Mapping[int, Run]]] = {}
    for place in sides.common:
        old, new = (_known(side[place], metric) for side in (sides.base, sides.head))
        common = old.keys() & new.keys()
        if not old or not new:
            left_out[place] = f"there is no {metric.title}"
        elif common and all(_equal(old[seed], new[seed], metric) for seed in common):
            same.append(place)
        elif any(_edited(old[seed], new[seed], metric) for seed in common):
            left_out[place] = EDITED
        elif min(len(old), len(new)) < FEWEST_SEEDS:
            left_out[place] = FEW_SEEDS
        elif metric.judged == "certain" and not (_without_noise(old, metric) and _without_noise(new, metric)):
            left_out[place] = NOISY
        else:
            rows[place] = old, new
    base, head = (_array([_values(row[side], metric) for row in rows.values()]) for side in (0, 1))
    shift = np.array([metric.falls * _longer(*row) for row in rows.values()])
    return Changed(metric, tuple(rows), base, head, shift, tuple(same), left_out)


def compare(found: Changed) -> tuple[Level, ...]:
    """The levels "cell" and "group"; none without a cell."""
    if not found.places:
        return ()
    raw = np.nanmean(found.head, axis=1) - np.nanmean(found.base, axis=1)
    # a longer run is expected to have a smaller error, but not every error falls: the smaller change counts
    difference = np.median([raw, raw + found.shift, np.zeros(len(raw))], axis=0)
    own = separate(_side_by_side(found.base, found.head))
    noise = moderated(own)
    counts = [np.isfinite(side).sum(axis=1) for side in (found.base, found.head)]
    certain = own.variance <= NOTHING**2
    error = np.where(certain, 0.0, np.sqrt(noise.variance * (1 / counts[0] + 1 / counts[1])))
    cells = Level("cell", difference, error, np.maximum(noise.freedom, 1.0), np.eye(len(raw)))
    return cells, _grouped(cells, [place.group for place in found.places])


def decide(metric: Metric, levels: Sequence[Level]) -> list[Decision]:
    """The verdicts at each level."""
    return [verdicts.decide(one, math.log1p(metric.margin), metric.alpha * SHARE) for one in levels if len(one.error)]


def judged(metric: Metric, sides: Sides) -> Judged:
    """All findings of a metric of accuracy."""
    found = changed(metric, sides)
    findings: list[Finding] = [untested(metric, sides, place, "identical") for place in found.same]
    for place, reason in found.left_out.items():
        findings.append(untested(metric, sides, place, "shown" if reason == NOISY else "undecided", reason))
    detectable = []
    for decision in decide(metric, compare(found)):
        name = decision.level.name
        for unit, place in enumerate(_units(found, decision)):
            findings.append(
                tested(metric, decision, unit, place, centres(metric, sides, place) if name == "cell" else {})
            )
        ratio = math.exp(float(np.median(decision.detectable)))
        detectable.append(Detectable(metric, name, len(decision.verdicts), ratio))
    said = Counter(reason for reason in found.left_out.values() if reason in (FEW_SEEDS, EDITED))
    notes = [f"{metric.title}: {count} cell{'s' * (count > 1)} without a verdict: {why}" for why, count in said.items()]
    return Judged(tuple(findings), tuple(detectable), tuple(notes))


def _grouped(cells: Level, groups: Sequence[str]) -> Level:
    """Cells that have noise, weighted by their precision; those without speak for themselves."""
    noisy = cells.error > 0
    names = sorted({group for group, one in zip(groups, noisy, strict=True) if one})
    member = np.array([[group == name for group in groups] for name in names], dtype=bool).reshape(-1, len(groups))
    precision = np.where(member & noisy, 1 / np.where(noisy, cells.error, 1.0) ** 2, 0.0)
    total = precision.sum(axis=1, keepdims=True)
    weights = precision / total
    freedom = total[:, 0] ** 2 / (precision**2 / cells.freedom).sum(axis=1)
    return Level("group", weights @ cells.difference, 1 / np.sqrt(total[:, 0]), freedom, weights)


def _units(found: Changed, decision: Decision) -> list[Place]:
    if decision.level.name == "cell":
        return list(found.places)
    firsts = [int(np.flatnonzero(row)[0]) for row in decision.level.weights]
    return [found.places[first]._replace(model=ALL) for first in firsts]


def _known(runs: Mapping[int, Run], metric: Metric) -> dict[int, Run]:
    return {seed: one for seed, one in runs.items() if metric.name in one.values}


def _values(runs: Mapping[int, Run], metric: Metric) -> list[float]:
    return [one.values[metric.name] for one in runs.values()]


def _equal(one: Run, other: Run, metric: Metric) -> bool:
    return bool(abs(one.values[metric.name] - other.values[metric.name]) <= ROUNDING)


def _edited(one: Run, other: Run, metric: Metric) -> bool:
    """Whether the metric says something else of the same numbers."""
    return bool(one.numbers) and one.numbers == other.numbers and not _equal(one, other, metric)


def _without_noise(runs: Mapping[int, Run], metric: Metric) -> bool:
    return float(np.ptp(_values(runs, metric))) <= NOTHING


def _longer(base: Mapping[int, Run], head: Mapping[int, Run]) -> float:
    """Logarithm of how many times as many samples head took; 0 where that is not known."""
    means = [float(np.mean([one.samples for one in side.values()])) for side in (base, head)]
    return means[1] - means[0] if np.isfinite(means).all() else 0.0


def _array(rows: Sequence[Sequence[float]]) -> FloatArray:
    """Rows of different lengths, filled up with NaN."""
    width = max(map(len, rows), default=0)
    return np.array([[*row, *[math.nan] * (width - len(row))] for row in rows]).reshape(len(rows), width)


def _side_by_side(base: FloatArray, head: FloatArray) -> FloatArray:
    """(cells, 2, seeds)."""
    width = max(base.shape[1], head.shape[1])
    sides = (np.pad(one, ((0, 0), (0, width - one.shape[1])), constant_values=math.nan) for one in (base, head))
    return np.stack(list(sides), axis=1)
