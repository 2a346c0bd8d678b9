"""Changes are found at the commits that made them, and `spinbench history` names these commits, and no other."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import gate_records
import gate_runs
import numpy as np
import pytest
from gate_runs import CELLS, Factor, group, nothing, slower, wronger

from spinbench import cli
from spinbench.errors import HistoryError
from spinbench.history import axes
from spinbench.history import commits as chains
from spinbench.history.changepoints import changepoints
from spinbench.history.changepoints.changepoints import Step
from spinbench.history.changepoints.report import find_steps, format_summary, sparkline
from spinbench.history.gate import gate
from spinbench.history.publish import publish
from spinbench.history.recorder import History, record
from spinbench.history.regression_test.measurements import Place, Run, Runs
from spinbench.reporting.past import changes, verdicts


def test_commits_are_named_and_no_other(project: Any, planted: Any, capsys: pytest.CaptureFixture[str]) -> None:
    found = find_steps(project.root)
    assert (found.machine, len(found.commits)) == ("testbox", 11)
    assert {(one.step.metric.judged, one.commit.name) for one in found.steps} == {
        ("cost", planted.slow),
        ("accuracy", planted.wrong),
    }
    for options, told, untold in (
        (
            ["--worse"],
            [
                f"{planted.slow[:8]} commit 5  ",
                f"{planted.wrong[:8]} commit 8 (or one of 1 before it)",
                "dhmc × numpy (in 3 cells by itself)",
                f"11 commits, {planted.commits[0][:8]} to {planted.commits[-1][:8]}: ",
            ],
            "no change",
        ),
        (["--since", planted.slow], ["commit 8 "], "commit 5 "),
        (["--last", "3"], ["no change beyond noise"], "commit 8 "),
    ):
        assert cli.main(["history", *options]) == 0
        said = capsys.readouterr().out
        assert [line for line in told if line not in said] == []
        assert untold not in said
    nothing = replace(found, series=0, steps=())
    assert format_summary(nothing).endswith(": no cell was measured at two of them, so that nothing can be said")


def test_branches_that_are_measured_side_by_side_are_no_course(
    project: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slower branch and one that began before it, measured in turn: what came later is not what came of it."""
    made: list[dict[str, Any]] = []

    def measured(title: str, branch: str, day: int) -> None:
        monkeypatch.setenv("GIT_COMMITTER_DATE", f"2024-01-{day:02}T12:00:00")
        if branch == "merge":
            project.git("checkout", "-q", "main")
            project.git("merge", "-q", "--no-ff", "-X", "ours", "-m", title, "side")
        else:
            project.git("checkout", "-q", branch)
            project.commit(title)
        name = project.git("rev-parse", "HEAD")
        factor = gate_runs.slower(2.0 if branch != "side" and day > 3 else 1.0, *gate_runs.CELLS)
        for number, cell in enumerate(gate_runs.CELLS[:6]):
            for seed in range(2):
                drawn = gate_runs.values(rng, cell, factor, np.random.default_rng((number, seed)))
                made.append(gate_runs.record(name, cell, seed, drawn))

    project.commit("first")
    for day in range(1, 4):
        measured(f"day {day}", "main", day)
    project.git("branch", "side")
    for day in range(4, 10):
        measured(f"day {day}", "side" if day % 2 else "main", day)
    measured("merge", "merge", 10)
    record(project.root, [project.sweep("all", made)])
    assert {(one.commit.title, one.is_worse) for one in find_steps(project.root).steps} == {("day 4", True)}
    assert gate(project.root).titles == ("day 8", "merge")


def test_a_sweep_over_commits_is_red_where_only_all_of_them_tell(project: Any, planted: Any) -> None:
    """Of neighbours the gate may not know enough."""
    measured = [name for name in planted.commits if name in History.open(project.root).commits()]
    row = verdicts.judge_commits(project.root, measured)
    said = verdicts.describe_series(row)
    together = said[said.index("all commits together:") :]
    assert {one.commit.name for one in row.series_steps.steps} == {planted.slow, planted.wrong}
    assert any(f"{planted.wrong[:8]} commit 8  " in line for line in together)
    assert replace(row, steps=()).red
    quiet = verdicts.judge_commits(project.root, measured[:4])
    assert not quiet.red
    assert "no change beyond noise" in verdicts.describe_series(quiet)[-1]


def test_a_commit_without_a_number_may_be_meant(project: Any, planted: Any) -> None:
    """Where a cell's runs of a commit do not count, say as the machine was slow, the one after it shows the change."""
    home = project.root / ".asv"
    for path in home.glob(f"journal/*/*/{planted.slow}/record-*.json"):
        if json.loads(path.read_text())["axes"]["method"] == "dhmc":
            path.unlink()
    (file,) = home.glob(f"results/*/{planted.slow[:8]}-*.json")
    file.unlink()  # asv's, which has them, too
    for commits in (None, [*planted.commits[:7], *planted.commits[8:]]):
        found = find_steps(project.root, commits=commits).steps
        costs = [one.commit for one in found if one.step.metric.judged == "cost"]
        assert {(one.title, one.skipped) for one in costs} == {("commit 6", 1)}


@pytest.mark.parametrize(("most", "commits"), [(3 * 18 + 1, 3), (1, 2)])
def test_of_many_records_the_newest_commits_count(
    most: int, commits: int, project: Any, planted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chains, "MAX_RECORDS", most)
    assert find_steps(project.root).commits == tuple(planted.commits[-commits:])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "knows 0 commits of the current branch"),
        (["--since", "nowhere"], "'nowhere' names no commit"),
        *((["--last", str(last)], f"the last {last} commits were asked for") for last in (-3, 0, 1)),
    ],
)
def test_a_history_of_one_commit_and_a_wrong_name(
    options: list[str],
    sentence: str,
    project: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SPINBENCH_HISTORY", str(project.root))
    project.commit("first")
    assert cli.main(["history", *options]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("values", "at", "picture"),
    [
        ([1.0, 1.0, float("nan"), 2.0, 2.0], 3, "▁▁·|██"),
        ([1.0, 1.0], 1, "▁|▁"),
        ([1.0] * 50 + [3.0] * 50, 50, "▁" * 15 + "|" + "█" * 15),
    ],
)
def test_pictures_show_what_is_around_the_change(values: list[float], at: int, picture: str) -> None:
    assert sparkline(values, at) == picture


def test_published_page_names_the_commits_and_no_other(
    project: Any, planted: Any, browser: Any, tmp_path: Path
) -> None:
    index = publish(project.root)
    assert f'<a href="{changes.PAGE}">' in index.read_text()
    browser.open((index.parent / changes.PAGE).as_uri())
    rows = browser.evaluate("Array.from(document.querySelectorAll('table.sortable tbody tr'), row => row.innerText)")
    assert {name[:8] for name in planted.commits if name[:8] in "".join(rows)} == {planted.slow[:8], planted.wrong[:8]}
    assert all(row.startswith("worse") for row in rows)
    assert browser.evaluate("document.querySelectorAll('tbody tr:first-child circle').length") == 11
    said = browser.evaluate("document.body.innerText")
    assert said.count("on testbox: ") == 1
    assert f"{len(rows)} of {len(rows)} rows" in said
    (tmp_path / "index.html").write_text("<nav></nav>")
    with pytest.raises(HistoryError, match=r"has no place for a link to changes\.html"):
        changes.write_changes_page(project.root, tmp_path)
    assert not (tmp_path / changes.PAGE).exists()


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
