"""By how much a metric differs between base and head: in each cell, each group of cells, and all of them together.

Cost is compared over blocks of seeds, of a fixed number of samples, of long enough runs, on one machine at its usual
speed. A run that other programs disturbed is slower at its quartile, and its batches scatter more. By how much more
they do at head than at base is therefore a part of the error, which is all that there is to know of single runs.

Accuracy is compared only where the numbers changed; seeds then count as independent draws.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from spinbench.foundation.remarks import format_count
from spinbench.history.axes import Metric
from spinbench.history.regression_test import measurements, noise, significance
from spinbench.history.regression_test.measurements import Place, Run, Runs, Sides, equal, having
from spinbench.history.regression_test.noise import Blocks, BoolArray, FloatArray
from spinbench.history.regression_test.significance import Decision, Level, Said

ALL = "all"
"""Stands for every model, method or backend in the place of a group or of the level "all"."""
SHARES = {
    "cost": {"all": 0.2, "group": 0.5, "cell": 0.3},
    "accuracy": {"group": 0.5, "cell": 0.5},
    "certain": {"group": 0.5, "cell": 0.5},
}
"""Of a metric's alpha that the levels have, by how it is judged."""
MAX_DRIFT = math.log(1.03)
"""Of the yardstick between base and head, beyond which all cells together say nothing of the program."""
MIN_GROUPS = 3
"""Needed for a median group to compare the others with after such a drift."""
BUSY_INFLATION = 2.0
"""Of errors, from which a note says that the machine was busy: bounds twice as wide find half of what they should."""
MIN_SEEDS = 2
"""Of a cell: one draw has no spread."""
FEW_SEEDS = f"the numbers changed, and {MIN_SEEDS} seeds of both commits are needed"
NOISY = "it differs from seed to seed"
EDITED = "the results are identical, and so the metric has changed its meaning: raise its version"


@dataclass(frozen=True)
class Effects:
    """What is tested of a metric.

    Attributes:
        metric: which.
        places: cells that are tested.
        levels: their differences, those of cells first; none where nothing can be tested.
        untested: of other cells, what is said of them and why.
        notes: sentences about what was left out.
    """

    metric: Metric
    places: tuple[Place, ...]
    levels: tuple[Level, ...]
    untested: Mapping[Place, tuple[Said, str]]
    notes: tuple[str, ...] = ()

    @property
    def groups(self) -> list[str]:
        """Of each cell."""
        return [place.group for place in self.places]

    def shifted(self, shift: FloatArray) -> Effects:
        """The same noise, with cells that differ by `shift` more."""
        moved = (replace(one, difference=one.difference + one.weights @ shift) for one in self.levels)
        return replace(self, levels=tuple(moved))

    def units(self, level: Level) -> list[Place]:
        """What the units of a level are; `ALL` stands for what is pooled."""
        if level.name == "cell":
            return list(self.places)
        if level.name == "all":
            return [Place(ALL, ALL, ALL)]
        return [self.places[int(row.argmax())]._replace(model=ALL) for row in level.weights]

    def inflation(self) -> float:
        """The factor of the errors of costs on a busy day."""
        if not self.levels or self.metric.judged != "cost":
            return 1.0
        return significance.inflation(self.levels[0].difference, self.levels[0].error)

    def decisions(self) -> list[Decision]:
        """The verdicts at each level."""
        margin, factor = math.log1p(self.metric.margin), self.inflation()
        alpha = {one.name: self.metric.alpha * SHARES[self.metric.judged][one.name] for one in self.levels}
        return [significance.decide(one, margin, alpha[one.name], factor) for one in self.levels]


def shown(metric: Metric, sides: Sides) -> Effects:
    """Of a metric that is not judged: nothing is tested."""
    cells = (place for place in sides.common if any(having(side[place], metric) for side in (sides.base, sides.head)))
    return Effects(metric, (), (), dict.fromkeys(cells, ("shown", "")))


def cost(metric: Metric, sides: Sides) -> Effects:
    """Of a metric of cost, of what can be compared."""
    machine = measurements.usual_machine(sides.head)
    chain = [measurements.on_machine(runs, machine) for runs in (*sides.past, sides.base, sides.head)]
    reasons = {place: _unfit(metric, sides, *(runs.get(place, {}) for runs in chain[-2:])) for place in sides.common}
    fit = [place for place, reason in reasons.items() if not reason]
    timed = [{place: having(runs.get(place, {}), metric) for place in fit} for runs in chain]
    calm = [measurements.steady(runs) for runs in timed]
    common = _seeds(timed[-2]) & _seeds(timed[-1])
    for place in fit:
        base, head = (runs[place].keys() for runs in calm[-2:])
        if not (base & head if common else base and head):
            reasons[place] = "the machine was slow for a while whenever they ran"
    fit = [place for place in fit if not reasons[place]]
    values, scatter = measurements.in_blocks(metric, fit, calm, sorted(common) or None)
    measured: BoolArray = np.asarray(np.isfinite(values).any(axis=(0, 2)))
    pieces = np.cumsum([0, *sides.changed])[None, measured[:-1]]
    blocks = Blocks(values[:, measured], scatter[:, measured], bool(common), pieces)
    drift = math.log(measurements.yardstick(chain[-1]) / measurements.yardstick(chain[-2]))
    levels = _without_drift(pooled_levels(blocks, [place.group for place in fit]), drift) if fit else ()
    if fit and not levels:
        reasons |= dict.fromkeys(fit, "the machine's speed changed, and too few others tell by how much")
    untested: dict[Place, tuple[Said, str]] = {
        place: ("undecided", reason) for place, reason in reasons.items() if reason
    }
    found = Effects(metric, tuple(fit) if levels else (), levels, untested, _count_reasons(metric, reasons.values()))
    slow = sum(map(_count, timed[-2:])) - sum(map(_count, calm[-2:]))
    return replace(found, notes=(*found.notes, *_disturbances(metric, slow, drift, found.inflation())))


def pooled_levels(blocks: Blocks, groups: Sequence[str]) -> tuple[Level, ...]:
    """Differences of the last two commits at the levels "cell", "group" and "all".

    Args:
        blocks: of cells, each of which was measured at both.
        groups: of each cell.
    """
    centred = blocks.centred()
    cells = _level("cell", centred, np.eye(len(groups)))
    member = np.array([[group == name for group in groups] for name in sorted(set(groups))], dtype=np.float64)
    precision = member / cells.error**2
    weights = precision / precision.sum(axis=1, keepdims=True)
    independent = 1 / np.sqrt(precision.sum(axis=1))
    grouped = centred.pooled(weights)
    middle = _level("group", grouped, weights)
    # cells' errors may go together, but do not cancel
    middle = replace(middle, error=np.maximum(middle.error, independent))
    share = (1 / middle.error**2 / np.sum(1 / middle.error**2))[None]
    return cells, middle, _level("all", grouped.pooled(share), share @ weights)


def accuracy(metric: Metric, sides: Sides) -> Effects:
    """Of a metric of accuracy, of the cells whose numbers changed; a smaller error without noise is certain."""
    untested: dict[Place, tuple[Said, str]] = {}
    pairs: dict[Place, tuple[dict[int, Run], dict[int, Run]]] = {}
    for place in sides.common:
        old, new = having(sides.base[place], metric), having(sides.head[place], metric)
        common = [(old[seed], new[seed]) for seed in old.keys() & new.keys()]
        if not old or not new:
            untested[place] = "undecided", f"there is no {metric.title}"
        elif common and all(equal(*pair, metric) for pair in common):
            untested[place] = "identical", ""
        elif any(_has_new_meaning(one, other, metric) for one, other in common):
            untested[place] = "undecided", EDITED
        elif min(len(old), len(new)) < MIN_SEEDS:
            untested[place] = "undecided", FEW_SEEDS
        elif metric.judged == "certain" and not (_without_noise(old, metric) and _without_noise(new, metric)):
            untested[place] = "shown", NOISY
        else:
            pairs[place] = old, new
    notes = _count_reasons(metric, (reason for _, reason in untested.values() if reason in (FEW_SEEDS, EDITED)))
    sides_of_pairs = [{place: pair[side] for place, pair in pairs.items()} for side in (0, 1)]
    values, _ = measurements.in_blocks(metric, list(pairs), sides_of_pairs, None)
    longer = np.array([_longer(*pair) for pair in pairs.values()])
    levels = _levels_of_seeds(values, metric.falls * longer, [place.group for place in pairs]) if pairs else ()
    return Effects(metric, tuple(pairs), levels, untested, notes)


EFFECTS = {"cost": cost, "accuracy": accuracy, "certain": accuracy, "no": shown}
"""By how a metric is judged."""


def _levels_of_seeds(values: FloatArray, shift: FloatArray, groups: Sequence[str]) -> tuple[Level, ...]:
    """Of (cells, 2, seeds); a longer run is expected to differ by `shift` less, but not every error falls."""
    raw = np.diff(noise.mean(values, 2), axis=1)[:, 0]
    own = noise.replicates(values, paired=False)
    known = noise.moderated(own)
    count = np.isfinite(values).sum(axis=2)
    error = np.where(own.variance <= noise.NOTHING**2, 0.0, np.sqrt(known.variance * (1 / count).sum(axis=1)))
    freedom = np.maximum(known.freedom, 1.0)
    cells = Level("cell", noise.smaller(raw, raw + shift), error, freedom, np.eye(len(raw)))
    # cells that have noise, weighted by their precision; those without speak for themselves
    names = sorted({group for group, one in zip(groups, error, strict=True) if one > 0})
    if not names:
        return (cells,)
    member = np.array([[group == name for group in groups] for name in names])
    precision = np.where(member & (error > 0), 1 / np.where(error > 0, error, 1.0) ** 2, 0.0)
    total = precision.sum(axis=1)
    weights = precision / total[:, None]
    pooled = total**2 / (precision**2 / freedom).sum(axis=1)
    return cells, Level("group", weights @ cells.difference, 1 / np.sqrt(total), pooled, weights)


def _level(name: str, blocks: Blocks, weights: FloatArray) -> Level:
    difference, count = (part[:, -1] for part in blocks.differences())
    within = noise.within_commits(blocks)
    known = noise.satterthwaite(within, count, noise.between_commits(name, blocks, within.variance))
    error = np.sqrt(2 * known.variance + (noise.DISTURBANCE * blocks.disturbance()) ** 2)
    return Level(name, difference, error, known.freedom, weights)


def _without_drift(levels: tuple[Level, ...], drift: float) -> tuple[Level, ...]:
    """Where the machine's speed changed, cells and groups are compared with the median group; none with too few."""
    cells, groups, _ = levels
    if not abs(drift) > MAX_DRIFT:
        return levels
    if len(groups.difference) < MIN_GROUPS:
        return ()
    middle = np.median(groups.difference)
    return tuple(replace(level, difference=level.difference - middle) for level in (cells, groups))


def _unfit(metric: Metric, sides: Sides, base: Mapping[int, Run], head: Mapping[int, Run]) -> str:
    """Why the cost of a cell is not judged; empty where it is."""
    if not base or not head:
        one, other = (measurements.usual_machine(runs) for runs in (sides.base, sides.head))
        how = measurements.differing(one, other) if one and other else "one is unknown"
        return f"base and head were measured on different machines ({how})"
    reason = measurements.unfit([one for side in (base, head) for one in side.values() if not one.failed], metric)
    seeds = min(len(having(side, metric)) for side in (base, head))
    if not reason and seeds < metric.seeds:
        return f"{metric.seeds} seeds are needed" if seeds else measurements.NO_TIMES
    return reason


def _count_reasons(metric: Metric, reasons: Iterable[str]) -> tuple[str, ...]:
    cells = Counter(filter(None, reasons))
    return tuple(f"{metric.title}: {format_count(n, 'cell')} without a verdict: {why}" for why, n in cells.items())


def _disturbances(metric: Metric, slow: int, drift: float, factor: float) -> Iterable[str]:
    if slow:
        yield f"{metric.title}: {slow} runs left out: a fixed loop next to them took over 15 % longer than usual"
    if abs(drift) > MAX_DRIFT:
        yield (
            f"{metric.title}: a fixed loop took x{math.exp(drift):.2f} as long at head, so that the machine's speed "
            "changed; groups and cells are compared with the median group, and nothing is said of all together"
        )
    if factor > BUSY_INFLATION:
        yield f"{metric.title}: the machine was busy; bounds are x{factor:.1f} as wide as usual"


def _seeds(runs: Runs) -> set[int]:
    return {seed for own in runs.values() for seed in own}


def _count(runs: Runs) -> int:
    return sum(map(len, runs.values()))


def _has_new_meaning(one: Run, other: Run, metric: Metric) -> bool:
    """Whether the metric says something else of the same numbers."""
    return bool(one.numbers) and one.numbers == other.numbers and not equal(one, other, metric)


def _without_noise(runs: Mapping[int, Run], metric: Metric) -> bool:
    return float(np.ptp([one.values[metric.name] for one in runs.values()])) <= noise.NOTHING


def _longer(base: Mapping[int, Run], head: Mapping[int, Run]) -> float:
    """Logarithm of how many times as many samples head took; 0 where that is not known."""
    means = [float(np.mean([one.samples for one in side.values()])) for side in (base, head)]
    return means[1] - means[0] if np.isfinite(means).all() else 0.0
