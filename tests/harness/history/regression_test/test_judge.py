"""What is said of two sets of runs: planted changes, and everything that must not be called one."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import gate_runs
import numpy as np
import pytest
from gate_runs import CELLS, group, runs, slower, wronger

from spinbench.history.regression_test.effects import ALL
from spinbench.history.regression_test.judge import Judgement, judge
from spinbench.history.regression_test.measurements import Place, Run, Runs, Sides

SEEDS = range(3)
SLOW = ("grid", "gibbs", "numba")


def compared(base: Runs, head: Runs, *past: Runs) -> Judgement:
    return judge(Sides(base, head, past, (False,) * len(past)))


def changed(found: Runs, change: Callable[[Place, int, Run], dict[str, Any]]) -> Runs:
    """Runs with some attributes replaced."""
    return {
        place: {seed: dataclasses.replace(one, **change(place, seed, one)) for seed, one in seeds.items()}
        for place, seeds in found.items()
    }


def only(one: Run, *metrics: str) -> dict[str, float]:
    return {name: one.values[name] for name in metrics}


def verdicts(found: Judgement, metric: str, level: str = "cell") -> dict[str, str]:
    """By cell or group."""
    return {
        " ".join(one.place[:3]): one.verdict
        for one in found.findings
        if one.metric.name == metric and one.level == level
    }


def test_a_slower_cell_is_found_and_nothing_else(rng: np.random.Generator) -> None:
    found = compared(runs(rng, SEEDS), runs(rng, SEEDS, slower(2.0, SLOW)))
    assert found.red
    assert {(one.metric.name, *one.place[:3]) for one in found.worse if one.level == "cell"} == {
        ("step_seconds", *SLOW),
        ("step_cpu_seconds", *SLOW),
    }
    (cell,) = [one for one in found.worse if one.level == "cell" and one.metric.name == "step_seconds"]
    assert cell.ratio == pytest.approx(2.0, rel=0.1)
    assert cell.low is not None
    assert cell.high is not None
    assert cell.low < 2.0 < cell.high
    assert cell.base is not None
    assert cell.head == pytest.approx(cell.base * cell.ratio)
    assert cell.seeds == (3, 3)
    assert not compared(runs(rng, SEEDS), runs(rng, SEEDS)).red
    faster = compared(runs(rng, SEEDS, slower(2.0, SLOW)), runs(rng, SEEDS))
    assert not faster.red
    assert verdicts(faster, "step_seconds")[" ".join(SLOW)] == "better"


def test_a_group_is_found_that_no_cell_shows(rng: np.random.Generator) -> None:
    cells = group("dhmc", "numpy")
    found = compared(runs(rng, SEEDS), runs(rng, SEEDS, slower(1.35, *cells)))
    assert verdicts(found, "step_seconds", "group")[f"{ALL} dhmc numpy"] == "worse"
    others = {name for name, said in verdicts(found, "step_seconds", "group").items() if said == "worse"}
    assert others == {f"{ALL} dhmc numpy"}


def test_everything_slower_is_found_as_one(rng: np.random.Generator) -> None:
    found = compared(runs(rng, SEEDS), runs(rng, SEEDS, slower(1.3, *CELLS)))
    assert verdicts(found, "step_seconds", "all") == {f"{ALL} {ALL} {ALL}": "worse"}


def test_equal_numbers_are_identical_and_need_one_seed(rng: np.random.Generator) -> None:
    found = compared(runs(rng, [0]), runs(rng, [0]))
    assert (found.identical, found.common) == (len(CELLS), len(CELLS))
    assert set(verdicts(found, "marginal_rmse").values()) == {"identical"}
    assert not [one for one in found.findings if one.metric.judged == "accuracy" and one.p is not None]


def test_numbers_that_rounding_changed_are_not_tested(rng: np.random.Generator) -> None:
    base = runs(rng, SEEDS)
    head = changed(
        base, lambda place, seed, one: {"answer": "x", "values": {k: v + 1e-9 for k, v in one.values.items()}}
    )
    found = compared(base, head)
    assert (found.identical, found.common) == (0, 3 * len(CELLS))
    assert set(verdicts(found, "marginal_rmse").values()) == {"identical"}


def test_of_one_seed_whose_numbers_changed_accuracy_is_not_said(rng: np.random.Generator) -> None:
    found = compared(runs(rng, [0]), runs(rng, [0], wronger(9.0, *CELLS), same_stream=False))
    assert set(verdicts(found, "marginal_rmse").values()) == {"undecided"}
    assert not found.red
    assert any("the numbers changed, and 2 seeds of both commits are needed" in note for note in found.notes)


def test_greater_errors_of_a_group_are_found_where_the_numbers_changed(rng: np.random.Generator) -> None:
    cells = group("gibbs", "numba")
    head = runs(rng, SEEDS, wronger(2.0, *cells), same_stream=False)
    head = {place: one if place.group == "gibbs × numba" else runs(rng, SEEDS)[place] for place, one in head.items()}
    found = compared(runs(rng, SEEDS), head)
    assert verdicts(found, "marginal_rmse", "group") == {f"{ALL} gibbs numba": "worse"}
    said = verdicts(found, "marginal_rmse")
    assert {name for name, verdict in said.items() if verdict == "identical"} == {
        " ".join(cell) for cell in CELLS if cell not in cells
    }


def test_errors_of_a_method_without_noise_are_certain(rng: np.random.Generator) -> None:
    base = changed(runs(rng, SEEDS), lambda *_: {"values": {"marginal_rmse": math.log(0.1)}})
    head = changed(
        base, lambda place, seed, one: {"values": {"marginal_rmse": math.log(0.12 if place[:3] == SLOW else 0.1)}}
    )
    found = compared(base, head)
    assert [one.place[:3] for one in found.worse] == [SLOW]
    within = changed(base, lambda *_: {"values": {"marginal_rmse": math.log(0.109)}})
    assert not compared(base, within).red


@pytest.mark.parametrize(("error", "samples", "red"), [(1.5, 0.44, False), (2.0, 1.0, True), (1.0, 2.0, False)])
def test_errors_of_runs_of_different_lengths(error: float, samples: float, red: bool, rng: np.random.Generator) -> None:
    """Half the samples cost a square root of two; more samples owe nothing, as not every error falls."""
    base = runs(rng, SEEDS, fixed=False, samples=0.0)
    head = runs(rng, SEEDS, wronger(error, *CELLS), same_stream=False, fixed=False, samples=math.log(samples))
    assert compared(base, head).red == red


def test_other_machines_give_no_verdict_on_cost_but_on_accuracy(rng: np.random.Generator) -> None:
    base = runs(rng, SEEDS)
    other = (*gate_runs.MACHINE_KEY[:-1], "0.63")
    factor = wronger(2.0, *CELLS)
    head = runs(rng, SEEDS, lambda m, c: factor(m, c) * slower(3.0, *CELLS)(m, c), same_stream=False, machine=other)
    found = compared(base, head)
    assert set(verdicts(found, "step_seconds").values()) == {"undecided"}
    assert {one.metric.name for one in found.worse} == {"marginal_rmse"}
    assert any("measured on different machines (jax" in note for note in found.notes)


def test_noise_of_other_machines_is_not_borrowed(rng: np.random.Generator) -> None:
    base, head = runs(rng, SEEDS), runs(rng, SEEDS, slower(1.5, *CELLS))
    loud = [runs(rng, SEEDS, slower(factor, *CELLS)) for factor in (1.0, 3.0, 1.0, 3.0)]
    foreign = [changed(one, lambda *_: {"machine": ("b",) * 7}) for one in loud]
    assert compared(base, head).red
    assert compared(base, head, *foreign).red
    assert not compared(base, head, *loud).red


def test_runs_without_times_of_steps_and_short_ones_give_no_verdict(rng: np.random.Generator) -> None:
    head = runs(rng, SEEDS, slower(3.0, *CELLS))
    old = changed(
        runs(rng, SEEDS),
        lambda place, seed, one: {"timed": None, "values": {"marginal_rmse": one.values["marginal_rmse"]}},
    )
    found = compared(old, head)
    assert not found.red
    assert {one.reason for one in found.findings if one.metric.name == "step_seconds"} == {
        "their records hold no times of single steps"
    }
    assert set(verdicts(found, "marginal_rmse").values()) == {"identical"}
    for timed in ((256, 1e-4), (12, 0.1)):
        short = changed(runs(rng, SEEDS), lambda *_, timed=timed: {"timed": timed})
        found = compared(short, changed(head, lambda *_, timed=timed: {"timed": timed}))
        assert not found.red
        assert any("they ran for less than 1 ms or 16 batches" in note for note in found.notes)


def test_failures_are_those_of_cells_that_worked(rng: np.random.Generator) -> None:
    good = runs(rng, range(4))
    broken = changed(good, lambda place, seed, one: {"failed": "killed"} if place[:3] == SLOW and seed < 2 else {})
    found = compared(good, broken)
    assert [(one.verdict, one.place[:3], one.error) for one in found.failures] == [("fails", SLOW, "killed")]
    assert found.red
    mended = compared(broken, good)
    assert [one.verdict for one in mended.failures] == ["mended"]
    assert not mended.red
    rare = changed(good, lambda place, seed, one: {"failed": "killed"} if place[:3] == SLOW and seed < 1 else {})
    assert not compared(good, rare).failures
    always = changed(good, lambda place, seed, one: {"failed": "killed"})
    assert not compared(always, always).failures


def test_a_machine_that_became_slower_blames_no_commit(rng: np.random.Generator) -> None:
    """The yardstick moved with the steps: nothing is said of all together, and groups are compared with each other."""
    models = ("boltzmann/neural15", "grid", "random_regular")
    cells = [
        (m, method, backend) for m in models for method in ("gibbs", "dhmc", "bp") for backend in ("numpy", "numba")
    ]
    base = runs(rng, SEEDS, cells=cells, yardstick=(1e-4, 1e-4))
    head = runs(rng, SEEDS, slower(1.4, *cells), cells=cells, yardstick=(1.4e-4, 1.4e-4))
    found = compared(base, head)
    assert not found.red
    assert not verdicts(found, "step_seconds", "all")
    assert any("a fixed loop took x1.40 as long at head" in note for note in found.notes)
    assert compared(base, changed(head, lambda *_: {"yardstick": (1e-4, 1e-4)})).red
    guilty = [cell for cell in cells if cell[1:] == ("bp", "numba")]
    factor = slower(2.0, *guilty)
    head = runs(
        rng, SEEDS, lambda m, c: factor(m, c) * slower(1.4, *cells)(m, c), cells=cells, yardstick=(1.4e-4, 1.4e-4)
    )
    found = compared(base, head)
    assert [one.place[1:3] for one in found.worse if one.level == "group" and one.metric.name == "step_seconds"] == [
        ("bp", "numba")
    ]
    few = [cell for cell in cells if cell[1:] in (("bp", "numba"), ("bp", "numpy"))]
    found = compared({p: base[p] for p in base if p[:3] in few}, {p: head[p] for p in head if p[:3] in few})
    assert not found.red
    assert any("the machine's speed changed, and too few others tell by how much" in note for note in found.notes)


def test_runs_next_to_which_the_machine_was_slow_are_left_out(rng: np.random.Generator) -> None:
    """For a while it gave a third less, which the yardstick shows before or after each run."""
    steady = {"yardstick": (1e-4, 1.02e-4)}
    base = runs(rng, SEEDS, **steady)

    def slow(place: Place, seed: int, one: Run) -> dict[str, Any]:
        if place.group != "gibbs × numba" or seed != 1:
            return {}
        longer = {name: value + math.log(1.5) for name, value in one.values.items() if name.startswith("step")}
        return {"values": {**one.values, **longer}, "yardstick": (1e-4, 1.5e-4)}

    head = changed(runs(rng, SEEDS, **steady), slow)
    found = compared(base, head)
    assert not found.red
    ratios = [one.ratio for one in found.findings if one.metric.name == "step_seconds" and one.p is not None]
    assert ratios == pytest.approx([1.0] * len(ratios), abs=0.05)
    assert any("3 runs left out: a fixed loop next to them took over 15 % longer" in note for note in found.notes)
    alone = compared({p: {1: own[1]} for p, own in base.items()}, {p: {1: own[1]} for p, own in head.items()})
    assert {one.reason for one in alone.findings if one.place[1:3] == ("gibbs", "numba") and one.level == "cell"} >= {
        "the machine was slow for a while whenever they ran"
    }


def test_disturbances_are_told(rng: np.random.Generator) -> None:
    busy = runs(rng, SEEDS, disturbed=True, waited=0.6)
    found = compared(runs(rng, SEEDS), busy)
    assert (
        f"{3 * len(CELLS)} of {6 * len(CELLS)} records were disturbed: other programs used the processor meanwhile"
        in found.notes
    )
    assert "the machine was busy: processes waited for 60% of their time" in found.notes


def test_the_smallest_detectable_change_is_told_at_each_level(rng: np.random.Generator) -> None:
    found = compared(runs(rng, SEEDS), runs(rng, SEEDS))
    tested = {one.level: one for one in found.tested if one.metric.name == "step_seconds"}
    units = {level: sum(one.verdicts.values()) for level, one in tested.items()}
    assert units == {"cell": len(CELLS), "group": 4, "all": 1}
    sizes = {level: one.detectable for level, one in tested.items()}
    assert 1.05 < sizes["all"] < sizes["group"] < sizes["cell"] < 2


def test_errors_of_log_z_are_judged_where_seeds_make_no_difference() -> None:
    """As of bounds, which have no other error; of sampled log Z a few seeds say too little."""

    def of(*errors: float, samples: int = 100) -> Runs:
        values = [{"log_z_error": math.log(error)} for error in errors]
        return {
            Place(*SLOW): {seed: Run("", own, samples=math.log(samples)) for seed, own in enumerate(values)},
        }

    def said(base: Runs, head: Runs) -> str:
        return verdicts(compared(base, head), "log_z_error")[" ".join(SLOW)]

    assert said(of(0.1, 0.1), of(0.12, 0.12)) == "worse"
    assert said(of(0.1, 0.1), of(0.08, 0.08)) == "better"
    assert said(of(0.1, 0.1), of(0.105, 0.105)) != "worse"
    assert said(of(0.1, 0.1), of(0.12, 0.12, samples=80)) != "worse"
    assert said(of(0.1, 0.1), of(0.1, 0.1)) == "identical"
    assert said(of(0.1, 0.2), of(1.1, 1.1)) == said(of(0.1, 0.1), of(1.0, 1.1)) == "shown"
