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
from spinbench.history.regression_test.measurements import Place, Run, Runs, Sides, is_metric_equal, runs_with_metric
from spinbench.history.regression_test.noise import Blocks, BoolArray, FloatArray
from spinbench.history.regression_test.significance import Decision, FindingVerdict, Level

# Stands for every model, method or backend in the label of a group or of all cells.
ALL = "all"
# Split of a metric's alpha among the levels, by how the metric is judged.
SHARES = {
    "cost": {"all": 0.2, "group": 0.5, "cell": 0.3},
    "accuracy": {"group": 0.5, "cell": 0.5},
    "certain": {"group": 0.5, "cell": 0.5},
}
# Largest drift of the yardstick between base and head up to which the level "all" is judged.
MAX_DRIFT = math.log(1.03)
# After a larger drift, groups are compared with the median group, which needs at least this many groups.
MIN_GROUPS = 3
# Inflation of errors from which a note says that the machine was busy: with twice the error, half as many changes are
# detected.
BUSY_INFLATION = 2.0
# Smallest number of seeds per cell: a single draw has no spread.
MIN_SEEDS = 2
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
    untested: Mapping[Place, tuple[FindingVerdict, str]]
    notes: tuple[str, ...] = ()

    @property
    def groups(self) -> list[str]:
        """Of each cell."""
        return [place.group for place in self.places]

    def add_shift(self, shift: FloatArray) -> Effects:
        """The same noise, with cells that differ by `shift` more."""
        moved = (replace(level, difference=level.difference + level.weights @ shift) for level in self.levels)
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
        return significance.error_inflation(self.levels[0].difference, self.levels[0].error)

    def decisions(self) -> list[Decision]:
        """The verdicts at each level."""
        margin, factor = math.log1p(self.metric.margin), self.inflation()
        alpha = {level.name: self.metric.alpha * SHARES[self.metric.judged][level.name] for level in self.levels}
        return [significance.decide_verdicts(level, margin, alpha[level.name], factor) for level in self.levels]


def unjudged_effects(metric: Metric, sides: Sides) -> Effects:
    """Of a metric that is not judged: nothing is tested."""
    cells = (
        place
        for place in sides.common
        if any(runs_with_metric(side[place], metric) for side in (sides.base, sides.head))
    )
    return Effects(metric, (), (), dict.fromkeys(cells, ("shown", "")))


def cost_effects(metric: Metric, sides: Sides) -> Effects:
    """Of a metric of cost, of what can be compared."""
    machine = measurements.most_common_machine(sides.head)
    chain = [measurements.select_machine(runs, machine) for runs in (*sides.past, sides.base, sides.head)]
    reasons = {
        place: _cost_exclusion_reason(metric, sides, *(runs.get(place, {}) for runs in chain[-2:]))
        for place in sides.common
    }
    fit = [place for place, reason in reasons.items() if not reason]
    timed = [{place: runs_with_metric(runs.get(place, {}), metric) for place in fit} for runs in chain]
    calm = [measurements.exclude_slow_runs(runs) for runs in timed]
    common = all_seeds(timed[-2]) & all_seeds(timed[-1])
    for place in fit:
        base, head = (runs[place].keys() for runs in calm[-2:])
        if not (base & head if common else base and head):
            reasons[place] = "the machine was slow for a while whenever they ran"
    fit = [place for place in fit if not reasons[place]]
    values, scatter = measurements.stack_blocks(metric, fit, calm, sorted(common))
    measured: BoolArray = np.asarray(np.isfinite(values).any(axis=(0, 2)))
    segment_index = np.cumsum([0, *sides.changed])[None, measured[:-1]]
    blocks = Blocks(values[:, measured], scatter[:, measured], bool(common), segment_index)
    drift = math.log(measurements.median_yardstick(chain[-1]) / measurements.median_yardstick(chain[-2]))
    levels: tuple[Level, ...] = ()
    if fit:
        levels = _remove_drift(effects_by_cell_group_and_all(blocks, [place.group for place in fit]), drift)
    if fit and not levels:
        reasons |= dict.fromkeys(fit, "the machine's speed changed, and too few others tell by how much")
        fit = []
    untested: dict[Place, tuple[FindingVerdict, str]] = {
        place: ("undecided", reason) for place, reason in reasons.items() if reason
    }
    notes = _format_reason_counts(metric, reasons.values())
    effects = Effects(metric, tuple(fit), levels, untested, notes)
    slow = sum(map(_count_runs, timed[-2:])) - sum(map(_count_runs, calm[-2:]))
    return replace(effects, notes=(*effects.notes, *_disturbance_notes(metric, slow, drift, effects.inflation())))


def effects_by_cell_group_and_all(blocks: Blocks, groups: Sequence[str]) -> tuple[Level, ...]:
    """Differences of the last two commits at the levels "cell", "group" and "all".

    Args:
        blocks: of cells, each of which was measured at both.
        groups: of each cell.
    """
    centred = blocks.centre()
    cells = _estimate_level("cell", centred, np.eye(len(groups)))
    membership = np.array([[group == name for group in groups] for name in sorted(set(groups))], dtype=np.float64)
    precision = membership / cells.error**2
    weights = precision / precision.sum(axis=1, keepdims=True)
    independent = 1 / np.sqrt(precision.sum(axis=1))
    grouped = centred.pool(weights)
    middle = _estimate_level("group", grouped, weights)
    # the errors of cells may be correlated but do not cancel
    middle = replace(middle, error=np.maximum(middle.error, independent))
    share = (1 / middle.error**2 / np.sum(1 / middle.error**2))[None]
    return cells, middle, _estimate_level("all", grouped.pool(share), share @ weights)


def accuracy_effects(metric: Metric, sides: Sides) -> Effects:
    """Of a metric of accuracy, of the cells whose numbers changed; a smaller error without noise is certain."""
    untested: dict[Place, tuple[FindingVerdict, str]] = {}
    pairs: dict[Place, tuple[dict[int, Run], dict[int, Run]]] = {}
    for place in sides.common:
        old, new = runs_with_metric(sides.base[place], metric), runs_with_metric(sides.head[place], metric)
        common = [(old[seed], new[seed]) for seed in old.keys() & new.keys()]
        if not old or not new:
            untested[place] = "undecided", f"there is no {metric.title}"
        elif common and all(is_metric_equal(*pair, metric) for pair in common):
            untested[place] = "identical", ""
        elif any(_has_new_meaning(old_run, new_run, metric) for old_run, new_run in common):
            untested[place] = "undecided", EDITED
        elif min(len(old), len(new)) < MIN_SEEDS:
            untested[place] = "undecided", FEW_SEEDS
        elif metric.judged == "certain" and not (_is_deterministic(old, metric) and _is_deterministic(new, metric)):
            untested[place] = "shown", NOISY
        else:
            pairs[place] = old, new
    notes = _format_reason_counts(metric, (reason for _, reason in untested.values() if reason in (FEW_SEEDS, EDITED)))
    sides_of_pairs = [{place: pair[side] for place, pair in pairs.items()} for side in (0, 1)]
    values, _ = measurements.stack_blocks(metric, list(pairs), sides_of_pairs)
    longer = np.array([_log_sample_ratio(*pair) for pair in pairs.values()])
    levels: tuple[Level, ...] = ()
    if pairs:
        levels = _levels_from_seeds(values, metric.falls * longer, [place.group for place in pairs])
    return Effects(metric, tuple(pairs), levels, untested, notes)


# Function that computes the effects, by how a metric is judged.
EFFECTS = {"cost": cost_effects, "accuracy": accuracy_effects, "certain": accuracy_effects, "no": unjudged_effects}


def _levels_from_seeds(values: FloatArray, shift: FloatArray, groups: Sequence[str]) -> tuple[Level, ...]:
    """Of (cells, 2, seeds); a longer run is expected to differ by `shift` less, but not every error falls."""
    raw = np.diff(noise.finite_mean(values, 2), axis=1)[:, 0]
    replicate_noise = noise.replicate_variance(values, paired=False)
    moderated_noise = noise.moderate_variances(replicate_noise)
    count = np.isfinite(values).sum(axis=2)
    error = np.where(
        replicate_noise.variance <= noise.ROUNDING_ERROR**2,
        0.0,
        np.sqrt(moderated_noise.variance * (1 / count).sum(axis=1)),
    )
    freedom = np.maximum(moderated_noise.freedom, 1.0)
    cells = Level("cell", noise.smaller_change(raw, raw + shift), error, freedom, np.eye(len(raw)))
    # noisy cells are averaged with their precision as weights; cells without noise are judged one by one
    names = sorted({group for group, group_error in zip(groups, error, strict=True) if group_error > 0})
    if not names:
        return (cells,)
    membership = np.array([[group == name for group in groups] for name in names])
    precision = np.where(membership & (error > 0), 1 / np.where(error > 0, error, 1.0) ** 2, 0.0)
    total = precision.sum(axis=1)
    weights = precision / total[:, None]
    pooled = total**2 / (precision**2 / freedom).sum(axis=1)
    return cells, Level("group", weights @ cells.difference, 1 / np.sqrt(total), pooled, weights)


def _estimate_level(name: str, blocks: Blocks, weights: FloatArray) -> Level:
    difference, count = (part[:, -1] for part in blocks.differences())
    within = noise.within_commit_variance(blocks)
    between = noise.between_commit_variance(name, blocks, within.variance)
    mean_noise = noise.satterthwaite_variance(within, count, between)
    error = np.sqrt(2 * mean_noise.variance + (noise.DISTURBANCE * blocks.scatter_increase()) ** 2)
    return Level(name, difference, error, mean_noise.freedom, weights)


def _remove_drift(levels: tuple[Level, ...], drift: float) -> tuple[Level, ...]:
    """Where the machine's speed changed, cells and groups are compared with the median group; none with too few."""
    cells, groups, _ = levels
    if not abs(drift) > MAX_DRIFT:
        return levels
    if len(groups.difference) < MIN_GROUPS:
        return ()
    middle = np.median(groups.difference)
    return tuple(replace(level, difference=level.difference - middle) for level in (cells, groups))


def _cost_exclusion_reason(metric: Metric, sides: Sides, base: Mapping[int, Run], head: Mapping[int, Run]) -> str:
    """Why the cost of a cell is not judged; empty where it is."""
    if not base or not head:
        base_machine, head_machine = (measurements.most_common_machine(runs) for runs in (sides.base, sides.head))
        difference = "one is unknown"
        if base_machine and head_machine:
            difference = measurements.machine_differences(base_machine, head_machine)
        return f"base and head were measured on different machines ({difference})"
    successful = [run for side in (base, head) for run in side.values() if not run.failed]
    reason = measurements.timing_exclusion_reason(successful, metric)
    seeds = min(len(runs_with_metric(side, metric)) for side in (base, head))
    if not reason and seeds < metric.seeds:
        reason = f"{metric.seeds} seeds are needed"
        if not seeds:
            reason = measurements.NO_TIMES
    return reason


def _format_reason_counts(metric: Metric, reasons: Iterable[str]) -> tuple[str, ...]:
    cells = Counter(filter(None, reasons))
    return tuple(f"{metric.title}: {format_count(n, 'cell')} without a verdict: {why}" for why, n in cells.items())


def _disturbance_notes(metric: Metric, slow: int, drift: float, factor: float) -> Iterable[str]:
    if slow:
        runs = format_count(slow, "run")
        yield f"{metric.title}: {runs} left out: a fixed loop next to them took over 15 % longer than usual"
    if abs(drift) > MAX_DRIFT:
        yield (
            f"{metric.title}: a fixed loop took x{math.exp(drift):.2f} as long at head, so that the machine's speed "
            "changed; groups and cells are compared with the median group, and nothing is said of all together"
        )
    if factor > BUSY_INFLATION:
        yield f"{metric.title}: the machine was busy; bounds are x{factor:.1f} as wide as usual"


def all_seeds(runs: Runs) -> set[int]:
    """Those of any cell."""
    return {seed for cell_runs in runs.values() for seed in cell_runs}


def _count_runs(runs: Runs) -> int:
    return sum(map(len, runs.values()))


def _has_new_meaning(old: Run, new: Run, metric: Metric) -> bool:
    """Whether the metric says something else of the same numbers."""
    return bool(old.numbers) and old.numbers == new.numbers and not is_metric_equal(old, new, metric)


def _is_deterministic(runs: Mapping[int, Run], metric: Metric) -> bool:
    return float(np.ptp([run.values[metric.name] for run in runs.values()])) <= noise.ROUNDING_ERROR


def _log_sample_ratio(base: Mapping[int, Run], head: Mapping[int, Run]) -> float:
    """Logarithm of how many times as many samples head took; 0 where that is not known."""
    means = [float(np.mean([run.samples for run in side.values()])) for side in (base, head)]
    return float(np.nan_to_num(means[1] - means[0], posinf=0.0, neginf=0.0))
