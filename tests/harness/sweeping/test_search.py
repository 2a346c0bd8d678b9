"""Searches: the command on the page, going on with it, and what is refused."""

from __future__ import annotations

import json
import math
import shlex
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from markdown_blocks import ROOT, blocks, commands
from omegaconf import OmegaConf
from small_sweeps import stored, sweep

from spinbench.errors import SpinbenchError
from spinbench.sweeping import commit_sweeps, composition, search
from spinbench.sweeping.arguments import Arguments

PAGE = ROOT / "docs" / "how-to" / "search.md"
OPTUNA = "hydra/sweeper=optuna"
CELL = ("model=grid", "method=gibbs", "backend=numpy", "budget=smoke")


def test_the_page_and_going_on(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = (one for block in blocks(PAGE) if block.language == "sh" for one in commands(block))
    words = [word for word in shlex.split(line)[2:] if "n_trials" not in word]
    assert sweep(*words, "hydra.sweeper.n_trials=1") == 0
    folder = Path("multirun/step")
    first = json.loads((folder / search.RESULTS).read_text())["trials"]
    assert len(first) == 1
    assert len(stored(folder)) == 2, "two seeds each"
    capsys.readouterr()
    assert sweep(*words, "hydra.sweeper.n_trials=2") == 0
    printed = capsys.readouterr().out
    assert printed.count("measured before") == 2
    trials = json.loads((folder / search.RESULTS).read_text())["trials"]
    assert trials[:1] == first
    records = defaultdict(list)
    for record in stored(folder):
        error = record["metrics"]["marginal_rmse"]["value"] * math.sqrt(record["result"]["seconds"]["run"])
        records[record["config"]["method"]["step_size"]].append(error)
    assert len(records) == 2
    for trial in trials:
        step = float(trial["overrides"][0].partition("=")[2])
        assert 0.05 <= step <= 1.5
        assert trial["value"] == pytest.approx(math.sqrt(math.prod(records[step])))
    best = min(trials, key=lambda trial: trial["value"])["overrides"][0]
    assert f"the best of 2 trials: {best}, with" in printed
    (again,) = (line for line in printed.splitlines() if line.startswith("measure it again: "))
    composition.plan(shlex.split(again)[5:], multirun=False)


def test_what_is_proposed_gets_better(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without measuring anything: the launcher's jobs return the place of a record that says how good a setting is."""
    pytest.importorskip("optuna")

    class Launcher:
        def launch(self, cells: list[list[str]], initial_job_idx: int) -> list[object]:
            return [type("Return", (), {"return_value": cell}) for cell in cells]

    def record(cell: list[str]) -> dict[str, object]:
        step, form = (line.partition("=")[2] for line in sorted(cell, reverse=True))
        return {"step": float(step), "form": form}

    monkeypatch.setattr(search.records, "record_path", lambda folder, key: key)
    monkeypatch.setattr(search.records, "read_record", record)
    number = lambda one: abs(math.log(one["step"] / 0.1)) + (one["form"] != "good")  # noqa: E731
    monkeypatch.setitem(search.OBJECTIVES, "marginal_rmse", search.Objective(number, "distance"))  # type: ignore[arg-type]
    sought = search.Search("marginal_rmse", 60, 2, "tpe", 0, None)
    sought._parser, sought._launcher = OverridesParser.create(), Launcher()
    node = {"sweep_dir": str(tmp_path), "left_out": [], "hydra": {"launcher": {"_target_": "a.BasicLauncher"}}}
    sought._config = OmegaConf.create(node)
    sought.sweep(["method.form=bad,good,worse", "method.step=tag(log, interval(0.001, 10))"])
    values = [one["value"] for one in json.loads((tmp_path / search.RESULTS).read_text())["trials"]]
    assert len(values) == 60
    assert min(values) < 0.2
    assert sorted(values[30:])[15] < sorted(values[:10])[5] / 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((OPTUNA,), "nothing to search"),
        ((OPTUNA, "seed=0,1", "model.rows=2,3"), "nothing to search"),
        (("chains=interval(1, 4)",), r"chains=interval\(1, 4\) was given; .* hydra/sweeper=optuna"),
        ((OPTUNA, "chains=interval(4, 1)"), "LOW < HIGH"),
        ((OPTUNA, "method=dhmc", "method.step_size=tag(log, interval(0, 1))"), "begins above 0"),
        (
            (OPTUNA, "method=dhmc", "method.leapfrog_steps=interval(1, 5)"),
            "leapfrog_steps=2.528 .* an integer is needed",
        ),
        ((OPTUNA, "chains=1,2", "hydra.sweeper.n_trials=0"), "n_trials=0 was given; an integer, 1 or more"),
        (
            (OPTUNA, "chains=1,2", "hydra.sweeper.objective=luck"),
            "objective=luck was given; marginal_rmse, log_z_error",
        ),
        ((OPTUNA, "chains=1,2", "hydra.sweeper.sampler=tarot"), "sampler=tarot was given; tpe, random"),
    ],
)
def test_what_cannot_be_searched_is_refused(words: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(SpinbenchError, match=sentence):
        composition.plan([*CELL, *words], multirun=False)


def test_whole_numbers_are_searched_where_they_are_asked_for() -> None:
    pytest.importorskip("optuna")
    whole = composition.plan([*CELL, OPTUNA, "chains=int(interval(2, 5))"], multirun=False)
    assert whole.config.chains == 2


def test_commits_are_not_searched() -> None:
    with pytest.raises(SpinbenchError, match="hydra/sweeper=optuna and commits= were given"):
        commit_sweeps.sweep(Arguments.parse([*CELL, OPTUNA, "chains=1,2", "commits=HEAD"]))


def test_without_optuna(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "find_spec", lambda name: None if name == "optuna" else find_spec(name))
    with pytest.raises(SpinbenchError, match=r"pip install 'spinbench\[optuna\]'"):
        composition.plan([*CELL, OPTUNA, "chains=1,2"], multirun=False)


def test_a_search_counts_its_cells() -> None:
    plan = composition.plan(
        [*CELL, OPTUNA, "chains=1,2,3", "seed=range(5)", "hydra.sweeper.n_trials=7"], multirun=False
    )
    assert (plan.cells, plan.multirun) == (35, True)


@pytest.mark.parametrize(
    ("out", "cells"),
    [
        ("{seed: [3, 4]}", 7 * 3),
        ("{seed: [1, 2], chains: [1]}", 7 * 5),  # with other chains all are measured
        ("{seed: [1, 2], chains: [1, 2, 3]}", 7 * 3),
        ("{model.rows: [2], seed: [0, 1, 2]}", 7 * 2),
    ],
)
def test_cells_that_are_left_out_are_not_counted(out: str, cells: int, tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "fewer.yaml").write_text(
        f"# @package _global_\nleft_out: [{out}]\n"
        "hydra: {sweeper: {n_trials: 7, params: {seed: 'range(5)', chains: '1,2,3', model.rows: '2'}}}\n"
    )
    plan = composition.plan(
        [*CELL, OPTUNA, "experiment=fewer", f"hydra.searchpath=['file://{tmp_path}']"], multirun=True
    )
    assert plan.cells == cells


def test_a_search_in_which_nothing_is_left_is_refused() -> None:
    pytest.importorskip("optuna")
    with pytest.raises(SpinbenchError, match="left_out has every combination in it"):
        search.cells(
            composition.plan([*CELL, OPTUNA, "chains=1,2"], multirun=False).config,
            {"seed": ["seed=0"], "chains": ["chains=1", "chains=2"]},
            [{"seed": ["0"]}],
        )


def test_no_trial_has_a_number(tmp_path: Path) -> None:
    assert search.summarise(tmp_path, []) == ["the search has no trial yet"]
    (tmp_path / search.RESULTS).write_text(
        json.dumps({"meaning": "m", "trials": [{"overrides": ["a=1"], "value": None}]})
    )
    (line,) = search.summarise(tmp_path, [])
    assert "none of 1 trials" in line
    assert "seconds_per_ess" in line
