"""Changes are found at the commits that made them, of cells and groups; an unchanged history has none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import gate_records
import gate_runs
import numpy as np
import pytest
from gate_runs import CELLS, Factor, group, nothing, slower, wronger

from spinbench.history import axes
from spinbench.history.changepoints import changepoints
from spinbench.history.changepoints.changepoints import Step
from spinbench.history.regression_test.measurements import Place, Run, Runs

JUDGED = [metric for metric in axes.metrics() if metric.judged != "no"]
ONE, OTHER = Place(*CELLS[0]), Place(*CELLS[1])


def chain(factors: Sequence[Factor], seed: int = 0, seeds: int = 2, *, same_stream: bool = False) -> list[Runs]:
    rng = np.random.default_rng(seed)
    return [gate_runs.runs(rng, range(seeds), factor, same_stream=same_stream) for factor in factors]


def drawn(metric: str, error: float, scatter: float = 0.0) -> dict[int, Run]:
    """Two seeds' runs of a cell; without scatter their numbers are equal."""
    return {seed: Run("", {metric: math.log(error) + scatter * seed}) for seed in (0, 1)}


def found(runs: Sequence[Runs]) -> dict[str, list[Step]]:
    every = {metric.name: changepoints.find_steps(metric, runs)[1] for metric in JUDGED}
    return {name: own for name, own in every.items() if own}


def test_an_unchanged_history_has_no_steps() -> None:
    flagged = [bool(found(chain([nothing] * commits, commits + turn))) for commits in (10, 20) for turn in range(10)]
    assert sum(flagged) <= 1


@pytest.mark.parametrize("machine", ["quieter", "busy"])
@pytest.mark.parametrize("seeds", [1, 2, 5])
def test_sittings_of_one_program_have_no_steps(machine: str, seeds: int) -> None:
    real = [
        {place: dict(list(own.items())[:seeds]) for place, own in runs.items()}
        for name, runs in gate_records.sittings(machine).items()
        if name != gate_records.MORE_SEEDS
    ]
    assert found(real) == {}


@pytest.mark.parametrize("commits", [10, 40])
def test_a_slower_cell_and_greater_errors_are_found_at_their_commits(commits: int) -> None:
    cell, pair = CELLS[2], group("gibbs", "numba")
    slow, wrong = commits // 2, commits // 2 + 2
    factors: list[Factor] = [
        lambda metric, one, turn=turn: (
            slower(1.5 if turn >= slow else 1.0, cell)(metric, one)
            * wronger(2.0 if turn >= wrong else 1.0, *pair)(metric, one)
        )
        for turn in range(commits)
    ]
    steps = found(chain(factors, commits, seeds=3))
    assert {(one.place, one.at) for one in steps["step_seconds"]} == {(Place(*cell), slow)}
    assert {(*one.place[1:3], one.at) for one in steps["marginal_rmse"]} == {("gibbs", "numba", wrong)}
    (step,) = steps["step_seconds"]
    assert step.low < 1.5 < step.high
    assert step.p < 1e-3
    assert set(steps) <= {"step_seconds", "step_cpu_seconds", "marginal_rmse"}


def test_a_spell_between_two_changes_is_found() -> None:
    factors = [slower(2.0 if 12 <= turn < 15 else 1.0, *group("dhmc", "numpy")) for turn in range(30)]
    steps = [one for one in found(chain(factors))["step_seconds"] if one.level == "group"]
    assert sorted((one.at, one.ratio > 1) for one in steps) == [(12, True), (15, False)]


def test_numbers_that_stay_equal_are_one_draw_however_often_they_are_measured() -> None:
    other = chain([nothing], seed=7)[0]  # another stream of random numbers
    assert "marginal_rmse" not in found([*chain([nothing] * 12, same_stream=True), *[other] * 12])


def test_numbers_without_noise_change_at_once_beyond_the_margin() -> None:
    def of(*errors: float) -> list[Runs]:
        return [{ONE: drawn("marginal_rmse", error)} for error in errors]

    assert found(of(0.1, 0.1, 0.105, 0.105)) == {}
    (step,) = found(of(0.1, 0.1, 0.12, 0.12))["marginal_rmse"]
    assert (step.at, step.place, step.ratio) == (2, ONE, pytest.approx(1.2))
    assert step.p < 1e-30
    assert step.values == pytest.approx((0.1, math.nan, 0.12, math.nan), nan_ok=True)


def test_bounds_on_log_z_change_at_once_and_sampled_ones_do_not() -> None:
    runs = [
        {ONE: drawn("log_z_error", error), OTHER: drawn("log_z_error", error * math.exp(0.01 * turn), 0.01)}
        for turn, error in enumerate([0.1] * 4 + [0.15] * 4)
    ]
    (step,) = found(runs)["log_z_error"]
    assert (step.at, step.place, step.level) == (4, ONE, "cell")


def test_another_machine_and_single_draws_say_nothing() -> None:
    runs = chain([slower(2.0 if turn >= 5 else 1.0, *CELLS) for turn in range(10)])
    moved = [
        {place: {seed: replace(one, machine=("other",) * 7) for seed, one in own.items()} for place, own in one.items()}
        for one in runs[:5]
    ]
    assert "step_seconds" in found(runs)
    assert found([*moved, *runs[5:]]) == {}
    assert found([{place: {0: own[0]} for place, own in one.items()} for one in chain([nothing] * 2)]) == {}
