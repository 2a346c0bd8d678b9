"""The rule: cut where a difference is certain among all that were looked at, learn the noise anew, and look again.

Each round finds the most striking cut of each stretch, corrects its p-value for the cuts that it was chosen from
(Bonferroni) and for the stretches of all series (Benjamini and Hochberg), with the gate's own test and margin. What is
found parts its series in two stretches. Rounds end when nothing is found: where nothing ever changed, there is one, and
the chance of any finding in it is the metric's alpha.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_array

from spinbench.history.axes import Metric
from spinbench.history.judging import accuracy, cost, verdicts
from spinbench.history.judging.evidence import Place, Runs
from spinbench.history.judging.findings import ALL
from spinbench.history.judging.pooling import MOST_FREEDOM, Level
from spinbench.history.judging.variance import BoolArray, FloatArray
from spinbench.history.steps import courses, noise, scan
from spinbench.history.steps.courses import Course
from spinbench.history.steps.noise import Weighed

LEVELS = ("group", "cell")
MOST_ROUNDS = 50

Stretch = tuple[int, int, int]
"""Unit, first commit, and the one after the last."""


@dataclass(frozen=True)
class Step:
    """A change of a series' level.

    Attributes:
        metric: which.
        level: "cell" or "group", cells that share method and backend.
        place: which; a group has `ALL` as its model.
        at: index of the first commit after the change.
        ratio: after over before, between the neighbouring changes; above 1 is worse.
        low, high: of its 95 % interval.
        p: corrected.
        values: one a commit: the series' own, of a group relative to its mean; NaN where there is none.
    """

    metric: Metric
    level: str
    place: Place
    at: int
    ratio: float
    low: float
    high: float
    p: float
    values: tuple[float, ...]


@dataclass
class _Units:
    """Series of a level, as rows of the cells that are in them, and their cuts so far with p-values."""

    name: str
    member: BoolArray
    places: tuple[Place, ...]
    cuts: list[dict[int, float]] = field(default_factory=list)

    def stretches(self, length: int) -> list[Stretch]:
        """All of them."""
        found = []
        for unit, cuts in enumerate(self.cuts):
            ends = [0, *sorted(cuts), length]
            found += [(unit, first, end) for first, end in itertools.pairwise(ends)]
        return found


def steps(metric: Metric, chain: Sequence[Runs]) -> tuple[Course, list[Step]]:
    """All changes of a metric that is judged, cells and groups, the most certain ones first.

    Args:
        metric: cost or accuracy.
        chain: what was measured of commits, oldest first.
    """
    course = (courses.cost if metric.judged == "cost" else courses.accuracy)(metric, chain)
    if not course.places:
        return course, []
    shares = {"group": cost.SHARES["group"], "cell": cost.SHARES["cell"]}
    if metric.judged != "cost":
        shares = dict.fromkeys(LEVELS, accuracy.SHARE)
    weigh = noise.of_cost if metric.judged == "cost" else noise.of_accuracy
    found = []
    for name in LEVELS:
        found += _of_level(course, _units(name, course), weigh, metric.alpha * shares[name])
    return course, sorted(found, key=lambda one: (one.p, one.at, one.place))


def _units(name: str, course: Course) -> _Units:
    if name == "cell":
        units = _Units(name, np.eye(len(course.places), dtype=bool), course.places)
    else:
        firsts = [course.places[int(row.argmax())] for row in course.member]
        units = _Units(name, course.member, tuple(place._replace(model=ALL) for place in firsts))
    units.cuts = [{} for _ in units.places]
    return units


def _of_level(
    course: Course, units: _Units, weigh: Callable[[Course, FloatArray], Weighed], alpha: float
) -> list[Step]:
    length = course.values.shape[1]
    margin = math.log1p(course.metric.margin)
    for _ in range(MOST_ROUNDS):
        stretches = units.stretches(length)
        weighed = weigh(course, _pieces(units, course))
        first = scan.most_striking(_rows(course, units, weighed, stretches)[0], margin)
        # what differs across the cut in question is no noise
        weighed = weigh(course, _pieces(units, course, zip(stretches, first.at, strict=True)))
        rows, freedom = _rows(course, units, weighed, stretches)
        cuts = scan.most_striking(rows, margin)
        level = Level(units.name, cuts.difference, np.sqrt(cuts.variance), freedom, np.empty((len(freedom), 0)))
        decided = verdicts.decide(level, margin, alpha, tries=cuts.tries)
        new = False
        for (unit, _, _), at, said, *p in zip(
            stretches, cuts.at, decided.verdicts, decided.worse, decided.better, strict=True
        ):
            if at >= 0 and said in ("worse", "better"):
                units.cuts[unit][int(at)] = float(min(p))
                new = True
        if not new:
            break
    return [step for unit in range(len(units.places)) for step in _told(course, units, unit, weighed)]


def _pieces(units: _Units, course: Course, tried: Iterable[tuple[Stretch, int]] = ()) -> FloatArray:
    """The number of changes of each cell, by its own series or its group's, up to each commit; with those `tried`."""
    found = np.zeros(course.values.shape[:2])
    for own, cuts in zip(units.member, units.cuts, strict=True):
        for at in cuts:
            found[own, at:] += 1
    for (unit, _, _), at in tried:
        if at >= 0:
            found[units.member[unit], at:] += 1
    return found


def _rows(
    course: Course, units: _Units, weighed: Weighed, stretches: Sequence[Stretch]
) -> tuple[scan.Rows, FloatArray]:
    """The cells in each stretch, and the degrees of freedom of its errors."""
    counted = units.member & ~weighed.certain if units.name == "group" else units.member
    cells, owner = [], []
    for turn, (unit, _, _) in enumerate(stretches):
        (own,) = np.nonzero(counted[unit])
        cells += list(own)
        owner += [turn] * len(own)
    inside = np.zeros((len(cells), weighed.values.shape[1]))
    for row, turn in enumerate(owner):
        inside[row, stretches[turn][1] : stretches[turn][2]] = 1.0
    pool = csr_array((np.ones(len(cells)), (owner, range(len(cells)))), shape=(len(stretches), len(cells)))
    weights = weighed.weights[cells] * inside
    total = weights.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = (pool @ total) ** 2 / (pool @ (total**2 / weighed.freedom[cells]))
    common = [weighed.common[units.places[unit].group] if units.name == "group" else 0.0 for unit, _, _ in stretches]
    rows = scan.Rows(
        values=weighed.values[cells],
        weights=weights,
        lengths=course.metric.falls * course.samples[cells],
        pool=pool,
        common=np.array(common),
    )
    return rows, np.clip(np.nan_to_num(freedom), 1.0, MOST_FREEDOM)


def _told(course: Course, units: _Units, unit: int, weighed: Weighed) -> list[Step]:
    """The steps of one series, each between its neighbours."""
    from scipy.special import stdtrit

    (own,) = np.nonzero(units.member[unit])
    values, weights = weighed.values[own], weighed.weights[own]
    length = values.shape[1]
    told = []
    ends = [0, *sorted(units.cuts[unit]), length]
    shown = _shown(values, weights)
    for first, at, end in zip(ends[:-2], ends[1:-1], ends[2:], strict=True):
        before, after = (weights[:, span].sum(axis=1) for span in (slice(first, at), slice(at, end)))
        both = (before > 0) & (after > 0)
        sums = [(weights[both, span] * values[both, span]).sum(axis=1) for span in (slice(first, at), slice(at, end))]
        difference = sums[1] / after[both] - sums[0] / before[both]
        precision = 1 / (1 / before[both] + 1 / after[both])
        mean = float(precision @ difference / precision.sum())
        half = float(stdtrit(float(weighed.freedom[own].mean()), 0.975)) / math.sqrt(precision.sum())
        ratio, low, high = (math.exp(one) for one in (mean, mean - half, mean + half))
        place, p = units.places[unit], units.cuts[unit][at]
        told.append(Step(course.metric, units.name, place, at, ratio, low, high, p, shown))
    return told


def _shown(values: FloatArray, weights: FloatArray) -> tuple[float, ...]:
    """Of one cell as they are; of several less their means."""
    if len(values) == 1:
        mean = values[0]
    else:
        total = np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
        centred = values - (weights * values).sum(axis=1, keepdims=True) / total
        mean = (weights * centred).sum(axis=0) / np.maximum(weights.sum(axis=0), 1e-300)
    return tuple(np.where((weights > 0).any(axis=0), np.exp(mean), math.nan).tolist())
