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
from typing import Literal, NamedTuple

import numpy as np

from spinbench.errors import HistoryError
from spinbench.foundation.remarks import format_count
from spinbench.history import axes, commits, recorder
from spinbench.history.regression_test import effects, formatting, judge, noise
from spinbench.history.regression_test.measurements import Runs, Sides

# Numbers of seeds per side; a row of the table for each.
SEEDS = (1, 2, 3, 5)
DRAWS = 500
# Largest number of sittings to draw from; the newest are used.
MAX_SITTINGS = 12
# Factors of the simulated changes.
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
        if self.draws:
            return f"{self.count} of {self.draws} ({self.count / self.draws:.0%})"
        return "too few"


class Row(NamedTuple):
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


@dataclass(frozen=True)
class Calibration:
    """What was drawn from, and what came out."""

    sentence: str
    rows: tuple[Row, ...]

    def __str__(self) -> str:
        cells = [list(map(str, row)) for row in self.rows]
        return "\n".join([self.sentence, *formatting.align_columns([_HEADER, *cells])])


def calibrate(root: Path, machine: str | None = None, *, draws: int = DRAWS) -> Calibration:
    """Try the gate on the newest sittings of a history.

    Pairs of sittings whose cost the gate itself calls changed are left out, unless they are of one commit.

    Raises:
        HistoryError: there are fewer than two sittings.
    """
    history = recorder.History.open(root, machine)
    records = [
        (commit, sitting) for commit in history.commits() for sitting in commits.sittings(history, commit) if sitting
    ]
    records.sort(key=lambda dated: float(np.median([record.started_at for record in dated[1]])))
    records = records[-MAX_SITTINGS:]
    if len(records) < 2:
        raise HistoryError(
            f"the history of {history.machine} holds {format_count(len(records), 'sitting')}; measure and "
            "record one commit twice or more: spinbench sweep -m experiment=gate seed=0,1,2,3,4"
        )
    settings = commits.settings_by_cell(records[-1][1])
    sittings = [commits.select_runs(sitting, settings) for _, sitting in records]
    names = [commit for commit, _ in records]
    pairs = list(pairs_without_change(sittings, names))
    total = len(sittings) * (len(sittings) - 1)
    sentence = (
        f"history of {history.machine}: {len(sittings)} sittings of {len(set(names))} commits, {len(settings)} cells; "
        f"{total - len(pairs)} of {total} pairs left out, since the gate calls their cost changed"
    )
    return Calibration(sentence, tuple(estimate_rows(sittings, pairs, draws)))


def pairs_without_change(sittings: Sequence[Runs], names: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Ordered pairs of sittings of one commit, and of commits whose cost the gate does not call changed."""
    for i, j in itertools.combinations(range(len(sittings)), 2):
        if names[i] == names[j] or not judge.has_change(_metrics_judged_by("cost"), Sides(sittings[i], sittings[j])):
            yield from ((i, j), (j, i))


def estimate_rows(sittings: Sequence[Runs], pairs: Sequence[tuple[int, int]], draws: int = DRAWS) -> Iterator[Row]:
    """Rates for each number of seeds that the sittings have, without a past and with all there is."""
    for seeds in SEEDS:
        accuracy_outcomes = [
            _test_comparison("accuracy", (WORSE_GROUP,), *comparison)
            for comparison in _sample_accuracy_comparisons(sittings, seeds, draws)
        ]
        for past in sorted({0, len(sittings) - 2}):
            cost_outcomes = [
                _test_comparison("cost", (SLOWER_GROUP, SLOWER_CELL), *comparison)
                for comparison in _sample_cost_comparisons(sittings, pairs, seeds, past, draws)
            ]
            if cost_outcomes:
                yield Row(
                    seeds,
                    past,
                    *(_rate(cost_outcomes, i) for i in range(3)),
                    *(_rate(accuracy_outcomes, i) for i in range(2)),
                )


def _sample_cost_comparisons(
    sittings: Sequence[Runs], pairs: Sequence[tuple[int, int]], seeds: int, past: int, draws: int
) -> Iterable[tuple[Sides, random.Random]]:
    """Two sittings with equal seeds; the others are the past."""
    rng, unchanged = random.Random(seeds), set(pairs)
    options = [
        (i, j, chosen)
        for i, j in pairs
        for chosen in itertools.combinations(
            sorted(effects.all_seeds(sittings[i]) & effects.all_seeds(sittings[j])), seeds
        )
    ]
    for i, j, chosen in rng.sample(options, min(draws, len(options))):
        others = [turn for turn in range(len(sittings)) if turn not in (i, j)][:past]
        changed = tuple(pair not in unchanged for pair in itertools.pairwise((*others, i)))
        *earlier, base, head = (_select_seeds(sittings[turn], chosen) for turn in (*others, i, j))
        yield Sides(base, head, tuple(earlier), changed), rng


def _sample_accuracy_comparisons(
    sittings: Sequence[Runs], seeds: int, draws: int
) -> Iterable[tuple[Sides, random.Random]]:
    """One sitting with different seeds on both sides."""
    rng = random.Random(seeds)
    options = sorted({frozenset(effects.all_seeds(runs)): turn for turn, runs in enumerate(sittings)}.values())
    large_enough = [turn for turn in options if len(effects.all_seeds(sittings[turn])) >= 2 * seeds > 2]
    drawn_seeds: set[tuple[int, tuple[int, ...], tuple[int, ...]]] = set()
    if not large_enough:
        return
    for _ in range(draws):
        turn = rng.choice(large_enough)
        chosen = rng.sample(sorted(effects.all_seeds(sittings[turn])), 2 * seeds)
        first_seeds, second_seeds = tuple(sorted(chosen[:seeds])), tuple(sorted(chosen[seeds:]))
        if (turn, first_seeds, second_seeds) not in drawn_seeds:
            drawn_seeds.add((turn, first_seeds, second_seeds))
            yield Sides(_select_seeds(sittings[turn], first_seeds), _select_seeds(sittings[turn], second_seeds)), rng


def _test_comparison(
    kind: Literal["cost", "accuracy"], factors: Sequence[float], sides: Sides, rng: random.Random
) -> list[bool]:
    """Whether anything unchanged is called worse, and whether a group and, where there are two factors, a cell are
    found that were made so many times worse."""
    outcomes = [False] * (1 + len(factors))
    fractions = rng.random(), rng.random()
    for metric in _metrics_judged_by(kind):
        tested = effects.EFFECTS[kind](metric, sides)
        if tested.levels and (noisy := tested.levels[0].error > 0).any():
            outcomes[0] |= any("worse" in decision.verdicts for decision in tested.decisions())
            # How much an error that does not fall with the number of samples may grow is not known.
            if kind == "cost" or metric.falls:
                shifts = _plant_shifts(np.where(noisy, tested.groups, "").tolist(), fractions, factors)
                for place, shift in enumerate(shifts, start=1):
                    outcomes[place] = outcomes[place] or _has_worse_shifted_unit(tested, shift)
    return outcomes


def _plant_shifts(
    groups: Sequence[str], fractions: tuple[float, float], factors: Sequence[float]
) -> Sequence[noise.FloatArray]:
    """Shifts of the cells: of one group, and with a second factor of one cell."""
    names = sorted(set(groups) - {""})
    chosen = names[int(fractions[0] * len(names))]
    cell = np.zeros(len(groups))
    cell[int(fractions[1] * len(groups))] = math.log(factors[-1])
    return (np.where(np.array(groups) == chosen, math.log(factors[0]), 0.0), cell)[: len(factors)]


def _has_worse_shifted_unit(tested: effects.Effects, shift: noise.FloatArray) -> bool:
    """Whether a shift of cells, (N,), makes a unit worse that consists of shifted cells alone."""
    for decision in tested.add_shift(shift).decisions():
        is_worse = np.array(decision.verdicts) == "worse"
        if (is_worse & (decision.level.weights[:, shift != 0].sum(axis=1) > 0.999)).any():
            return True
    return False


def _metrics_judged_by(kind: str) -> list[axes.Metric]:
    return [metric for metric in axes.metrics() if metric.judged == kind]


def _select_seeds(runs: Runs, seeds: Sequence[int]) -> Runs:
    chosen = {
        place: {seed: cell_runs[seed] for seed in seeds if seed in cell_runs} for place, cell_runs in runs.items()
    }
    return {place: cell_runs for place, cell_runs in chosen.items() if cell_runs}


def _rate(outcomes: Sequence[Sequence[bool]], position: int) -> Rate:
    return Rate(sum(outcome[position] for outcome in outcomes), len(outcomes))
