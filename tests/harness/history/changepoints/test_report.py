"""`spinbench history` names the commits that changed something, and no other."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import gate_runs
import numpy as np
import pytest

from spinbench import cli
from spinbench.errors import HistoryError
from spinbench.history import commits as chains
from spinbench.history.changepoints.report import find_steps, format_summary, sparkline
from spinbench.history.gate import gate
from spinbench.history.publish import publish
from spinbench.history.recorder import History, record
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
