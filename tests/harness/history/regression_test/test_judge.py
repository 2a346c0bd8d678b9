"""What is said of two sets of runs: planted changes, and everything that must not be called one."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import gate_runs
import numpy as np
import pytest
from gate_runs import CELLS, Factor, group, nothing, runs, slower, wronger

from spinbench.history.regression_test.effects import ALL
from spinbench.history.regression_test.formatting import format_changes
from spinbench.history.regression_test.judge import Judgement, judge
from spinbench.history.regression_test.measurements import Place, Run, Runs, Sides

SEEDS = range(3)
SLOW = ("grid", "gibbs", "numba")
PAIR = group("gibbs", "numba")
OTHER_MACHINE = (*gate_runs.MACHINE_KEY[:-1], "0.63")
MANY = [
    (model, method, backend)
    for model in ("boltzmann/neural15", "grid", "random_regular")
    for method in ("gibbs", "dhmc", "bp")
    for backend in ("numpy", "numba")
]
BP = [cell for cell in MANY if cell[1:] == ("bp", "numba")]


def compared(base: Runs, head: Runs, *past: Runs) -> Judgement:
    return judge(Sides(base, head, past, (False,) * len(past)))


def changed(found: Runs, change: Callable[[Place, int, Run], dict[str, Any]]) -> Runs:
    """Runs with some attributes replaced."""
    return {
        place: {seed: dataclasses.replace(one, **change(place, seed, one)) for seed, one in seeds.items()}
        for place, seeds in found.items()
    }


def verdicts(found: Judgement, metric: str, level: str = "cell") -> dict[str, str]:
    """By cell or group."""
    return {
        " ".join(one.place[:3]): one.verdict
        for one in found.findings
        if one.metric.name == metric and one.level == level
    }


def both(one: Factor, other: Factor) -> Factor:
    return lambda metric, cell: one(metric, cell) * other(metric, cell)


def log_rmse(error: float) -> Callable[..., dict[str, Any]]:
    """What gives all runs this error and nothing else."""
    return lambda *_: {"values": {"marginal_rmse": math.log(error)}}


def test_a_slower_cell_is_found_and_nothing_else(rng: np.random.Generator) -> None:
    found = compared(runs(rng, SEEDS), runs(rng, SEEDS, slower(2.0, SLOW)))
    cells = {one.metric.name: one for one in found.worse if one.level == "cell"}
    assert {name: one.place[:3] for name, one in cells.items()} == {"step_seconds": SLOW, "step_cpu_seconds": SLOW}
    cell = cells["step_seconds"]
    assert cell.ratio == pytest.approx(2.0, rel=0.1)
    assert cell.low < 2.0 < cell.high
    assert (cell.head, cell.seeds) == (pytest.approx(cell.base * cell.ratio), (3, 3))
    assert found.red
    faster = compared(runs(rng, SEEDS, slower(2.0, SLOW)), runs(rng, SEEDS))
    assert not faster.red
    assert verdicts(faster, "step_seconds")[" ".join(SLOW)] == "better"


@pytest.mark.parametrize(
    ("factor", "options", "level", "expected"),
    [
        pytest.param(slower(1.35, *group("dhmc", "numpy")), {}, "group", {f"{ALL} dhmc numpy"}, id="no cell shows it"),
        pytest.param(slower(1.3, *CELLS), {}, "all", {f"{ALL} {ALL} {ALL}"}, id="everything slower is one"),
        pytest.param(nothing, {}, "cell", set(), id="nothing"),
    ],
)
def test_what_takes_longer(
    factor: Factor, options: dict[str, Any], level: str, expected: set[str], rng: np.random.Generator
) -> None:
    found = compared(runs(rng, SEEDS), runs(rng, SEEDS, factor, **options))
    assert {name for name, said in verdicts(found, "step_seconds", level).items() if said == "worse"} == expected
    assert found.red == bool(expected)


def test_equal_numbers_are_identical_and_need_one_seed(rng: np.random.Generator) -> None:
    found = compared(runs(rng, [0]), runs(rng, [0]))
    assert found.identical == found.common == len(CELLS)
    assert set(verdicts(found, "marginal_rmse").values()) == {"identical"}
    assert not [one for one in found.findings if one.metric.judged == "accuracy" and one.p is not None]


def test_numbers_that_rounding_changed_are_not_tested(rng: np.random.Generator) -> None:
    base = runs(rng, SEEDS)
    rounded = changed(base, lambda _, __, one: {"answer": "x", "values": {k: v + 1e-9 for k, v in one.values.items()}})
    found = compared(base, rounded)
    assert (found.identical, found.common) == (0, 3 * len(CELLS))
    assert set(verdicts(found, "marginal_rmse").values()) == {"identical"}


def test_of_one_seed_whose_numbers_changed_accuracy_is_not_said(rng: np.random.Generator) -> None:
    found = compared(runs(rng, [0]), runs(rng, [0], wronger(9.0, *CELLS), same_stream=False))
    assert set(verdicts(found, "marginal_rmse").values()) == {"undecided"}
    assert not found.red
    assert any("the numbers changed, and 2 seeds of both commits are needed" in note for note in found.notes)


def test_greater_errors_of_a_group_are_found_where_the_numbers_changed(rng: np.random.Generator) -> None:
    base, drawn = runs(rng, SEEDS), runs(rng, SEEDS, wronger(2.0, *PAIR), same_stream=False)
    found = compared(base, {place: drawn[place] if place[:3] in PAIR else base[place] for place in base})
    assert verdicts(found, "marginal_rmse", "group") == {f"{ALL} gibbs numba": "worse"}
    said = verdicts(found, "marginal_rmse")
    assert {name for name, verdict in said.items() if verdict == "identical"} == {
        " ".join(cell) for cell in CELLS if cell not in PAIR
    }


def test_errors_of_a_method_without_noise_are_certain(rng: np.random.Generator) -> None:
    base = changed(runs(rng, SEEDS), log_rmse(0.1))
    found = compared(base, changed(base, lambda place, *_: log_rmse(0.12 if place[:3] == SLOW else 0.1)()))
    assert [one.place[:3] for one in found.worse] == [SLOW]
    assert not compared(base, changed(base, log_rmse(0.109))).red


@pytest.mark.parametrize(("error", "samples", "red"), [(1.5, 0.44, False), (2.0, 1.0, True), (1.0, 2.0, False)])
def test_errors_of_runs_of_different_lengths(error: float, samples: float, red: bool, rng: np.random.Generator) -> None:
    """Half the samples cost a square root of two; more samples owe nothing, as not every error falls."""
    base = runs(rng, SEEDS, fixed=False, samples=0.0)
    head = runs(rng, SEEDS, wronger(error, *CELLS), same_stream=False, fixed=False, samples=math.log(samples))
    assert compared(base, head).red == red


def test_other_machines_give_no_verdict_on_cost_but_on_accuracy(rng: np.random.Generator) -> None:
    factor = both(wronger(2.0, *CELLS), slower(3.0, *CELLS))
    found = compared(runs(rng, SEEDS), runs(rng, SEEDS, factor, same_stream=False, machine=OTHER_MACHINE))
    assert set(verdicts(found, "step_seconds").values()) == {"undecided"}
    assert {one.metric.name for one in found.worse} == {"marginal_rmse"}
    assert any("measured on different machines (torch" in note for note in found.notes)


def test_noise_is_learnt_from_the_past_of_the_same_machine(rng: np.random.Generator) -> None:
    base, head = runs(rng, SEEDS), runs(rng, SEEDS, slower(1.5, *CELLS))
    loud = [runs(rng, SEEDS, slower(factor, *CELLS)) for factor in (1.0, 3.0, 1.0, 3.0)]
    foreign = [changed(one, lambda *_: {"machine": ("b",) * 7}) for one in loud]
    assert [compared(base, head, *past).red for past in ([], foreign, loud)] == [True, True, False]


def test_runs_without_times_of_steps_give_no_verdict(rng: np.random.Generator) -> None:
    untimed = {"timed": None}
    old = changed(
        runs(rng, SEEDS), lambda _, __, one: {"values": {"marginal_rmse": one.values["marginal_rmse"]}, **untimed}
    )
    found = compared(old, runs(rng, SEEDS, slower(3.0, *CELLS)))
    assert not found.red
    reasons = {one.reason for one in found.findings if one.metric.name == "step_seconds"}
    assert reasons == {"their records hold no times of single steps"}
    assert set(verdicts(found, "marginal_rmse").values()) == {"identical"}


@pytest.mark.parametrize("timed", [(256, 1e-4), (12, 0.1)], ids=["short", "few batches"])
def test_short_runs_give_no_verdict(timed: tuple[int, float], rng: np.random.Generator) -> None:
    found = compared(runs(rng, SEEDS, timed=timed), runs(rng, SEEDS, slower(3.0, *CELLS), timed=timed))
    assert not found.red
    assert any("they ran for less than 1 ms or 16 batches" in note for note in found.notes)


@pytest.mark.parametrize(
    ("lost", "verdict"), [(range(2), ["fails"]), (range(1), []), (range(4), ["fails"])], ids=["half", "rare", "all"]
)
def test_failures_are_those_of_cells_that_worked(lost: range, verdict: list[str], rng: np.random.Generator) -> None:
    good = runs(rng, range(4))
    broken = changed(good, lambda place, seed, _: {"failed": "killed"} if place[:3] == SLOW and seed in lost else {})
    found, mended, always = compared(good, broken), compared(broken, good), compared(broken, broken)
    assert [one.verdict for one in found.changes] == verdict
    assert {(one.place[:3], one.error) for one in found.changes} <= {(SLOW, "killed")}
    assert [one.verdict for one in mended.changes] == ["mended"] * len(verdict)
    assert (found.red, mended.red, always.changes) == (bool(verdict), False, ())


@pytest.mark.parametrize(
    ("fallen", "expected"),
    [
        (range(3), [("weaker", SLOW, "evidence of log Z", "exact", "converged")]),
        (range(2), [("weaker", SLOW, "evidence of log Z", "exact", "converged")]),
        (range(1), []),
    ],
    ids=["all", "most", "few"],
)
def test_numbers_that_rest_on_weaker_evidence_are_said(
    fallen: range, expected: list[tuple[Any, ...]], rng: np.random.Generator
) -> None:
    good = changed(runs(rng, SEEDS), lambda *_: {"levels": {"marginals": "converged", "log_z": "exact"}})
    fall = {"levels": {"marginals": "converged", "log_z": "converged"}}
    weaker = changed(good, lambda place, seed, _: fall if place[:3] == SLOW and seed in fallen else {})
    found, back, old = compared(good, weaker), compared(weaker, good), compared(runs(rng, SEEDS), weaker)
    assert [(one.verdict, one.place[:3], one.title, one.base, one.head) for one in found.changes] == expected
    assert [one.verdict for one in back.changes] == ["stronger"] * len(expected)
    assert (found.red, old.changes) == (False, ())
    lines = " ".join(format_changes(found)[1:])
    assert ("weaker" in lines and "evidence of log Z" in lines and "converged" in lines) == bool(expected)


@pytest.mark.parametrize(
    ("cells", "guilty", "yardstick", "worse", "note"),
    [
        pytest.param(MANY, [], 1.4e-4, [], "a fixed loop took x1.40 as long at head", id="the machine"),
        pytest.param(MANY, BP, 1.4e-4, [("bp", "numba")], "a fixed loop took x1.40", id="the machine and a group"),
        pytest.param(
            [cell for cell in MANY if cell[1] == "bp"],
            BP,
            1.4e-4,
            [],
            "the machine's speed changed, and too few others tell by how much",
            id="the machine, and few others",
        ),
        pytest.param(MANY, [], 1e-4, None, "", id="the code"),
    ],
)
def test_a_machine_that_became_slower_blames_no_commit(
    cells: list[Any], guilty: list[Any], yardstick: float, worse: list[Any], note: str, rng: np.random.Generator
) -> None:
    """The yardstick moved with the steps: nothing is said of all together, and groups are compared with each other."""
    factor = both(slower(2.0, *guilty), slower(1.4, *cells))
    base = runs(rng, SEEDS, cells=cells, yardstick=(1e-4, 1e-4))
    found = compared(base, runs(rng, SEEDS, factor, cells=cells, yardstick=(yardstick, yardstick)))
    groups = [one.place[1:3] for one in found.worse if one.level == "group" and one.metric.name == "step_seconds"]
    assert worse is None or groups == worse
    assert found.red == (worse != [])
    assert bool(verdicts(found, "step_seconds", "all")) == (worse is None)
    assert any(note in said for said in found.notes) or not note


def test_runs_next_to_which_the_machine_was_slow_are_left_out(rng: np.random.Generator) -> None:
    """For a while it gave a third less, which the yardstick shows before or after each run."""

    def slow(place: Place, seed: int, one: Run) -> dict[str, Any]:
        if place.group != "gibbs × numba" or seed != 1:
            return {}
        longer = {name: value + math.log(1.5) for name, value in one.values.items() if name.startswith("step")}
        return {"values": {**one.values, **longer}, "yardstick": (1e-4, 1.5e-4)}

    base, head = (runs(rng, SEEDS, yardstick=(1e-4, 1.02e-4)) for _ in range(2))
    head = changed(head, slow)
    found = compared(base, head)
    ratios = [one.ratio for one in found.findings if one.metric.name == "step_seconds" and one.p is not None]
    assert ratios == pytest.approx([1.0] * len(ratios), abs=0.05)
    assert not found.red
    assert any("3 runs left out: a fixed loop next to them took over 15 % longer" in note for note in found.notes)
    alone = compared({p: {1: own[1]} for p, own in base.items()}, {p: {1: own[1]} for p, own in head.items()})
    assert {one.reason for one in alone.findings if one.place[1:3] == ("gibbs", "numba") and one.level == "cell"} >= {
        "the machine was slow for a while whenever they ran"
    }


def test_disturbances_are_told(rng: np.random.Generator) -> None:
    found = compared(runs(rng, SEEDS), runs(rng, SEEDS, disturbed=True, waited=0.6))
    assert {
        f"{3 * len(CELLS)} of {6 * len(CELLS)} records were disturbed: other programs used the processor meanwhile",
        "the machine was busy: processes waited for 60% of their time",
    } <= {*found.notes}


def test_the_smallest_detectable_change_is_told_at_each_level(rng: np.random.Generator) -> None:
    found = compared(runs(rng, SEEDS), runs(rng, SEEDS))
    tested = {one.level: one for one in found.tested if one.metric.name == "step_seconds"}
    units = {level: sum(one.verdicts.values()) for level, one in tested.items()}
    assert units == {"cell": len(CELLS), "group": 4, "all": 1}
    assert 1.05 < tested["all"].detectable < tested["group"].detectable < tested["cell"].detectable < 2


@pytest.mark.parametrize(
    ("base", "head", "samples", "said"),
    [
        ((0.1, 0.1), (0.12, 0.12), 100, "worse"),
        ((0.1, 0.1), (0.08, 0.08), 100, "better"),
        ((0.1, 0.1), (0.105, 0.105), 100, "not worse than 10 %"),
        ((0.1, 0.1), (0.12, 0.12), 80, "not worse than 10 %"),
        ((0.1, 0.1), (0.1, 0.1), 100, "identical"),
        ((0.1, 0.2), (1.1, 1.1), 100, "shown"),
        ((0.1, 0.1), (1.0, 1.1), 100, "shown"),
    ],
)
def test_errors_of_log_z_are_judged_where_seeds_make_no_difference(
    base: tuple[float, ...], head: tuple[float, ...], samples: int, said: str
) -> None:
    """As of bounds, which have no other error; of sampled log Z a few seeds say too little."""

    def of(errors: tuple[float, ...], samples: int) -> Runs:
        values = [{"log_z_error": math.log(error)} for error in errors]
        return {Place(*SLOW): {seed: Run("", own, samples=math.log(samples)) for seed, own in enumerate(values)}}

    assert verdicts(compared(of(base, 100), of(head, samples)), "log_z_error") == {" ".join(SLOW): said}
