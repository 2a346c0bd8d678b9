"""The gate on a history: planted changes shut it, noise does not, and the rest is said."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import gate_runs
import numpy as np
import pytest
from gate_runs import CELLS, Factor, group, nothing, slower, wronger
from markdown_blocks import names_off_the_page

from spinbench import cli
from spinbench.errors import HistoryError, SpinbenchError
from spinbench.history import axes
from spinbench.history.axes import Cell
from spinbench.history.calibration import calibrate
from spinbench.history.gate import GateReport, gate, write_report
from spinbench.history.recorder import record
from spinbench.reporting import comparison

Two = tuple[str, str]
Edit = Callable[[dict[str, Any]], object]
SLOW: Cell = ("grid", "gibbs", "numba")
TOUR = axes.family("inference")
OTHER_MACHINE = {"environment": {**gate_runs.MACHINE, "cpu": "slide rule"}}
BROKEN = {"status": "failed", "error": "killed", "metrics": {}, "result": {}}


def sitting(
    project: Any,
    rng: np.random.Generator,
    commit: str,
    factor: Factor = nothing,
    seeds: Iterable[int] = range(3),
    cells: Sequence[Cell] = CELLS,
    edit: Edit = lambda one: None,
    **changes: Any,
) -> list[str]:
    """Measure and record a commit; equal seeds give equal numbers. What `spinbench record` says.

    `edit` changes what the history keeps, as if another version had written it.
    """
    made = [
        gate_runs.record(
            commit, cell, seed, gate_runs.values(rng, cell, factor, np.random.default_rng((number, seed))), **changes
        )
        for number, cell in enumerate(cells)
        for seed in seeds
    ]
    name = f"{commit[:8]}-{made[0]['id'][:6]}"
    report = record(project.root, [project.sweep(name, made)])
    for path in (project.root / ".asv" / "journal").rglob(f"{commit}/record-*.json"):
        kept = json.loads(path.read_text())
        edit(kept)
        path.write_text(json.dumps(kept))
    return report.sentences()


def worse(report: GateReport, metric: str = "step_seconds") -> set[tuple[str, ...]]:
    return {one.place[:3] for one in report.judgement.worse if one.metric.name == metric}


def unlearn(one: dict[str, Any]) -> None:
    one["metrics"]["marginal_rmse"] = {"failed": "it came out as nan"}


def untimed(one: dict[str, Any]) -> None:
    one["metrics"] = {name: value for name, value in one["metrics"].items() if not name.startswith("step_")}


def scan(new: str | None) -> Edit:
    """As if a later commit had given gibbs its scan; None: before it."""

    def edit(one: dict[str, Any]) -> None:
        method = one["config"]["method"]
        if method["name"] == "gibbs":
            others = {name: value for name, value in method.items() if name != "scan"}
            one["config"]["method"] = others if new is None else {**others, "scan": new}

    return edit


@pytest.fixture
def two(project: Any, monkeypatch: pytest.MonkeyPatch) -> Two:
    monkeypatch.setenv("SPINBENCH_HISTORY", str(project.root))
    return project.commit("good"), project.commit("next")


def test_a_planted_slowdown_shuts_the_gate(project: Any, rng: np.random.Generator) -> None:
    base, _, head = (project.commit(title) for title in ("good", "never recorded", "bad"))
    sitting(project, rng, base)
    sitting(project, rng, head, slower(1.5, *group("dhmc", "numpy")))
    report = gate(project.root)
    assert (report.base, report.head, report.titles, report.exit_status) == (base, head, ("good", "bad"), 1)
    assert ("all", "dhmc", "numpy") in worse(report)
    assert {place[1:] for place in worse(report)} == {("dhmc", "numpy")}
    for line in ("worse", "dhmc × numpy", "numbers identical in 36 of 36 runs", "changes from x1."):
        assert line in str(report)
    backwards = gate(project.root, head, base)
    assert backwards.exit_status == 0
    assert "better" in str(backwards)


@pytest.mark.parametrize(
    ("base", "head", "said"),
    [
        pytest.param({}, {}, ["time of a step, 12 cells: ", "0 worse, 0 better"], id="nothing"),
        pytest.param({}, {"edit": unlearn}, ["0 worse, 0 better"], id="estimates are missing"),
        pytest.param({"edit": unlearn}, {}, ["0 worse, 0 better"], id="estimates were missing"),
        pytest.param(
            {},
            {"factor": slower(3.0, *CELLS), **OTHER_MACHINE},
            [r"base and head were measured on different machines \(cpu abacus and slide rule\)"],
            id="the machine",
        ),
        pytest.param(
            {"edit": untimed},
            {"factor": slower(3.0, *CELLS)},
            ["their records hold no times of single steps"],
            id="what records hold",
        ),
        pytest.param({}, {"oversubscribed": "it waited"}, ["36 of 72 records were disturbed"], id="disturbances"),
        pytest.param(
            {"cells": TOUR.cells[::3], "family": "inference"},
            {"cells": TOUR.cells[::3], "family": "inference", "factor": slower(3.0, *TOUR.cells)},
            ["12 cells without a verdict: their budgets are in seconds"],
            id="cost, of budgets in seconds",
        ),
        pytest.param({"edit": scan(None)}, {"edit": scan("chromatic")}, ["0 worse"], id="a setting came, as it was"),
        pytest.param(
            {"edit": scan(None)},
            {"edit": scan("raster")},
            ["6 cells measured with other settings"],
            id="a setting came, with another value",
        ),
    ],
)
def test_what_shuts_no_gate(
    base: dict[str, Any], head: dict[str, Any], said: list[str], project: Any, rng: np.random.Generator, two: Two
) -> None:
    for commit, options in zip(two, (base, head), strict=True):
        sitting(project, rng, commit, **options)
    report = gate(project.root)
    assert report.exit_status == 0, str(report)
    assert not report.judgement.changes
    for fragment in said:
        assert re.search(fragment, f"{report}\n{report.summary()}\n{report.judgement.exclusions}")
    other_settings = any("other settings" in text for text in report.judgement.exclusions)
    assert other_settings == ("other settings" in said[0])


def test_disturbed_records_are_marked_as_they_enter(project: Any, rng: np.random.Generator, two: Two) -> None:
    said = sitting(project, rng, two[1], cells=CELLS[:2], oversubscribed="its process waited for its core")
    assert any(line.startswith("6 of them were disturbed by other programs") for line in said)


def test_a_cell_that_fails_now_shuts_the_gate(project: Any, rng: np.random.Generator, two: Two) -> None:
    base, head = two
    sitting(project, rng, base)
    sitting(project, rng, head, cells=CELLS[2:])
    sitting(project, rng, head, cells=CELLS[:1], **BROKEN)
    report, backwards = gate(project.root), gate(project.root, head, base)
    assert [(one.verdict, one.place[:3]) for one in report.judgement.changes] == [("fails", CELLS[0])]
    assert (report.exit_status, backwards.exit_status) == (1, 0)
    assert "killed" in str(report)
    assert "mended" in str(backwards)
    assert report.judgement.exclusions == (f"1 cell of {base[:8]} without a counterpart at {head[:8]}",)


def test_noise_is_learnt_from_the_history(project: Any, rng: np.random.Generator) -> None:
    """On this machine a method takes 40 % longer every other day, whatever is committed."""
    days = [slower(1.4 if day % 2 else 1.0, *group("dhmc", "numba")) for day in range(6)]
    commits = [project.commit(f"day {day}") for day in range(6)]
    for part, status in ((slice(4, 6), 1), (slice(0, 4), 0)):
        for commit, factor in zip(commits[part], days[part], strict=True):
            sitting(project, rng, commit, factor)
        assert gate(project.root).exit_status == status


def test_a_commit_measured_again_is_known_by_its_newest_sitting(
    project: Any, rng: np.random.Generator, two: Two
) -> None:
    base, head = two
    sitting(project, rng, base, slower(2.0, *CELLS))
    sitting(project, rng, head)
    assert "better" in str(gate(project.root))
    sitting(project, rng, base, started_at=1_800_000_000)
    assert "0 worse, 0 better" in gate(project.root).summary()


def test_values_that_asv_run_measured_are_known(project: Any, two: Two) -> None:
    """They have no seeds, settings or times of steps: nothing is tested, and nothing fails."""
    for commit in two:
        made = [project.record(cell, commit, seed) for cell in project.cells for seed in range(2)]
        record(project.root, [project.sweep(commit[:8], made)])
    for path in (project.root / ".asv" / "journal").rglob(f"{two[0]}/record-*.json"):
        path.unlink()
    report = gate(project.root, *two)
    assert report.exit_status == 0
    assert {one.place[:3] for one in report.judgement.findings} == set(project.cells)


def test_the_report_of_two_commits_says_the_same(
    project: Any, rng: np.random.Generator, two: Two, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, head = two
    sitting(project, rng, base)
    sitting(project, rng, head, lambda *of: slower(1.6, SLOW)(*of) * wronger(2.0, CELLS[0])(*of))
    assert cli.main(["report", "--compare", base[:10], "HEAD", "--output", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    found = comparison.compare_sweeps_or_commits(base, "main")
    assert f"B against A: {len([one for one in found.findings if one.p is not None])} tests: " in said
    assert "grid" in (tmp_path / comparison.PAGE).read_text()
    assert ("marginal_rmse", CELLS[0]) in {(one.metric.name, one.place[:3]) for one in found.significant}
    assert found == gate(project.root, base, head).judgement
    assert found == comparison.compare_records(comparison.load_records(base), comparison.load_records("main"))
    folders = sorted((project.root / "multirun").iterdir(), key=lambda folder: folder.name.startswith(head[:8]))
    assert comparison.compare_sweeps_or_commits(*map(str, folders)) == found
    project.commit("unmeasured")
    with pytest.raises(SpinbenchError, match="commit HEAD has no records in the history of testbox"):
        comparison.load_records("HEAD")
    assert cli.main(["report", "--compare", "HEAD~1", "no-such-commit"]) == 2
    assert "no-such-commit" in capsys.readouterr().err


def test_sentences_where_there_is_nothing_to_compare(project: Any, rng: np.random.Generator) -> None:
    def refused(*commits: str, because: str, **options: str) -> None:
        with pytest.raises(HistoryError, match=because):
            gate(project.root, *commits, **options)

    first = project.commit("first")
    refused(because="no commit of the current branch has results in the history of testbox")
    sitting(project, rng, first, cells=CELLS[:1])
    refused(because=f"no commit before {first[:8]} has results")
    second = project.commit("second")
    refused(first, second, because=f"commit {second} has no results .*; run `spinbench sweep`")
    refused("nothing", because="'nothing' names no commit")
    refused("--all", because="'--all' names no commit")
    refused(first, "HEAD~1", because="base and head are both")
    refused(machine="other", because="in the history of other")
    sitting(project, rng, second, cells=CELLS[1:2])
    refused(because=f"nothing to compare .* 1 cell of {first[:8]} without a counterpart")


def test_records_of_other_settings_are_not_compared(project: Any, rng: np.random.Generator, two: Two) -> None:
    """As if the defaults had changed between the commits without a new version of the metrics."""
    sitting(project, rng, two[0], edit=lambda one: one["config"].update(chains=8))
    sitting(project, rng, two[1])
    with pytest.raises(HistoryError, match=r"12 cells measured with other settings at"):
        gate(project.root)


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
    assert {(row.red.count, row.red.draws) for row in found.rows} == {(0, 20)}
    assert all(row.slower_group.count >= 18 for row in found.rows[2:])
    assert found.rows[2].reseeded.draws > 0
    monkeypatch.setenv("SPINBENCH_HISTORY", str(project.root))
    assert cli.main(["gate", "--calibrate"]) == 0
    assert "unchanged: red" in capsys.readouterr().out


def test_the_gate_prints_its_numbers_as_a_document(
    project: Any, rng: np.random.Generator, two: Two, capsys: pytest.CaptureFixture[str]
) -> None:
    for commit, factor in zip(two, (nothing, slower(2.0, *group("gibbs", "numba"))), strict=True):
        sitting(project, rng, commit, factor)
    capsys.readouterr()
    assert run_gate("--json", "--annotate") == 1
    document = json.loads(capsys.readouterr().out)
    report, comparison = gate(project.root), document["gate"]
    assert (document["version"], document["command"], document["exit_status"]) == (1, "gate", 1)
    assert (comparison["verdict"], comparison["base"], comparison["head"]) == ("FAIL", report.base, report.head)
    for written, finding in zip(comparison["findings"], report.judgement.findings, strict=True):
        assert (written["metric"], written["place"]) == (finding.metric.name, list(finding.place))
        assert (written["ratio"], written["p"]) == (finding.ratio, finding.p)
    assert names_off_the_page(document) == set()
    assert run_gate("--json", "--calibrate") == 2


def run_gate(*words: str) -> int:
    return cli.main(["gate", *words])


@pytest.mark.parametrize(
    ("factor", "verdict", "undecided", "status"),
    [
        (slower(2.0, SLOW), r"FAIL: \d+ of \d+ tests worse; grid gibbs numba, .*: x(1\.9|2\.)", "pass", 1),
        (nothing, r"UNDECIDED: \d+ of \d+ tests undecided; .*changes from x1\.\d\d are found", "pass", 0),
        (nothing, "UNDECIDED: ", "fail", 1),
    ],
)
def test_the_last_line_is_the_verdict(
    factor: Factor,
    verdict: str,
    undecided: str,
    status: int,
    project: Any,
    rng: np.random.Generator,
    two: Two,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for commit, change in zip(two, (nothing, factor), strict=True):
        sitting(project, rng, commit, change)
    files = [str(tmp_path / name) for name in ("gate.md", "gate.xml")]
    capsys.readouterr()
    words = ["--undecided", undecided, "--annotate", "--output", files[0], "--output", files[1]]
    assert run_gate(*words) == status
    lines = capsys.readouterr().out.splitlines()
    assert re.match(verdict, lines[-1])
    kind = "error" if lines[-1].startswith("FAIL") else "warning"
    assert lines[0] == f"::{kind} title=spinbench gate::{lines[-1]}"
    assert Path(files[0]).read_text().startswith(f"**{lines[-1]}**\n\n- base ")
    suite = ElementTree.parse(files[1]).getroot().find("testsuite")
    assert suite is not None
    counts = {tag: len(suite.findall(f"testcase/{tag}")) for tag in ("failure", "skipped")}
    assert (suite.get("failures"), suite.get("skipped")) == (str(counts["failure"]), str(counts["skipped"]))
    judgement = gate(project.root).judgement
    assert counts["failure"] == len(judgement.worse)
    assert int(suite.get("tests", 0)) == sum(finding.p is not None for finding in judgement.findings)


def test_files_of_a_failed_cell(project: Any, rng: np.random.Generator, two: Two, tmp_path: Path) -> None:
    base, head = two
    sitting(project, rng, base)
    sitting(project, rng, head, cells=CELLS[:1], **{**BROKEN, "error": "killed <&\x1b[31m>"})
    for name in ("gate.md", "gate.xml"):
        write_report(gate(project.root), tmp_path / name)
    (failure,) = ElementTree.parse(tmp_path / "gate.xml").getroot().iter("failure")
    assert failure.get("message", "").startswith("killed <&")
    assert (
        (tmp_path / "gate.md")
        .read_text()
        .startswith(
            f"**FAIL: {' '.join(CELLS[0])} fails, and worked: killed &lt;&amp;\N{REPLACEMENT CHARACTER}[31m&gt;**"
        )
    )
