"""Where a history's series change their level: cut where a difference is certain among all that were looked at, learn
the noise anew, and look again.

Each round finds the most striking cut of each segment, corrects its p-value for the cuts that it was chosen from
(Bonferroni) and for the segments of all series (Benjamini and Hochberg), with the gate's own test and margin. What is
found parts its series in two segments. Rounds end when nothing is found: where nothing ever changed, there is one, and
the chance of any finding in it is the metric's alpha.

Cuts are looked for in all windows of a fixed net, that of seeded binary segmentation (Kovács, Bühlmann, Li and Munk,
"Seeded binary segmentation: a general methodology for fast and optimal changepoint detection", Biometrika 110, 2023):
windows of halving lengths that overlap by half, so that a spell between two changes is seen, too.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from spinbench.history.axes import Metric
from spinbench.history.changepoints import metric_series
from spinbench.history.regression_test import measurements, significance
from spinbench.history.regression_test.effects import SHARES
from spinbench.history.regression_test.noise import MAX_FREEDOM, BoolArray, FloatArray, smaller_change

LEVELS = ("group", "cell")
# Limit of the rounds, which normally end when no new change is found.
MAX_ROUNDS = 50

Indices = npt.NDArray[np.intp]
# (unit, first commit, commit after the last).
Segment = tuple[int, int, int]


@dataclass(frozen=True)
class Step:
    """A change of a series' level.

    Attributes:
        metric: which.
        level: "cell" or "group", cells that share method and backend.
        place: which; a group has "all" as its model.
        at: index of the first commit after the change.
        ratio: after over before, between the neighbouring changes; above 1 is worse.
        low, high: of its 95 % interval.
        p: corrected.
        values: one a commit: the series' own, of a group relative to its mean; NaN where there is none.
    """

    metric: Metric
    level: str
    place: measurements.Place
    at: int
    ratio: float
    low: float
    high: float
    p: float
    values: tuple[float, ...]


@dataclass(frozen=True)
class Rows:
    """Stretches of series, (rows, commits) where no other shape is given.

    Attributes:
        values: logarithms; 0 where there is none.
        weights: 1 / variance; 0 where there is no value, or the commit lies outside the segment.
        lengths: by how much fewer samples raise a value, as logarithms; a difference counts only as far as it is there
            with and without them.
        pool: (units, rows) of 0 and 1, sparse, the rows that are cut together and of which the mean difference counts.
        common: (units,) variance between commits that the rows of a unit share.
    """

    values: FloatArray
    weights: FloatArray
    lengths: FloatArray
    pool: csr_array
    common: FloatArray


@dataclass(frozen=True)
class Cuts:
    """The most striking cut of each unit.

    Attributes:
        at: index of the first commit after it; -1 where there is nothing to cut.
        difference: after less before; variance: its own.
        tries: among how many cuts it was chosen.
    """

    at: Indices
    difference: FloatArray
    variance: FloatArray
    tries: FloatArray


def find_steps(metric: Metric, chain: Sequence[measurements.Runs]) -> tuple[metric_series.MetricSeries, list[Step]]:
    """All changes of a metric that is judged, cells and groups, the most certain ones first.

    Args:
        metric: cost or accuracy.
        chain: what was measured of commits, oldest first.
    """
    series = metric_series.collect_series(metric, chain)
    steps = [step for level in LEVELS if series.places for step in _find_level_steps(series, level)]
    return series, sorted(steps, key=lambda found_step: (found_step.p, found_step.at, found_step.place))


def _find_level_steps(series: metric_series.MetricSeries, level: str) -> list[Step]:
    membership, places = series.units(level)
    margin = math.log1p(series.metric.margin)
    alpha = series.metric.alpha * SHARES[series.metric.judged][level]
    # For each unit: {commit: p-value}.
    changes: list[dict[int, float]] = [{} for _ in places]
    for _ in range(MAX_ROUNDS):
        segments = list(_segments(changes, len(series.speed)))
        changepoints = [(unit, at) for unit, unit_changes in enumerate(changes) for at in unit_changes]
        means = metric_series.estimate_commit_means(series, _segment_indices(series, membership, changepoints))
        candidate_cuts = find_most_significant_cuts(_build_rows(series, level, membership, means, segments)[0], margin)
        # a difference across the tested cut must not enter the noise
        candidates = [(unit, at) for (unit, _, _), at in zip(segments, candidate_cuts.at, strict=True) if at >= 0]
        means = metric_series.estimate_commit_means(
            series, _segment_indices(series, membership, [*changepoints, *candidates])
        )
        rows, freedom = _build_rows(series, level, membership, means, segments)
        cuts = find_most_significant_cuts(rows, margin)
        effects = significance.Level(
            level, cuts.difference, np.sqrt(cuts.variance), freedom, np.empty((len(freedom), 0))
        )
        decided = significance.decide_verdicts(effects, margin, alpha, tries=cuts.tries)
        p_values = np.minimum(decided.worse, decided.better)
        new = [
            turn
            for turn, verdict in enumerate(decided.verdicts)
            if verdict in ("worse", "better") and cuts.at[turn] >= 0
        ]
        for turn in new:
            changes[segments[turn][0]][int(cuts.at[turn])] = float(p_values[turn])
        if not new:
            break
    return [
        step
        for unit_changes, place, changed in zip(membership, places, changes, strict=True)
        for step in _build_steps(series.metric, level, place, means, unit_changes, changed)
    ]


def search_windows(length: int) -> Iterator[tuple[int, int]]:
    """First commit and the one after the last, of all windows."""
    for halvings in range(max(math.ceil(math.log2(max(length, 2))), 1)):
        size, count = length / 2**halvings, 2 ** (halvings + 1) - 1
        step = (length - size) / max(count - 1, 1)
        spans = {(math.floor(i * step), min(math.ceil(i * step + size), length)) for i in range(count)}
        yield from sorted(span for span in spans if span[1] - span[0] > 1)


def find_most_significant_cuts(rows: Rows, margin: float) -> Cuts:
    """Of all cuts of all windows the one that lies the most standard errors beyond the margin."""
    length = rows.values.shape[1]
    units = rows.pool.shape[0]
    sums = [_cumulative_sums(part) for part in (rows.weights, rows.weights * rows.values, rows.weights * rows.lengths)]
    is_measured = rows.pool @ (rows.weights > 0) > 0
    counts = _cumulative_sums(is_measured.astype(np.float64))
    best = Cuts(np.full(units, -1), np.zeros(units), np.ones(units), np.ones(units))
    best_score, n_windows = np.full(units, -1.0), np.zeros((units, length))
    for first, end in search_windows(length):
        cuts = np.arange(first + 1, end)
        difference, variance = _cut_differences(sums, first, cuts, end)
        is_finite = np.isfinite(variance)
        precision = rows.pool @ np.where(is_finite, 1 / variance, 0.0)
        before, after = counts[:, cuts] - counts[:, [first]], counts[:, [end]] - counts[:, cuts]
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = rows.pool @ np.where(is_finite, difference / variance, 0.0) / precision
            spread = 1 / precision + rows.common[:, None] * (1 / before + 1 / after)
            scores = np.maximum(np.abs(mean) - margin, 0.0) / np.sqrt(spread)
        valid: BoolArray = (precision > 0) & is_measured[:, cuts]
        n_windows[:, cuts] += valid
        scores = np.where(valid, scores, -1.0)
        place = scores.argmax(axis=1)
        unit = np.arange(units)
        better = scores[unit, place] > best_score
        best_score = np.where(better, scores[unit, place], best_score)
        best.at[better] = cuts[place[better]]
        best.difference[better] = mean[better, place[better]]
        best.variance[better] = spread[better, place[better]]
    return Cuts(best.at, best.difference, best.variance, _count_distinct_cuts(n_windows, counts))


def _segments(changes: Sequence[Mapping[int, float]], length: int) -> Iterator[Segment]:
    """Of all units, between their changes."""
    for unit, unit_changes in enumerate(changes):
        for first, end in itertools.pairwise([0, *sorted(unit_changes), length]):
            yield unit, first, end


def _segment_indices(
    series: metric_series.MetricSeries, membership: BoolArray, changes: Iterable[tuple[int, int]]
) -> FloatArray:
    """The number of changes of each cell, by its own series or its group's, up to each commit."""
    segment_index = np.zeros(series.values.shape[:2])
    for unit, at in changes:
        segment_index[membership[unit], at:] += 1
    return segment_index


def _build_rows(
    series: metric_series.MetricSeries,
    level: str,
    membership: BoolArray,
    means: metric_series.CommitMeans,
    segments: Sequence[Segment],
) -> tuple[Rows, FloatArray]:
    """The cells in each segment, and the degrees of freedom of its errors."""
    common = np.zeros(len(segments))
    counted = membership
    if level == "group":
        common = np.array([means.common[unit] for unit, _, _ in segments])
        counted = membership & ~means.certain
    owner, cells = np.nonzero(counted[[unit for unit, _, _ in segments]])
    commits = np.arange(means.values.shape[1])
    spans = np.array([(first, end) for _, first, end in segments])[owner]
    weights = means.weights[cells] * ((spans[:, :1] <= commits) & (commits < spans[:, 1:]))
    pool = csr_array((np.ones(len(cells)), (owner, np.arange(len(cells)))), shape=(len(segments), len(cells)))
    total = weights.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = (pool @ total) ** 2 / (pool @ (total**2 / means.freedom[cells]))
    rows = Rows(
        values=means.values[cells],
        weights=weights,
        lengths=series.metric.falls * series.samples[cells],
        pool=pool,
        common=common,
    )
    return rows, np.clip(np.nan_to_num(freedom), 1.0, MAX_FREEDOM)


def _build_steps(
    metric: Metric,
    level: str,
    place: measurements.Place,
    means: metric_series.CommitMeans,
    members: BoolArray,
    changes: Mapping[int, float],
) -> Iterator[Step]:
    """The steps of one series, each between its neighbours."""
    from scipy.special import stdtrit

    values, weights = means.values[members], means.weights[members]
    quantile = float(stdtrit(float(means.freedom[members].mean()), 0.975))
    relative_values = _relative_values(values, weights)
    ends = [0, *sorted(changes), values.shape[1]]
    for first, at, end in zip(ends[:-2], ends[1:-1], ends[2:], strict=True):
        (before, old), (after, new) = (
            (weights[:, span].sum(axis=1), (weights[:, span] * values[:, span]).sum(axis=1))
            for span in (slice(first, at), slice(at, end))
        )
        both = (before > 0) & (after > 0)
        difference = new[both] / after[both] - old[both] / before[both]
        precision = 1 / (1 / before[both] + 1 / after[both])
        mean = float(precision @ difference / precision.sum())
        half = quantile / math.sqrt(precision.sum())
        ratio, low, high = (math.exp(log_ratio) for log_ratio in (mean, mean - half, mean + half))
        yield Step(metric, level, place, at, ratio, low, high, changes[at], relative_values)


def _relative_values(values: FloatArray, weights: FloatArray) -> tuple[float, ...]:
    """Of one cell as they are; of several less their means."""
    if len(values) == 1:
        mean = values[0]
    else:
        total = np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
        centred = values - (weights * values).sum(axis=1, keepdims=True) / total
        mean = (weights * centred).sum(axis=0) / np.maximum(weights.sum(axis=0), 1e-300)
    return tuple(np.where((weights > 0).any(axis=0), np.exp(mean), math.nan).tolist())


def _cut_differences(sums: list[FloatArray], first: int, cuts: Indices, end: int) -> tuple[FloatArray, FloatArray]:
    """Of each row's weighted means after and before each cut, and the variances; infinite where one side is empty."""
    before = [running[:, cuts] - running[:, [first]] for running in sums]
    after = [running[:, [end]] - running[:, cuts] for running in sums]
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = 1 / before[0] + 1 / after[0]
        difference, longer = (after[i] / after[0] - before[i] / before[0] for i in (1, 2))
    return smaller_change(difference, difference + longer), variance


def _cumulative_sums(values: FloatArray) -> FloatArray:
    """Sums of what comes before each commit, and of all."""
    sums: FloatArray = np.pad(np.cumsum(values, axis=1, dtype=np.float64), ((0, 0), (1, 0)))
    return sums


def _count_distinct_cuts(n_windows: FloatArray, counts: FloatArray) -> FloatArray:
    """How many windows hold different values, at all cuts: not more than there are segments that end there."""
    before, after = counts[:, :-1], counts[:, -1:] - counts[:, :-1]
    tries: FloatArray = np.maximum(np.minimum(n_windows, before * after).sum(axis=1), 1.0)
    return tries
