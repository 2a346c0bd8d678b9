"""What `spinbench sweep --resume FOLDER` takes from a folder that may come from somebody else."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from small_sweeps import sweep

from spinbench.measuring import records
from spinbench.measuring.record_types import Record
from spinbench.sweeping.arguments import Arguments
from spinbench.sweeping.sweep import open_folder
from tests.helpers.small_records import whole


@pytest.fixture(autouse=True)
def _somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        "hydra.job.env_set.PYTHONPATH=/evil",
        "++hydra.callbacks.mine={_target_: os.system}",
        "hydra/launcher=evil",
        "+hydra.searchpath=[file:///evil]",
        "model@hydra.job=grid",
        "'hydra'.job.name=evil",
        "+method.extra={_target_: os.system}",
        "launcher.address=evil:6379",
        "experiment=../../../../evil",
        "experiment='../evil'",
        "experiment=tour,../evil",
        "launcher=/evil",
        "launcher='/evil'",
        "experiment=[tour,/evil]",
        "+size=file://evil",
        "class=${oc.env:SECRET}",
        "model.path='${oc.env:SECRET}'",
        "commits=evil",
        "launcher.partition='a\nevil'",
    ],
)
def test_a_file_cannot_make_a_resumed_sweep_run_code(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("out").mkdir()
    content = {"overrides": ["model=grid", line], "started_in": os.getcwd(), "report": None}
    Path("out/sweep.json").write_text(json.dumps(content))
    assert sweep("--resume", "out") == 2
    assert f"asks for {line!r}, which is not taken from a file" in capsys.readouterr().err


def test_what_a_file_may_not_bring_stands_in_the_command_to_go_on_with() -> None:
    given = ("model=grid", "seed=0,1", "hydra.launcher.gres=gpu:1")
    assert Arguments.parse(given[:2]).again("out") == "spinbench sweep --resume out"
    assert Arguments.parse(given).again("out") == f"spinbench sweep --resume out {' '.join(given)}"


@pytest.mark.parametrize("line", ["model.path=mine.uai", "model.path=/its.uai,mine.uai", "model.path=['/a','b']"])
def test_relative_paths_are_not_looked_for_elsewhere(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Records of failures would be all that comes of it."""
    Path("out").mkdir()
    content = {"overrides": ["model=file", line], "started_in": "/elsewhere", "report": None}
    Path("out/sweep.json").write_text(json.dumps(content))
    assert sweep("--resume", "out") == 2
    assert f"{line!r} that was started in /elsewhere" in capsys.readouterr().err
    assert not list(Path("out").rglob("record-*.json"))


def record(number: int, status: str, commit: str = "a") -> Record:
    content = {"id": str(number), "status": status, "started_at": number, "config": {}, "git": {"commit": commit}}
    return whole({**content, "result": None})


def test_a_failed_record_hides_no_good_one_of_the_same_code() -> None:
    good, failed, later = record(1, "ok"), record(2, "failed"), record(3, "failed", commit="b")
    assert records.latest_per_cell([good, failed]) == [good]
    assert records.latest_per_cell([failed, good]) == [good]
    assert records.latest_per_cell([good, failed, later]) == [later]


@pytest.mark.parametrize(
    "line",
    [
        "model=uai14/Grids_12,grid",
        "model.path=../data/x.uai",
        "sweep_dir=../out",
        "method=[gibbs,bp]",
        "seed=range(0,6)",
        "+method.extra=a..b",
        "left_out=[{method:[exact],backend:[jax]}]",
        "budget.seconds=.1",
        "model.path='/it''s here/a b.uai'",
    ],
)
def test_what_is_measured_is_taken_from_a_file(line: str) -> None:
    assert Arguments.parse([line, "seed=0"]).again("out") == "spinbench sweep --resume out"


def test_who_runs_the_cells_may_change_and_the_cells_stay() -> None:
    Path("out").mkdir()
    stored = {"overrides": ["model=grid", "seed=0,1", "time_limit=60"], "started_in": str(Path.cwd())}
    Path("out/sweep.json").write_text(json.dumps(stored))
    resume = ["--resume", "out"]
    assert Arguments.parse(resume).overrides == tuple(stored["overrides"])
    assert Arguments.parse([*resume, "launcher=joblib", "time_limit=9"]).overrides == (
        *("model=grid", "seed=0,1", "launcher=joblib", "time_limit=9"),
    )


def test_a_call_never_replaces_what_a_folder_says() -> None:
    """Else the cells of its first start would be left out from then on."""
    Path("out").mkdir()
    stored = {"overrides": ["model=grid", "seed=0,1"], "started_in": "/elsewhere", "report": None}
    Path("out/sweep.json").write_text(json.dumps(stored))
    open_folder(Arguments.parse(["--resume", "out", "model=torus", "seed=5"]), None, None)
    assert json.loads(Path("out/sweep.json").read_text()) == stored
