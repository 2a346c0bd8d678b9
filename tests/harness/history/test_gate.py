"""The gate on a project's history: planted changes shut it, noise does not, and what it cannot know it says."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import gate_runs
import numpy as np
import pytest
from gate_runs import CELLS, Factor, group, nothing, slower

from spinbench import cli
from spinbench.errors import HistoryError
from spinbench.history import axes
from spinbench.history.axes import Cell
from spinbench.history.calibration import calibrate
from spinbench.history.gate import GateReport, gate
from spinbench.history.recorder import record

Two = tuple[str, str]
SLOW: Cell = ("grid", "gibbs", "numba")
TOUR = axes.family("inference")


def sitting(
    project: Any,
    rng: np.random.Generator,
    commit: str,
    factor: Factor = nothing,
    seeds: Iterable[int] = range(3),
    cells: Sequence[Cell] = CELLS,
    **changes: Any,
) -> list[str]:
    """Measure and record a commit; equal seeds give equal numbers. What `spinbench record` says."""
    made = [
        gate_runs.record(
            commit, cell, seed, gate_runs.values(rng, cell, factor, np.random.default_rng((number, seed))), **changes
        )
        for number, cell in enumerate(cells)
        for seed in seeds
    ]
    name = f"{commit[:8]}-{made[0]['id'][:6]}"
    return record(project.root, [project.sweep(name, made)]).sentences()


def worse(report: GateReport, metric: str = "step_seconds") -> set[tuple[str, ...]]:
    return {one.place[:3] for one in report.judgement.worse if one.metric.name == metric}


@pytest.fixture
def two(project: Any) -> tuple[str, str]:
    base = project.commit("good")
    return base, project.commit("next")


def test_a_planted_slowdown_shuts_the_gate(project: Any, rng: np.random.Generator) -> None:
    base = project.commit("good")
    sitting(project, rng, base)
    project.commit("never recorded")
    head = project.commit("bad")
    sitting(project, rng, head, slower(1.5, *group("dhmc", "numpy")))
    report = gate(project.root)
    assert (report.base, report.head, report.titles) == (base, head, ("good", "bad"))
    assert ("all", "dhmc", "numpy") in worse(report)
    assert {place[1:] for place in worse(report)} == {("dhmc", "numpy")}
    assert report.exit_status == 1
    text = str(report)
    assert "worse" in text
    assert "dhmc × numpy" in text
    assert "numbers identical in 36 of 36 runs" in text
    assert "changes from x1." in text
    backwards = gate(project.root, head, base)
    assert backwards.exit_status == 0
    assert "better" in str(backwards)


def test_nothing_changed(project: Any, rng: np.random.Generator, two: Two) -> None:
    for commit in two:
        sitting(project, rng, commit)
    report = gate(project.root)
    assert report.exit_status == 0
    assert "time of a step, 12 cells: " in str(report)
    assert "0 worse, 0 better" in report.summary()


def test_a_missing_estimate_is_no_failure(project: Any, rng: np.random.Generator, two: Two) -> None:
    base, head = two
    sitting(project, rng, base)
    made = []
    for number, cell in enumerate(CELLS):
        for seed in range(3):
            measured = gate_runs.values(rng, cell, accuracy=np.random.default_rng((number, seed)))
            one = gate_runs.record(head, cell, seed, measured)
            one["metrics"]["marginal_rmse"] = {"failed": "it came out as nan"}
            made.append(one)
    record(project.root, [project.sweep("head", made)])
    for report in (gate(project.root), gate(project.root, head, base)):
        assert report.exit_status == 0
        assert not report.judgement.failures


def test_a_cell_that_fails_now_shuts_the_gate(project: Any, rng: np.random.Generator, two: Two) -> None:
    base, head = two
    sitting(project, rng, base)
    sitting(project, rng, head, cells=CELLS[2:])
    broken = {"status": "failed", "error": "killed", "metrics": {}, "result": {}}
    sitting(project, rng, head, cells=CELLS[:1], **broken)
    report = gate(project.root)
    assert [(one.verdict, one.place[:3]) for one in report.judgement.failures] == [("fails", CELLS[0])]
    assert report.exit_status == 1
    assert "killed" in str(report)
    assert report.left_out == (f"1 cell of {base[:8]} without a counterpart at {head[:8]}",)
    assert gate(project.root, head, base).exit_status == 0
    assert "mended" in str(gate(project.root, head, base))


def test_budgets_in_seconds_are_not_judged_on_cost(project: Any, rng: np.random.Generator, two: Two) -> None:
    """`run_seconds` is the budget, and what a sample costs depends on it."""
    cells = TOUR.cells[::3]
    for commit, factor in zip(two, (1.0, 3.0), strict=True):
        made = []
        for number, cell in enumerate(cells):
            for seed in range(3):
                measured = gate_runs.values(rng, cell, slower(factor, *cells), np.random.default_rng((number, seed)))
                measured["run_seconds"] = 1.0 * factor
                made.append(gate_runs.record(commit, cell, seed, measured, family="inference"))
        record(project.root, [project.sweep(commit[:8], made)])
    report = gate(project.root)
    assert report.exit_status == 0
    assert "12 cells without a verdict: their budgets are in seconds" in str(report)


def test_records_of_other_machines_and_older_ones_are_not_judged_on_cost(
    project: Any, rng: np.random.Generator, two: Two
) -> None:
    base, head = two
    third = project.commit("third")
    other = {**gate_runs.MACHINE, "cpu": "slide rule"}
    sitting(project, rng, base)
    sitting(project, rng, head, slower(3.0, *CELLS), environment=other)
    report = gate(project.root)
    assert report.exit_status == 0
    assert "base and head were measured on different machines (cpu abacus and slide rule)" in str(report)
    sitting(project, rng, third, environment=other)
    assert gate(project.root).exit_status == 0
    for path in (project.root / ".asv" / "journal").rglob(f"{head}/record-*.json"):
        path.write_text(path.read_text().replace('"step_', '"other_'))
    assert "their records hold no times of single steps" in str(gate(project.root))


def test_disturbed_records_are_marked(project: Any, rng: np.random.Generator, two: Two) -> None:
    sitting(project, rng, two[0])
    said = sitting(project, rng, two[1], oversubscribed="its process waited for its core in 60% of the time")
    assert any(line.startswith("36 of them were disturbed by other programs") for line in said)
    assert "36 of 72 records were disturbed" in str(gate(project.root))


def test_noise_is_learnt_from_the_history(project: Any, rng: np.random.Generator) -> None:
    """On this machine a method takes 40 % longer every other day, whatever is committed."""
    days = [slower(1.4 if day % 2 else 1.0, *group("dhmc", "numba")) for day in range(6)]
    commits = [project.commit(f"day {day}") for day in range(6)]
    for commit, factor in zip(commits[-2:], days[-2:], strict=True):
        sitting(project, rng, commit, factor)
    assert gate(project.root).exit_status == 1
    for commit, factor in zip(commits[:-2], days[:-2], strict=True):
        sitting(project, rng, commit, factor)
    assert gate(project.root).exit_status == 0


def test_a_commit_measured_again_is_known_by_its_newest_sitting(
    project: Any, rng: np.random.Generator, two: Two
) -> None:
    base, head = two
    sitting(project, rng, base, slower(2.0, *CELLS))
    sitting(project, rng, head)
    assert "better" in str(gate(project.root))
    sitting(project, rng, base, started_at=1_800_000_000)
    assert "0 worse, 0 better" in gate(project.root).summary()


def test_values_that_asv_run_measured_are_known(project: Any, rng: np.random.Generator, two: Two) -> None:
    """They have no seeds, settings or times of steps: nothing is tested, and nothing fails."""
    base, head = two
    for commit in two:
        made = [project.record(cell, commit, seed) for cell in project.cells for seed in range(2)]
        record(project.root, [project.sweep(commit[:8], made)])
    for path in (project.root / ".asv" / "journal").rglob(f"{base}/record-*.json"):
        path.unlink()
    report = gate(project.root, base, head)
    assert report.exit_status == 0
    assert {one.place[:3] for one in report.judgement.findings} == set(project.cells)


def test_the_report_of_two_commits_says_the_same(
    project: Any, rng: np.random.Generator, two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spinbench.reporting import comparison

    monkeypatch.setenv("SPINBENCH_HISTORY", str(project.root))
    base, head = two
    for commit, factor in ((base, nothing), (head, slower(1.6, SLOW))):
        sitting(project, rng, commit, factor)
    found = comparison.compare(base, head)
    assert found.judgement == gate(project.root, base, head).judgement
    folders = sorted((project.root / "multirun").iterdir(), key=lambda folder: folder.name.startswith(head[:8]))
    assert comparison.compare(*map(str, folders)).judgement == found.judgement


def test_sentences_where_there_is_nothing_to_compare(project: Any, rng: np.random.Generator) -> None:
    first = project.commit("first")
    with pytest.raises(HistoryError, match="no commit of the current branch has results in the history of testbox"):
        gate(project.root)
    sitting(project, rng, first, cells=CELLS[:1])
    with pytest.raises(HistoryError, match=f"no commit before {first[:8]} has results"):
        gate(project.root)
    second = project.commit("second")
    with pytest.raises(HistoryError, match=f"commit {second} has no results .*; run `spinbench sweep`"):
        gate(project.root, first, second)
    with pytest.raises(HistoryError, match="'nothing' names no commit"):
        gate(project.root, "nothing")
    with pytest.raises(HistoryError, match="'--all' names no commit"):
        gate(project.root, "--all")
    with pytest.raises(HistoryError, match="base and head are both"):
        gate(project.root, first, "HEAD~1")
    with pytest.raises(HistoryError, match="in the history of other"):
        gate(project.root, machine="other")
    sitting(project, rng, second, cells=CELLS[1:2])
    with pytest.raises(HistoryError, match=f"nothing to compare .* 1 cell of {first[:8]} without a counterpart"):
        gate(project.root)


def test_records_of_other_settings_are_not_compared(project: Any, rng: np.random.Generator, two: Two) -> None:
    base, _ = two
    for commit in two:
        sitting(project, rng, commit)
    # As if the defaults had changed between the commits without a new version of the metrics.
    for path in (project.root / ".asv" / "journal").rglob(f"{base}/record-*.json"):
        path.write_text(path.read_text().replace('"chains": 16', '"chains": 8'))
    with pytest.raises(HistoryError, match=r"12 cells measured with other settings at"):
        gate(project.root)


@pytest.mark.parametrize(("scan", "left_out"), [("chromatic", False), ("raster", True)])
def test_settings_that_a_method_did_not_have_stand_at_their_defaults(
    project: Any, rng: np.random.Generator, two: Two, scan: str, left_out: bool
) -> None:
    """As if the later commit had given gibbs its scan."""
    for commit in two:
        sitting(project, rng, commit)
        for path in (project.root / ".asv" / "journal").rglob(f"{commit}/record-*.json"):
            one = json.loads(path.read_text())
            if one["axes"]["method"] == "gibbs":
                was = one["config"]["method"].pop("scan")
                assert was == "chromatic"
                one["config"]["method"] |= {} if commit == two[0] else {"scan": scan}
                path.write_text(json.dumps(one))
    found = gate(project.root)
    said = [text for text in found.left_out if "measured with other settings" in text]
    assert [text.partition(" at ")[0] for text in said] == ["6 cells measured with other settings"] * left_out


def test_calibration_of_a_history(
    project: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = project.commit("first")
    with pytest.raises(HistoryError, match="holds 0 sittings; measure and record one commit twice or more"):
        calibrate(project.root)
    for day in range(3):
        sitting(project, rng, first, seeds=range(4), started_at=1_700_000_000 + day)
    sitting(project, rng, project.commit("slower"), slower(2.0, *CELLS), seeds=range(4))
    found = calibrate(project.root, draws=20)
    assert found.sentence.startswith("history of testbox: 4 sittings of 2 commits, 12 cells; 6 of 12 pairs left out")
    assert [(row.seeds, row.past) for row in found.rows] == [(1, 0), (1, 2), (2, 0), (2, 2), (3, 0), (3, 2)]
    assert all(row.red.count == 0 and row.red.draws == 20 for row in found.rows)
    assert all(row.slower_group.count >= 18 for row in found.rows[2:])
    assert found.rows[2].reseeded.draws > 0
    monkeypatch.setenv("SPINBENCH_HISTORY", str(project.root))
    assert cli.main(["gate", "--calibrate"]) == 0
    assert "unchanged: red" in capsys.readouterr().out
