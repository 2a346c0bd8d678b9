"""What is known of a metric over the commits of a history: which of its numbers are news, and of which machine."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spinbench.history.axes import Metric
from spinbench.history.judging import evidence
from spinbench.history.judging.accuracy import ROUNDING
from spinbench.history.judging.evidence import Place, Run, Runs
from spinbench.history.judging.table import steady, yardstick
from spinbench.history.judging.variance import BoolArray, FloatArray

MOST_SEEDS = 16
"""In a history, up to which seeds are told apart in costs; beyond it they count as independent."""


@dataclass(frozen=True)
class Course:
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


def cost(metric: Metric, chain: Sequence[Runs]) -> Course:
    """Of fixed numbers of samples, of long enough runs, on the newest commit's machine at its usual speed."""
    machine = next((found for runs in reversed(chain) if (found := evidence.usual_machine(runs))), None)
    calm = [steady(evidence.on_machine(runs, machine)) for runs in chain]
    timed = [{place: _having(own, metric) for place, own in runs.items()} for runs in calm]
    fit = [place for place in _places(timed) if not _unfit(place, timed, metric)]
    known = [{place: own for place in fit if len(own := runs.get(place, {})) >= metric.seeds} for runs in timed]
    seeds = sorted({seed for runs in known for own in runs.values() for seed in own})
    paired = len(seeds) <= MOST_SEEDS
    width = len(seeds) if paired else max(len(own) for runs in known for own in runs.values())
    values = np.full((len(fit), len(chain), width), math.nan)
    scatter = np.full(values.shape, math.nan)
    for i, place in enumerate(fit):
        for turn, runs in enumerate(known):
            for position, (seed, one) in enumerate(sorted(runs.get(place, {}).items())):
                block = seeds.index(seed) if paired else position
                values[i, turn, block] = one.values[metric.name]
                scatter[i, turn, block] = one.scatter.get(metric.name, 0.0)
    speed = np.log([yardstick(runs) for runs in calm])
    return Course(metric, tuple(fit), values, scatter, np.zeros(values.shape[:2]), paired, speed)


def accuracy(metric: Metric, chain: Sequence[Runs]) -> Course:
    """Numbers that are equal to those before are no news, however often they are measured: they are left out."""
    places = _places([{place: _having(own, metric) for place, own in runs.items()} for runs in chain])
    spells = [_spells(place, chain, metric) for place in places]
    width = max((len(draws) for own in spells for draws in own.values()), default=0)
    values = np.full((len(places), len(chain), width), math.nan)
    samples = np.zeros(values.shape[:2])
    for i, own in enumerate(spells):
        for turn, draws in own.items():
            values[i, turn, : len(draws)] = [one.values[metric.name] for one in draws.values()]
            samples[i, turn] = np.nan_to_num(np.mean([one.samples for one in draws.values()]))
    scatter, speed = np.full(values.shape, math.nan), np.full(len(chain), math.nan)
    return Course(metric, tuple(places), values, scatter, samples, paired=False, speed=speed)


def _spells(place: Place, chain: Sequence[Runs], metric: Metric) -> dict[int, dict[int, Run]]:
    """Draws by seed, by the commit at which the numbers became what they are."""
    found: dict[int, dict[int, Run]] = {}
    current: dict[int, Run] = {}
    for turn, runs in enumerate(chain):
        own = _having(runs.get(place, {}), metric)
        common = own.keys() & current.keys()
        if common and all(_equal(own[seed], current[seed], metric) for seed in common):
            current |= own
        elif own:
            current = found[turn] = dict(own)
    return found


def _equal(one: Run, other: Run, metric: Metric) -> bool:
    return abs(one.values[metric.name] - other.values[metric.name]) <= ROUNDING


def _having(own: Mapping[int, Run], metric: Metric) -> dict[int, Run]:
    return {seed: one for seed, one in own.items() if metric.name in one.values}


def _places(chain: Sequence[Runs]) -> list[Place]:
    """Of which there is something at two commits or more."""
    count = Counter(place for runs in chain for place, own in runs.items() if own)
    return sorted(place for place, commits in count.items() if commits > 1)


def _unfit(place: Place, chain: Sequence[Runs], metric: Metric) -> str:
    return evidence.unfit([one for runs in chain for one in runs.get(place, {}).values()], metric)
