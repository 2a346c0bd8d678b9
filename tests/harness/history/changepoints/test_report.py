"""`spinbench history` names the commits that changed something, and no other."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import gate_runs
import numpy as np
import pytest

from spinbench import cli
from spinbench.errors import HistoryError
from spinbench.history import commits as chains
from spinbench.history.changepoints.report import sparkline, steps, summary
from spinbench.history.gate import gate
from spinbench.history.publish import publish
from spinbench.history.recorder import History, record
from spinbench.reporting.past import changes, verdicts


def test_commits_are_named_and_no_other(project: Any, planted: Any, capsys: pytest.CaptureFixture[str]) -> None:
    found = steps(project.root)
    assert (found.machine, len(found.commits)) == ("testbox", 11)
    assert {(one.step.metric.judged, one.commit.name) for one in found.found} == {
        ("cost", planted.slow),
        ("accuracy", planted.wrong),
    }
    assert cli.main(["history", "--worse"]) == 0
    said = capsys.readouterr().out
    assert f"{planted.slow[:8]} commit 5  " in said
    assert f"{planted.wrong[:8]} commit 8 (or one of 1 before it)" in said
    assert "dhmc × numpy (in 3 cells by itself)" in said
    assert f"11 commits, {planted.commits[0][:8]} to {planted.commits[-1][:8]}: " in said
    assert cli.main(["history", "--since", planted.slow]) == 0
    later = capsys.readouterr().out
    assert "commit 5 " not in later
    assert "commit 8 " in later
    assert cli.main(["history", "--last", "3"]) == 0
    assert "no change beyond noise" in capsys.readouterr().out


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
    found = steps(project.root).found
    assert {one.commit.title for one in found} == {"day 4"}
    assert all(one.worse for one in found)
    assert gate(project.root).titles == ("day 8", "merge")


def test_a_sweep_over_commits_is_red_where_only_all_of_them_tell(project: Any, planted: Any) -> None:
    """Of neighbours the gate may not know enough."""
    measured = [name for name in planted.commits if name in History.open(project.root).commits()]
    row = verdicts.judged(project.root, measured)
    said = verdicts.lines(row)
    together = said[said.index("all commits together:") :]
    assert {one.commit.name for one in row.found.found} == {planted.slow, planted.wrong}
    assert any(f"{planted.wrong[:8]} commit 8  " in line for line in together)
    assert replace(row, steps=()).red
    quiet = verdicts.judged(project.root, measured[:4])
    assert not quiet.red
    assert "no change beyond noise" in verdicts.lines(quiet)[-1]


def test_commits_without_a_common_cell_have_no_verdict(project: Any, planted: Any) -> None:
    nothing = replace(steps(project.root), series=0, found=())
    assert summary(nothing).endswith(": no cell was measured at two of them, so that nothing can be said")


def test_a_commit_without_a_number_may_be_meant(project: Any, planted: Any) -> None:
    """Where a cell's runs of a commit do not count, say as the machine was slow, the one after it shows the change."""
    home = project.root / ".asv"
    for path in home.glob(f"journal/*/*/{planted.slow}/record-*.json"):
        if json.loads(path.read_text())["axes"]["method"] == "dhmc":
            path.unlink()
    (file,) = home.glob(f"results/*/{planted.slow[:8]}-*.json")
    file.unlink()  # asv's, which has them, too
    for commits in (None, [*planted.commits[:7], *planted.commits[8:]]):
        found = steps(project.root, commits=commits).found
        costs = [one.commit for one in found if one.step.metric.judged == "cost"]
        assert {(one.title, one.skipped) for one in costs} == {("commit 6", 1)}


def test_of_many_records_the_newest_commits_count(project: Any, planted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "MOST_RECORDS", 3 * 18 + 1)
    assert steps(project.root).commits == tuple(planted.commits[-3:])
    monkeypatch.setattr(chains, "MOST_RECORDS", 1)
    assert len(steps(project.root).commits) == 2


def test_a_history_of_one_commit_and_a_wrong_name(
    project: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPINBENCH_HISTORY", str(project.root))
    project.commit("first")
    assert cli.main(["history"]) == 2
    assert "knows 0 commits of the current branch" in capsys.readouterr().err
    assert cli.main(["history", "--since", "nowhere"]) == 2
    assert "'nowhere' names no commit" in capsys.readouterr().err
    for last in (-3, 0, 1):
        assert cli.main(["history", "--last", str(last)]) == 2
        assert f"the last {last} commits were asked for" in capsys.readouterr().err


def test_pictures_show_what_is_around_the_change() -> None:
    nan = float("nan")
    assert sparkline([1.0, 1.0, nan, 2.0, 2.0], 3) == "▁▁·|██"
    assert sparkline([1.0, 1.0], 1) == "▁|▁"
    long = sparkline([1.0] * 50 + [3.0] * 50, 50)
    assert long == "▁" * 15 + "|" + "█" * 15


def test_published_page_names_the_commits_and_no_other(project: Any, planted: Any, browser: Any) -> None:
    index = publish(project.root)
    assert f'<a href="{changes.PAGE}">' in index.read_text()
    browser.open((index.parent / changes.PAGE).as_uri())
    rows = browser.evaluate("Array.from(document.querySelectorAll('table.sortable tbody tr'), row => row.innerText)")
    assert {re.search(r"\b[0-9a-f]{8}\b", row)[0] for row in rows} == {planted.slow[:8], planted.wrong[:8]}  # type: ignore[index]
    assert all(row.startswith("worse") for row in rows)
    assert browser.evaluate("document.querySelectorAll('tbody tr:first-child circle').length") == 11
    said = browser.evaluate("document.body.innerText")
    assert said.count("on testbox: ") == 1
    assert f"{len(rows)} of {len(rows)} rows" in said


def test_a_page_that_is_not_asvs_is_refused(project: Any, planted: Any, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<nav></nav>")
    with pytest.raises(HistoryError, match=r"has no place for a link to changes\.html"):
        changes.write(project.root, tmp_path)
    assert not (tmp_path / changes.PAGE).exists()
