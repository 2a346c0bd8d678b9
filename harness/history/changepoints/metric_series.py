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
from spinbench.history.regression_test import measurements, noise, significance
from spinbench.history.regression_test.effects import ALL, MAX_DRIFT, MIN_GROUPS
from spinbench.history.regression_test.measurements import Place, Run, Runs, equal, having
from spinbench.history.regression_test.noise import NOTHING, Blocks, BoolArray, FloatArray, Noise, mean

MAX_SEEDS = 16
"""In a history, up to which seeds are told apart in costs; beyond it they count as independent."""
CERTAIN = 1e-18
"""Variance of numbers that have no noise."""


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
    def member(self) -> BoolArray:
        """(groups, cells)."""
        return np.array([[place.group == name for place in self.places] for name in self.groups], dtype=bool)

    def units(self, level: str) -> tuple[BoolArray, list[Place]]:
        """What the series of a level, "cell" or "group", are made of, (units, cells), and what they are."""
        if level == "cell":
            return np.eye(len(self.places), dtype=bool), list(self.places)
        return self.member, [self.places[int(row.argmax())]._replace(model=ALL) for row in self.member]


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


def collect(metric: Metric, chain: Sequence[Runs]) -> MetricSeries:
    """What the runs of commits, oldest first, say of a metric that is judged."""
    return _costs(metric, chain) if metric.judged == "cost" else _errors(metric, chain)


def weigh(series: MetricSeries, pieces: FloatArray) -> CommitMeans:
    """The means of commits, with `pieces`, (cells, commits): how many changes are known up to each commit."""
    return _weigh_costs(series, pieces) if series.metric.judged == "cost" else _weigh_errors(series, pieces)


def _costs(metric: Metric, chain: Sequence[Runs]) -> MetricSeries:
    """Of fixed numbers of samples, of long enough runs, on the newest commit's machine at its usual speed."""
    machine = next((found for runs in reversed(chain) if (found := measurements.usual_machine(runs))), None)
    calm = [measurements.steady(measurements.on_machine(runs, machine)) for runs in chain]
    timed = [{place: having(own, metric) for place, own in runs.items()} for runs in calm]
    fit = [
        place
        for place in _recurring(timed)
        if not measurements.unfit([one for runs in timed for one in runs.get(place, {}).values()], metric)
    ]
    known = [{place: own for place in fit if len(own := runs.get(place, {})) >= metric.seeds} for runs in timed]
    seeds = sorted({seed for runs in known for own in runs.values() for seed in own})
    paired = len(seeds) <= MAX_SEEDS
    values, scatter = measurements.in_blocks(metric, fit, known, seeds if paired else None)
    speed = np.log([measurements.yardstick(runs) for runs in calm])
    return MetricSeries(metric, tuple(fit), values, scatter, np.zeros(values.shape[:2]), paired, speed)


def _errors(metric: Metric, chain: Sequence[Runs]) -> MetricSeries:
    """Numbers that are equal to those before are no news, however often they are measured: they are left out."""
    places = _recurring([{place: having(own, metric) for place, own in runs.items()} for runs in chain])
    news: list[dict[Place, dict[int, Run]]] = [{} for _ in chain]
    samples = np.zeros((len(places), len(chain)))
    for i, place in enumerate(places):
        current: dict[int, Run] = {}
        for turn, runs in enumerate(chain):
            own = having(runs.get(place, {}), metric)
            common = own.keys() & current.keys()
            if common and all(equal(own[seed], current[seed], metric) for seed in common):
                current |= own  # the draws of the commit at which the numbers became what they are
            elif own:
                current = news[turn][place] = own
        for turn, draws in enumerate(news):
            if place in draws:
                samples[i, turn] = np.nan_to_num(np.mean([one.samples for one in draws[place].values()]))
    values, scatter = measurements.in_blocks(metric, places, news, None)
    return MetricSeries(metric, tuple(places), values, scatter, samples, False, np.full(len(chain), math.nan))


def _recurring(chain: Sequence[Runs]) -> list[Place]:
    """Of which there is something at two commits or more."""
    count = Counter(place for runs in chain for place, own in runs.items() if own)
    return sorted(place for place, commits in count.items() if commits > 1)


def _weigh_costs(series: MetricSeries, pieces: FloatArray) -> CommitMeans:
    blocks = Blocks(series.values, series.scatter, series.paired, pieces)
    within = noise.within_commits(blocks)
    between = noise.between_commits("cell", blocks, within.variance)
    counts = np.isfinite(series.values).sum(axis=2)
    usual = float(np.median(counts[counts > 0])) if counts.any() else 1.0
    values = mean(series.values - noise.split_seeds(series.values)[0] if series.paired else series.values, 2)
    variance = within.variance[:, None] / np.maximum(counts, 1) + between.variance[:, None]
    variance = variance + (noise.DISTURBANCE * _disturbance(series.scatter)) ** 2 / 2
    values, variance = _levelled(series, values, variance, pieces)
    known = np.isfinite(values)
    return CommitMeans(
        values=np.where(known, values, 0.0),
        weights=np.where(known, 1 / variance, 0.0),
        freedom=noise.satterthwaite(within, usual, between).freedom,
        certain=np.zeros(len(values), dtype=bool),
        common=_between_groups(series, pieces, 1 / variance.mean(axis=1)),
    )


def _weigh_errors(series: MetricSeries, pieces: FloatArray) -> CommitMeans:
    """Errors are independent draws, of which only those that are news are there."""
    own = noise.replicates(series.values, paired=False)
    neighbours = _neighbours(series.values, pieces)
    alone = own.freedom == 0
    known = noise.moderated(
        Noise(np.where(alone, neighbours.variance, own.variance), np.where(alone, neighbours.freedom, own.freedom))
    )
    certain = (own.freedom > 0) & (own.variance <= NOTHING**2)
    variance = np.where(certain, CERTAIN, known.variance)
    counts = np.isfinite(series.values).sum(axis=2)
    fit = certain if series.metric.judged == "certain" else certain | (known.freedom > 0) & (known.variance > 0)
    measured = (counts > 0) & fit[:, None]
    return CommitMeans(
        values=np.where(measured, mean(series.values, 2), 0.0),
        weights=np.where(measured, counts / np.where(variance > 0, variance, 1.0)[:, None], 0.0),
        freedom=np.where(certain, noise.MAX_FREEDOM, np.maximum(known.freedom, 1.0)),
        certain=certain,
        common=np.zeros(len(series.groups)),
    )


def _disturbance(scatter: FloatArray) -> FloatArray:
    """By how much more than usual the batches of a commit scatter."""
    own = mean(scatter, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of cells without a run: NaN is what is wanted
        usual = np.nanmedian(own, axis=1, keepdims=True)
    return np.maximum(np.nan_to_num(own - usual), 0.0)


def _levelled(
    series: MetricSeries, values: FloatArray, variance: FloatArray, pieces: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Commits at which the machine was faster or slower are levelled by the median group, those at which all cells
    scatter have larger errors, as in the gate."""
    values, variance = values.copy(), variance.copy()
    rest = values - _piece_means(values, 1 / variance, pieces)
    speed = series.speed - np.nanmedian(series.speed) if np.isfinite(series.speed).any() else series.speed
    for turn in range(values.shape[1]):
        known = np.isfinite(rest[:, turn])
        if abs(speed[turn]) > MAX_DRIFT:
            groups = [float(np.mean(rest[own & known, turn])) for own in series.member if (own & known).any()]
            values[:, turn] -= np.median(groups) if len(groups) >= MIN_GROUPS else math.nan
        variance[:, turn] *= significance.inflation(rest[known, turn], np.sqrt(variance[known, turn])) ** 2
    return values, variance


def _between_groups(series: MetricSeries, pieces: FloatArray, precision: FloatArray) -> FloatArray:
    """B of each group, from what its mean varies by."""
    counts = np.isfinite(series.values).sum(axis=2)
    centred = series.values - _piece_means(mean(series.values, 2), counts, pieces)[:, :, None]
    blocks = Blocks(centred, series.scatter, series.paired, np.zeros((1, len(series.speed))))
    grouped = blocks.pooled(series.member * precision)
    return noise.between_commits("group", grouped, noise.within_commits(grouped).variance).variance


def _piece_means(values: FloatArray, weights: FloatArray, pieces: FloatArray) -> FloatArray:
    """The weighted mean of each cell between its changes, (cells, commits); NaN where there is no value."""
    found = np.full(values.shape, math.nan)
    for turn in range(int(pieces.max(initial=0)) + 1):
        own = (pieces == turn) & np.isfinite(values) & (weights > 0)
        total = np.where(own, weights, 0.0).sum(axis=1, keepdims=True)
        centre = np.where(own, weights * values, 0.0).sum(axis=1, keepdims=True) / np.where(total > 0, total, 1.0)
        found = np.where(own, centre, found)
    return found


def _neighbours(values: FloatArray, pieces: FloatArray) -> Noise:
    """Variance of a draw, from what neighbouring commits between changes differ by."""
    means, counts = mean(values, 2), np.isfinite(values).sum(axis=2)
    variance, freedom = np.zeros(len(values)), np.zeros(len(values))
    for i, (own, count, piece) in enumerate(zip(means, counts, pieces, strict=True)):
        (known,) = np.nonzero(count)
        unchanged = np.diff(piece[known]) == 0
        one, other = known[:-1][unchanged], known[1:][unchanged]
        if len(one):
            variance[i] = float(np.mean((own[other] - own[one]) ** 2 / (1 / count[one] + 1 / count[other])))
            freedom[i] = len(one) * noise.FREEDOM_OF_A_PAIR
    return Noise(variance, freedom)
