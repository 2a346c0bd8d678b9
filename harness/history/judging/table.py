"""Which costs can be compared: of a fixed number of samples, of long enough runs, of one machine at its usual speed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spinbench.history.axes import Metric
from spinbench.history.judging import evidence
from spinbench.history.judging.evidence import Place, Run, Runs, Sides
from spinbench.history.judging.pooling import Blocks
from spinbench.history.judging.variance import FloatArray

SLOW = 1.15
"""Of a fixed loop next to a run, compared with all runs of its sitting: the machine had less to give, for a while."""


@dataclass(frozen=True)
class Table:
    """Logarithms of a cost.

    Attributes:
        places: cells, of which base and head have a common seed, or seeds of which none is common.
        blocks: their costs.
        left_out: why other cells are not judged.
        slow: runs of base and head that are left out because the machine was slow for a while.
        drift: log ratio of the yardsticks, head to base; 0 where one is unknown.
    """

    metric: Metric
    places: tuple[Place, ...]
    blocks: Blocks
    left_out: dict[Place, str]
    slow: int
    drift: float

    @property
    def groups(self) -> list[str]:
        """Of each cell."""
        return [place.group for place in self.places]


def table(metric: Metric, sides: Sides) -> Table:
    """Collect what can be compared."""
    wanted = evidence.usual_machine(sides.head)
    commits = [evidence.on_machine(runs, wanted) for runs in (*sides.past, sides.base, sides.head)]
    reasons = {place: _reason(metric, sides, *(runs.get(place, {}) for runs in commits[-2:])) for place in sides.common}
    fit = [place for place, reason in reasons.items() if not reason]
    timed = [_timed(runs, fit, metric) for runs in commits]
    calm = [steady(runs) for runs in timed]
    common = _seeds(timed[-2]) & _seeds(timed[-1])
    for place in fit:
        base, head = (runs[place].keys() for runs in calm[-2:])
        if not (base & head if common else base and head):
            reasons[place] = "the machine was slow for a while whenever they ran"
    fit = [place for place in fit if not reasons[place]]
    seeds = [sorted(common or _seeds(runs)) for runs in calm]
    kept, changed = _neighbours([bool(_seeds(runs) & set(own)) for runs, own in zip(calm, seeds, strict=True)], sides)
    values, scatter = _filled(metric, fit, [(calm[turn], seeds[turn]) for turn in kept])
    return Table(
        metric=metric,
        places=tuple(fit),
        blocks=Blocks(values, scatter, paired=bool(common), changed=changed),
        left_out={place: reason for place, reason in reasons.items() if reason},
        slow=sum(_count(runs) for runs in timed[-2:]) - sum(_count(runs) for runs in calm[-2:]),
        drift=_drift(*commits[-2:]),
    )


def _reason(metric: Metric, sides: Sides, base: Mapping[int, Run], head: Mapping[int, Run]) -> str:
    """Why a cell is not judged; empty where it is."""
    if not base or not head:
        one, other = (evidence.usual_machine(runs) for runs in (sides.base, sides.head))
        how = evidence.differing(one, other) if one and other else "one is unknown"
        return f"base and head were measured on different machines ({how})"
    good = [[one for one in side.values() if not one.failed] for side in (base, head)]
    reason = evidence.unfit([one for side in good for one in side], metric)
    least = min(sum(metric.name in one.values for one in side) for side in good)
    if not reason and least < metric.seeds:
        return f"{metric.seeds} seeds are needed" if least else evidence.NO_TIMES
    return reason


def _timed(runs: Runs, places: Sequence[Place], metric: Metric) -> Runs:
    """The runs of these places that have the metric."""
    return {
        place: {seed: one for seed, one in runs.get(place, {}).items() if metric.name in one.values} for place in places
    }


def _seeds(runs: Runs) -> set[int]:
    return {seed for own in runs.values() for seed in own}


def _neighbours(measured: Sequence[bool], sides: Sides) -> tuple[list[int], tuple[bool, ...]]:
    """The commits with blocks, and for each pair up to base whether its cost changed; the others are passed over."""
    kept: list[int] = []
    flags: list[bool] = []
    pending = False
    for turn, known in enumerate(measured[:-1]):
        pending = pending or (turn > 0 and sides.changed[turn - 1])
        if known:
            flags += [pending] if kept else []
            kept.append(turn)
            pending = False
    return [*kept, len(measured) - 1], tuple(flags)


def _filled(
    metric: Metric, places: Sequence[Place], commits: Sequence[tuple[Runs, Sequence[int]]]
) -> tuple[FloatArray, FloatArray]:
    """Values and scatter of cells, commits and blocks."""
    width = max(len(seeds) for _, seeds in commits)
    values = np.full((len(places), len(commits), width), math.nan)
    scatter = np.full(values.shape, math.nan)
    for i, place in enumerate(places):
        for turn, (runs, seeds) in enumerate(commits):
            for block, seed in enumerate(seeds):
                if one := runs[place].get(seed):
                    values[i, turn, block] = one.values[metric.name]
                    scatter[i, turn, block] = one.scatter.get(metric.name, 0.0)
    return values, scatter


def steady(runs: Runs) -> Runs:
    """Those next to which the machine had its usual speed."""
    usual = yardstick(runs)
    return {
        place: {seed: one for seed, one in own.items() if not max(one.yardstick, default=0.0) > SLOW * usual}
        for place, own in runs.items()
    }


def yardstick(runs: Runs) -> float:
    """The usual seconds of the fixed loop; NaN where they are not known."""
    known = [seconds for own in runs.values() for one in own.values() for seconds in one.yardstick]
    return float(np.median(known)) if known else math.nan


def _count(runs: Runs) -> int:
    return sum(map(len, runs.values()))


def _drift(base: Runs, head: Runs) -> float:
    drift = math.log(yardstick(head) / yardstick(base))
    return drift if math.isfinite(drift) else 0.0
