"""A metric over the commits of a history: which of its numbers are news, and what each commit's mean is worth.

Costs vary between the blocks of a commit and between commits, as in the gate (regression_test/noise.py). Draws of an
error vary as the seeds of a commit do; where there is one seed, as neighbouring commits do.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spinbench.history.axes import Metric
from spinbench.history.regression_test import effects, measurements, noise, significance
from spinbench.history.regression_test.measurements import Place, Run, Runs, is_metric_equal, runs_with_metric
from spinbench.history.regression_test.noise import (
    ROUNDING_ERROR,
    Blocks,
    BoolArray,
    FloatArray,
    VarianceEstimate,
    finite_mean,
)

# Histories with more seeds do not pair costs by seed; seeds count as independent then.
MAX_SEEDS = 16
# Variance that stands for 0, of metrics without noise.
CERTAIN_VARIANCE = 1e-18


@dataclass(frozen=True)
class MetricSeries:
    """A metric's values: (cells, commits, blocks), NaN where there is none.

    Attributes:
        places: of the cells.
        values: logarithms.
        scatter: of the batches within runs.
        samples: (cells, commits) logarithms of their numbers; 0 where they do not matter or are not known.
        paired: whether a block has the same seed at all commits.
        speed: (commits,) logarithms of the yardstick; NaN where it is not known.
    """

    metric: Metric
    places: tuple[Place, ...]
    values: FloatArray
    scatter: FloatArray
    samples: FloatArray
    paired: bool
    speed: FloatArray

    @cached_property
    def groups(self) -> list[str]:
        """Their names, each once."""
        return sorted({place.group for place in self.places})

    @cached_property
    def group_membership(self) -> BoolArray:
        """(groups, cells)."""
        return np.array([[place.group == name for place in self.places] for name in self.groups], dtype=bool)

    def units(self, level: str) -> tuple[BoolArray, list[Place]]:
        """What the series of a level, "cell" or "group", are made of, (units, cells), and what they are."""
        if level == "cell":
            return np.eye(len(self.places), dtype=bool), list(self.places)
        return self.group_membership, [
            self.places[int(row.argmax())]._replace(model=effects.ALL) for row in self.group_membership
        ]


@dataclass(frozen=True)
class CommitMeans:
    """Commits' means of each cell, (cells, commits), and how well they are known.

    Attributes:
        values: logarithms; 0 where there is none.
        weights: 1 / variance; 0 where there is no value.
        freedom: (cells,) degrees of freedom behind the variances.
        certain: (cells,) whose numbers have no noise.
        common: (groups,) variance between commits that the cells of a group share.
    """

    values: FloatArray
    weights: FloatArray
    freedom: FloatArray
    certain: BoolArray
    common: FloatArray


def collect_series(metric: Metric, chain: Sequence[Runs]) -> MetricSeries:
    """What the runs of commits, oldest first, say of a metric that is judged."""
    if metric.judged == "cost":
        return _collect_costs(metric, chain)
    return _collect_errors(metric, chain)


def estimate_commit_means(series: MetricSeries, segment_index: FloatArray) -> CommitMeans:
    """The means of commits, with `segment_index`, (cells, commits): how many changes are known up to each commit."""
    if series.metric.judged == "cost":
        return _estimate_cost_means(series, segment_index)
    return _estimate_error_means(series, segment_index)


def _collect_costs(metric: Metric, chain: Sequence[Runs]) -> MetricSeries:
    """Of fixed numbers of samples, of long enough runs, on the newest commit's machine at its usual speed."""
    machines = filter(None, map(measurements.most_common_machine, reversed(chain)))
    machine = next(machines, None)
    calm = [measurements.exclude_slow_runs(measurements.select_machine(runs, machine)) for runs in chain]
    timed = [{place: runs_with_metric(cell_runs, metric) for place, cell_runs in runs.items()} for runs in calm]
    fit = [
        place
        for place in _recurring_places(timed)
        if not measurements.timing_exclusion_reason(
            [run for runs in timed for run in runs.get(place, {}).values()], metric
        )
    ]
    enough_seeds = [
        {place: cell_runs for place in fit if len(cell_runs := runs.get(place, {})) >= metric.seeds} for runs in timed
    ]
    seeds = sorted({seed for runs in enough_seeds for cell_runs in runs.values() for seed in cell_runs})
    paired = len(seeds) <= MAX_SEEDS
    values, scatter = measurements.stack_blocks(metric, fit, enough_seeds, seeds if paired else ())
    speed = np.log([measurements.median_yardstick(runs) for runs in calm])
    return MetricSeries(metric, tuple(fit), values, scatter, np.zeros(values.shape[:2]), paired, speed)


def _collect_errors(metric: Metric, chain: Sequence[Runs]) -> MetricSeries:
    """Numbers that are equal to those before are no news, however often they are measured: they are left out."""
    places = _recurring_places(
        [{place: runs_with_metric(cell_runs, metric) for place, cell_runs in runs.items()} for runs in chain]
    )
    news: list[dict[Place, dict[int, Run]]] = [{} for _ in chain]
    samples = np.zeros((len(places), len(chain)))
    for i, place in enumerate(places):
        current: dict[int, Run] = {}
        for turn, runs in enumerate(chain):
            cell_runs = runs_with_metric(runs.get(place, {}), metric)
            common = cell_runs.keys() & current.keys()
            if common and all(is_metric_equal(cell_runs[seed], current[seed], metric) for seed in common):
                # Same numbers as at the commit before: these draws belong to one block.
                current |= cell_runs
            elif cell_runs:
                current = news[turn][place] = cell_runs
        for turn, draws in enumerate(news):
            if place in draws:
                samples[i, turn] = np.nan_to_num(np.mean([run.samples for run in draws[place].values()]))
    values, scatter = measurements.stack_blocks(metric, places, news)
    return MetricSeries(metric, tuple(places), values, scatter, samples, False, np.full(len(chain), math.nan))


def _recurring_places(chain: Sequence[Runs]) -> list[Place]:
    """Of which there is something at two commits or more."""
    count = Counter(place for runs in chain for place, cell_runs in runs.items() if cell_runs)
    return sorted(place for place, commits in count.items() if commits > 1)


def _estimate_cost_means(series: MetricSeries, segment_index: FloatArray) -> CommitMeans:
    blocks = Blocks(series.values, series.scatter, series.paired, segment_index)
    within = noise.within_commit_variance(blocks)
    between = noise.between_commit_variance("cell", blocks, within.variance)
    counts = np.isfinite(series.values).sum(axis=2)
    usual = float(np.median(counts[counts > 0].tolist() or [1.0]))
    blocks_without_seeds = series.values
    if series.paired:
        blocks_without_seeds = series.values - noise.split_seed_effects(series.values)[0]
    values = finite_mean(blocks_without_seeds, 2)
    variance = within.variance[:, None] / np.maximum(counts, 1) + between.variance[:, None]
    variance = variance + (noise.DISTURBANCE * _excess_scatter(series.scatter)) ** 2 / 2
    values, variance = _correct_machine_speed(series, values, variance, segment_index)
    is_finite = np.isfinite(values)
    return CommitMeans(
        values=np.where(is_finite, values, 0.0),
        weights=np.where(is_finite, 1 / variance, 0.0),
        freedom=noise.satterthwaite_variance(within, usual, between).freedom,
        certain=np.zeros(len(values), dtype=bool),
        common=_estimate_group_variance(series, segment_index, 1 / variance.mean(axis=1)),
    )


def _estimate_error_means(series: MetricSeries, segment_index: FloatArray) -> CommitMeans:
    """Errors are independent draws, of which only those that are news are there."""
    replicate_noise = noise.replicate_variance(series.values, paired=False)
    neighbour_noise = _estimate_variance_from_neighbours(series.values, segment_index)
    without_replicates = replicate_noise.freedom == 0
    moderated_noise = noise.moderate_variances(
        VarianceEstimate(
            np.where(without_replicates, neighbour_noise.variance, replicate_noise.variance),
            np.where(without_replicates, neighbour_noise.freedom, replicate_noise.freedom),
        )
    )
    certain = (replicate_noise.freedom > 0) & (replicate_noise.variance <= ROUNDING_ERROR**2)
    variance = np.where(certain, CERTAIN_VARIANCE, moderated_noise.variance)
    counts = np.isfinite(series.values).sum(axis=2)
    fit = certain
    if series.metric.judged != "certain":
        fit = certain | (moderated_noise.freedom > 0) & (moderated_noise.variance > 0)
    measured = (counts > 0) & fit[:, None]
    return CommitMeans(
        values=np.where(measured, finite_mean(series.values, 2), 0.0),
        weights=np.where(measured, counts / np.where(variance > 0, variance, 1.0)[:, None], 0.0),
        freedom=np.where(certain, noise.MAX_FREEDOM, np.maximum(moderated_noise.freedom, 1.0)),
        certain=certain,
        common=np.zeros(len(series.groups)),
    )


def _excess_scatter(scatter: FloatArray) -> FloatArray:
    """By how much more than usual the batches of a commit scatter."""
    mean_scatter = finite_mean(scatter, 2)
    with warnings.catch_warnings():
        # Cells without a run give NaN, as intended, and a warning.
        warnings.simplefilter("ignore", RuntimeWarning)
        usual = np.nanmedian(mean_scatter, axis=1, keepdims=True)
    return np.maximum(np.nan_to_num(mean_scatter - usual), 0.0)


def _correct_machine_speed(
    series: MetricSeries, values: FloatArray, variance: FloatArray, segment_index: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Commits at which the machine was faster or slower are levelled by the median group, those at which all cells
    scatter have larger errors, as in the gate."""
    values, variance = values.copy(), variance.copy()
    rest = values - _segment_means(values, 1 / variance, segment_index)
    speed = series.speed
    if np.isfinite(speed).any():
        speed = speed - np.nanmedian(speed)
    for turn in range(values.shape[1]):
        is_finite = np.isfinite(rest[:, turn])
        if abs(speed[turn]) > effects.MAX_DRIFT:
            groups = [
                float(np.mean(rest[membership & is_finite, turn]))
                for membership in series.group_membership
                if (membership & is_finite).any()
            ]
            values[:, turn] -= np.median(groups) if len(groups) >= effects.MIN_GROUPS else math.nan
        error = np.sqrt(variance[is_finite, turn])
        variance[:, turn] *= significance.error_inflation(rest[is_finite, turn], error) ** 2
    return values, variance


def _estimate_group_variance(series: MetricSeries, segment_index: FloatArray, precision: FloatArray) -> FloatArray:
    """B of each group, from what its mean varies by."""
    counts = np.isfinite(series.values).sum(axis=2)
    centred = series.values - _segment_means(finite_mean(series.values, 2), counts, segment_index)[:, :, None]
    blocks = Blocks(centred, series.scatter, series.paired, np.zeros((1, len(series.speed))))
    grouped = blocks.pool(series.group_membership * precision)
    return noise.between_commit_variance("group", grouped, noise.within_commit_variance(grouped).variance).variance


def _segment_means(values: FloatArray, weights: FloatArray, segment_index: FloatArray) -> FloatArray:
    """The weighted mean of each cell between its changes, (cells, commits); NaN where there is no value."""
    means = np.full(values.shape, math.nan)
    for segment in range(int(segment_index.max(initial=0)) + 1):
        in_segment = (segment_index == segment) & np.isfinite(values) & (weights > 0)
        total = np.where(in_segment, weights, 0.0).sum(axis=1, keepdims=True)
        weighted = np.where(in_segment, weights * values, 0.0).sum(axis=1, keepdims=True)
        means = np.where(in_segment, weighted / np.where(total > 0, total, 1.0), means)
    return means


def _estimate_variance_from_neighbours(values: FloatArray, segment_index: FloatArray) -> VarianceEstimate:
    """Variance of a draw, from what neighbouring commits between changes differ by."""
    means, counts = finite_mean(values, 2), np.isfinite(values).sum(axis=2)
    variance, freedom = np.zeros(len(values)), np.zeros(len(values))
    for i, (unit_means, count, unit_segments) in enumerate(zip(means, counts, segment_index, strict=True)):
        (measured,) = np.nonzero(count)
        unchanged = np.diff(unit_segments[measured]) == 0
        earlier, later = measured[:-1][unchanged], measured[1:][unchanged]
        if len(earlier):
            difference = unit_means[later] - unit_means[earlier]
            variance[i] = float(np.mean(difference**2 / (1 / count[earlier] + 1 / count[later])))
            freedom[i] = len(earlier) * noise.FREEDOM_OF_A_PAIR
    return VarianceEstimate(variance, freedom)
