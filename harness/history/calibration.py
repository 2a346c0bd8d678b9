"""How often the gate errs and what it finds, on the user's own history: an unchanged program against itself, and
the same with slower cells and greater errors put in. What is drawn, is drawn without looking at the outcome.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from spinbench.errors import HistoryError
from spinbench.history import axes, commits
from spinbench.history.axes import Metric
from spinbench.history.recorder import History
from spinbench.history.regression_test import effects, judge
from spinbench.history.regression_test.effects import Effects
from spinbench.history.regression_test.formatting import aligned
from spinbench.history.regression_test.measurements import Runs, Sides
from spinbench.history.regression_test.noise import FloatArray

SEEDS = (1, 2, 3, 5)
DRAWS = 500
MOST_SITTINGS = 12
SLOWER_GROUP, SLOWER_CELL, WORSE_GROUP = 1.5, 2.0, 2.0
_HEADER = (
    "seeds",
    "past",
    "unchanged: red",
    f"x{SLOWER_GROUP:g} of a group found",
    f"x{SLOWER_CELL:g} of a cell found",
    "other seeds: red",
    f"x{WORSE_GROUP:g} error of a group found",
)


@dataclass(frozen=True)
class Rate:
    """How many of how many distinct draws."""

    count: int
    draws: int

    def __str__(self) -> str:
        return f"{self.count} of {self.draws} ({self.count / self.draws:.0%})" if self.draws else "too few"


@dataclass(frozen=True)
class Row:
    """Rates with k seeds a side.

    Attributes:
        seeds: k.
        past: sittings beside base and head, from which noise is learnt.
        red: of draws in which nothing changed but the day.
        slower_group, slower_cell: found where the steps of a method and backend, or of one cell, were made slower.
        reseeded: red where nothing changed but the seeds.
        worse_group: found where the errors of a method and backend were made greater, with other seeds.
    """

    seeds: int
    past: int
    red: Rate
    slower_group: Rate
    slower_cell: Rate
    reseeded: Rate
    worse_group: Rate

    def cells(self) -> tuple[str, ...]:
        """For a table."""
        rates = (self.red, self.slower_group, self.slower_cell, self.reseeded, self.worse_group)
        return (str(self.seeds), str(self.past), *map(str, rates))


@dataclass(frozen=True)
class Calibration:
    """What was drawn from, and what came out."""

    sentence: str
    rows: tuple[Row, ...]

    def __str__(self) -> str:
        return "\n".join([self.sentence, *aligned([_HEADER, *(row.cells() for row in self.rows)])])


def calibrate(root: Path, machine: str | None = None, *, draws: int = DRAWS) -> Calibration:
    """Try the gate on the newest sittings of a history.

    Pairs of sittings whose cost the gate itself calls changed are left out, unless they are of one commit.

    Raises:
        HistoryError: there are fewer than two sittings.
    """
    history = History.open(root, machine)
    records = [
        (commit, sitting) for commit in history.commits() for sitting in commits.sittings(history, commit) if sitting
    ]
    records.sort(key=lambda one: float(np.median([record.started_at for record in one[1]])))
    records = records[-MOST_SITTINGS:]
    if len(records) < 2:
        raise HistoryError(
            f"the history of {history.machine} holds {len(records)} sitting{'s' * (len(records) != 1)}; measure and "
            "record one commit twice or more: spinbench sweep -m experiment=gate seed=0,1,2,3,4"
        )
    wanted = commits.settings(records[-1][1])
    sittings = [commits.runs(sitting, wanted) for _, sitting in records]
    names = [commit for commit, _ in records]
    pairs = list(unchanged(sittings, names))
    total = len(sittings) * (len(sittings) - 1)
    sentence = (
        f"history of {history.machine}: {len(sittings)} sittings of {len(set(names))} commits, {len(wanted)} cells; "
        f"{total - len(pairs)} of {total} pairs left out, since the gate calls their cost changed"
    )
    return Calibration(sentence, tuple(rows(sittings, pairs, draws)))


def unchanged(sittings: Sequence[Runs], names: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Ordered pairs of sittings of one commit, and of commits whose cost the gate does not call changed."""
    for i, j in itertools.combinations(range(len(sittings)), 2):
        if names[i] == names[j] or not judge.changed(_metrics("cost"), Sides(sittings[i], sittings[j])):
            yield from ((i, j), (j, i))


def rows(sittings: Sequence[Runs], pairs: Sequence[tuple[int, int]], draws: int = DRAWS) -> Iterator[Row]:
    """Rates for each number of seeds that the sittings have, without a past and with all there is."""
    for seeds in SEEDS:
        drawn = [_drawn(*one) for one in _accuracy_draws(sittings, seeds, draws)]
        for past in sorted({0, len(sittings) - 2}):
            timed = [_timed(*one) for one in _cost_draws(sittings, pairs, seeds, past, draws)]
            if timed:
                yield Row(seeds, past, *(_rate(timed, i) for i in range(3)), *(_rate(drawn, i) for i in range(2)))


def _cost_draws(
    sittings: Sequence[Runs], pairs: Sequence[tuple[int, int]], seeds: int, past: int, draws: int
) -> Iterable[tuple[Sides, random.Random]]:
    """Two sittings with equal seeds; the others are the past."""
    rng, known = random.Random(seeds), set(pairs)
    options = [
        (i, j, chosen)
        for i, j in pairs
        for chosen in itertools.combinations(sorted(_seeds(sittings[i]) & _seeds(sittings[j])), seeds)
    ]
    for i, j, chosen in rng.sample(options, min(draws, len(options))):
        others = [turn for turn in range(len(sittings)) if turn not in (i, j)][:past]
        changed = tuple(pair not in known for pair in itertools.pairwise((*others, i)))
        *earlier, base, head = (_of_seeds(sittings[turn], chosen) for turn in (*others, i, j))
        yield Sides(base, head, tuple(earlier), changed), rng


def _accuracy_draws(sittings: Sequence[Runs], seeds: int, draws: int) -> Iterable[tuple[Sides, random.Random]]:
    """One sitting with different seeds on both sides."""
    rng = random.Random(seeds)
    options = sorted({frozenset(_seeds(runs)): turn for turn, runs in enumerate(sittings)}.values())
    fit = [turn for turn in options if len(_seeds(sittings[turn])) >= 2 * seeds > 2]
    seen: set[tuple[int, tuple[int, ...], tuple[int, ...]]] = set()
    for _ in range(draws if fit else 0):
        turn = rng.choice(fit)
        chosen = rng.sample(sorted(_seeds(sittings[turn])), 2 * seeds)
        one, other = tuple(sorted(chosen[:seeds])), tuple(sorted(chosen[seeds:]))
        if (turn, one, other) not in seen:
            seen.add((turn, one, other))
            yield Sides(_of_seeds(sittings[turn], one), _of_seeds(sittings[turn], other)), rng


def _timed(sides: Sides, rng: random.Random) -> tuple[bool, bool, bool]:
    """Whether unchanged cost is called worse; whether a slower group and a slower cell are found."""
    red, group_found, cell_found = False, False, False
    turns = rng.random(), rng.random()
    for metric in _metrics("cost"):
        found = effects.cost(metric, sides)
        if found.levels:
            group, cell = _planted(found.groups, turns, SLOWER_GROUP, SLOWER_CELL)
            red = red or _is_worse(found)
            group_found = group_found or _is_worse(found, group)
            cell_found = cell_found or _is_worse(found, cell)
    return red, group_found, cell_found


def _drawn(sides: Sides, rng: random.Random) -> tuple[bool, bool]:
    """Whether unchanged accuracy is called worse with other seeds; whether a greater error of a group is found."""
    red, group_found = False, False
    turns = rng.random(), rng.random()
    for metric in _metrics("accuracy"):
        found = effects.accuracy(metric, sides)
        noisy = found.levels[0].error > 0 if found.levels else np.zeros(0)
        if noisy.any():
            groups = [group if one else "" for group, one in zip(found.groups, noisy, strict=True)]
            group, _ = _planted(groups, turns, WORSE_GROUP, 1.0)
            red = red or _is_worse(found)
            group_found = group_found or (bool(metric.falls) and _is_worse(found, group))
    return red, group_found


def _planted(
    groups: Sequence[str], turns: tuple[float, float], of_group: float, of_cell: float
) -> tuple[FloatArray, FloatArray]:
    """Shifts of the cells: of one group, and of one cell."""
    names = sorted(set(groups) - {""})
    chosen = names[int(turns[0] * len(names))]
    group = np.array([math.log(of_group) if name == chosen else 0.0 for name in groups])
    cell = np.zeros(len(groups))
    cell[int(turns[1] * len(groups))] = math.log(of_cell)
    return group, cell


def _is_worse(found: Effects, shift: FloatArray | None = None) -> bool:
    """Whether any unit is called worse; with a shift of cells, whether one is that is made of these alone."""
    for decision in (found if shift is None else found.shifted(shift)).decisions():
        worse = np.array([said == "worse" for said in decision.verdicts])
        if shift is not None:
            worse &= decision.level.weights[:, shift != 0].sum(axis=1) > 0.999
        if worse.any():
            return True
    return False


def _metrics(kind: str) -> list[Metric]:
    return [metric for metric in axes.metrics() if metric.judged == kind]


def _seeds(runs: Runs) -> set[int]:
    return {seed for seeds in runs.values() for seed in seeds}


def _of_seeds(runs: Runs, seeds: Sequence[int]) -> Runs:
    chosen = {place: {seed: own[seed] for seed in seeds if seed in own} for place, own in runs.items()}
    return {place: own for place, own in chosen.items() if own}


def _rate(outcomes: Sequence[Sequence[bool]], which: int) -> Rate:
    return Rate(sum(one[which] for one in outcomes), len(outcomes))
