"""`spinbench report --compare` of two commits: what the journal has of each, and the planted difference alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spinbench import cli
from spinbench.errors import SpinbenchError
from spinbench.history import axes
from spinbench.history.recorder import record
from spinbench.reporting import comparison, paired

SEEDS = 4
FAMILY = axes.family("inference")


def enter(project: Any, rng: np.random.Generator, name: str, worse: float = 1.0) -> str:
    """A commit with records of both of Gibbs sampling's cells; the grid's errors are worse by a factor."""
    commit: str = project.commit(name)

    def value(metric: str, cell: Any, seed: int) -> dict[str, float]:
        factor = worse if (metric, cell[0]) == ("marginal_rmse", "grid") else 1.0
        return {"value": 0.1 * factor * float(np.exp(0.05 * rng.normal()))}

    cells = [cell for cell in project.cells if cell[1] == "gibbs"]
    made = [project.record(cell, commit, seed, value) for cell in cells for seed in range(SEEDS)]
    record(project.root, [project.sweep(name, made)])
    return commit


def test_the_planted_difference_of_two_commits_is_found_and_nothing_else(
    project: Any,
    rng: np.random.Generator,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SPINBENCH_HISTORY", str(project.root))
    before = enter(project, rng, "first")
    enter(project, rng, "second", worse=2.0)
    assert cli.main(["report", "--compare", before[:10], "HEAD", "--output", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    # of errors of marginals and of pairs, and of samples per ESS: two cells and their group
    assert "B against A: 9 tests: 2 worse" in text
    assert (tmp_path / comparison.PAGE).read_text().count("<tr data-number") == 2 * len(FAMILY.metrics) + 3
    found = comparison.compare(before, "main")
    assert {(one.metric.name, one.place.model, one.verdict) for one in found.beyond_noise()} == {
        ("marginal_rmse", "grid", "worse"),
        ("marginal_rmse", "all", "worse"),
    }
    (cell,) = [one for one in found.beyond_noise() if one.level == "cell"]
    assert cell.seeds == (SEEDS, SEEDS)
    assert cell.ratio == pytest.approx(2.0, rel=0.15)  # e^(4 * 0.05 * sqrt(2 / 4))
    assert paired.compare(comparison.load(before), comparison.load("main")).judgement == found.judgement


def test_commits_without_records_and_unknown_ones_are_sentences(
    project: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPINBENCH_HISTORY", str(project.root))
    enter(project, rng, "first")
    project.commit("unmeasured")
    with pytest.raises(SpinbenchError, match="commit HEAD has no records in the history of testbox"):
        comparison.load("HEAD")
    assert cli.main(["report", "--compare", "HEAD~1", "no-such-commit"]) == 2
    assert "no-such-commit" in capsys.readouterr().err
