"""`spinbench history` names the commits that changed something, and no other."""

from __future__ import annotations

from typing import Any

import gate_runs
import numpy as np
import pytest
from gate_runs import CELLS, group, slower, wronger

from spinbench import cli
from spinbench.history.recorder import record
from spinbench.history.steps import wording
from spinbench.history.steps.report import steps

SLOW, WRONG, SKIPPED = 5, 8, 7
CELLS_OF = [*group("gibbs", "numba"), *group("dhmc", "numpy")]


@pytest.fixture
def commits(project: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Twelve, of which one is not measured, one slows one method down and another makes the other one wrong."""
    names = []
    for turn in range(12):
        names.append(project.commit(f"commit {turn}"))
        if turn == SKIPPED:
            continue
        slow = slower(1.5 if turn >= SLOW else 1.0, *group("dhmc", "numpy"))
        wrong = wronger(2.5 if turn >= WRONG else 1.0, *group("gibbs", "numba"))
        made = [
            gate_runs.record(
                names[-1],
                cell,
                seed,
                gate_runs.values(
                    rng,
                    cell,
                    lambda metric, cell, slow=slow, wrong=wrong: slow(metric, cell) * wrong(metric, cell),
                    np.random.default_rng((CELLS.index(cell), seed, turn >= WRONG)),
                ),
            )
            for cell in CELLS_OF
            for seed in range(3)
        ]
        record(project.root, [project.sweep(f"sweep{turn}", made)])
    monkeypatch.setenv("SPINBENCH_HISTORY", str(project.root))
    return names


def test_commits_are_named_and_no_other(project: Any, commits: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    found = steps(project.root)
    assert (found.machine, len(found.commits)) == ("testbox", 11)
    assert {(one.step.metric.judged, one.commit.name) for one in found.found} == {
        ("cost", commits[SLOW]),
        ("accuracy", commits[WRONG]),
    }
    assert cli.main(["history", "--worse"]) == 0
    said = capsys.readouterr().out
    assert f"{commits[SLOW][:8]} commit {SLOW}  " in said
    assert f"{commits[WRONG][:8]} commit {WRONG} (or one of 1 before it)" in said
    assert "dhmc × numpy (in 3 cells by itself)" in said
    assert f"11 commits, {commits[0][:8]} to {commits[-1][:8]}: " in said
    assert cli.main(["history", "--since", commits[SLOW]]) == 0
    later = capsys.readouterr().out
    assert f"commit {SLOW} " not in later
    assert f"commit {WRONG} " in later
    assert cli.main(["history", "--last", "3"]) == 0
    assert "no change beyond noise" in capsys.readouterr().out


def test_a_history_of_one_commit_and_a_wrong_name(
    project: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPINBENCH_HISTORY", str(project.root))
    project.commit("first")
    assert cli.main(["history"]) == 2
    assert "knows 0 commits of the current branch" in capsys.readouterr().err
    assert cli.main(["history", "--since", "nowhere"]) == 2
    assert "'nowhere' names no commit" in capsys.readouterr().err


def test_pictures_show_what_is_around_the_change() -> None:
    nan = float("nan")
    assert wording.sparkline([1.0, 1.0, nan, 2.0, 2.0], 3) == "▁▁·|██"
    assert wording.sparkline([1.0, 1.0], 1) == "▁|▁"
    long = wording.sparkline([1.0] * 50 + [3.0] * 50, 50)
    assert long == "▁" * 15 + "|" + "█" * 15
