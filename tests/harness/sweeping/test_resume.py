"""What a sweep takes from folders and lines of strangers: nothing of them is run, and nothing takes for ever."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_sweeps import sweep

from spinbench.errors import SpinbenchError
from spinbench.measuring import records
from spinbench.measuring.record_types import Record
from spinbench.sweeping import composition
from spinbench.sweeping.arguments import Arguments
from spinbench.sweeping.sweep import open_folder
from tests.helpers.small_records import whole


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
    stored = {"overrides": ["model=file", "model.path=a.uai", "seed=0,1"], "started_in": "/elsewhere", "report": None}
    Path("out/sweep.json").write_text(json.dumps(stored))
    given = ["seed=1,0", "model=file", "launcher=joblib", "hydra.launcher.n_jobs=2", "model.path=/there/a.uai"]
    open_folder(Arguments.parse(["--resume", "out", *given]), None, None)
    assert json.loads(Path("out/sweep.json").read_text()) == stored


@pytest.mark.parametrize(
    ("given", "differs"),
    [
        (["model=file", "model.path=b.uai", "seed=0,1"], "of model.path=a.uai, and model.path=b.uai was given"),
        (["seed=5"], "of model=file model.path=a.uai seed=0,1, and seed=5 was given"),
        (["model=file", "model.path=a.uai", "seed=0,1", "chains=8"], "of defaults, and chains=8 was given"),
        (
            ["model=file", "model.path=a.uai", "seed=0,1", "model.evidence=e.evid"],
            "and model.evidence=e.evid was given",
        ),
        (["model.path=a.uai", "seed=0,1"], "of model=file, and nothing was given"),
    ],
)
def test_cells_of_another_sweep_are_refused(given: list[str], differs: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("out").mkdir()
    overrides = ["model=file", "model.path=a.uai", "seed=0,1"]
    stored = {"overrides": overrides, "started_in": str(Path.cwd()), "report": None}
    Path("out/sweep.json").write_text(json.dumps(stored))
    assert sweep("--resume", "out", *given) == 2
    message = capsys.readouterr().err
    assert "--resume out goes on with its cells, " in message
    assert differs in message
    assert message.strip().endswith("or start another sweep, into the same folder with sweep_dir=FOLDER")


MODULES = ("asv", "cloudpickle", "hydra_plugins", "joblib", "json", "loky", "numpy", "pip", "sitecustomize", "submitit")
CELL = ("model=grid", "model.rows=2", "model.cols=2", "method=exact", "backend=numpy", "seed=0,1")


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["joblib", "submitit"])
def test_modules_beside_a_sweep_are_not_imported(tmp_path: Path, launcher: str) -> None:
    for module in MODULES:
        (tmp_path / module).mkdir()
        (tmp_path / module / "__init__.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write(__name__)\n")
    start = "import sys; from spinbench.__main__ import main; sys.exit(main())"
    command = [sys.executable, "-P", "-c", start, "sweep", "-m", *CELL, f"launcher={launcher}", "sweep_dir=out"]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONSAFEPATH"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert not (tmp_path / "ran").exists()
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "out" / "records").glob("record-*.json"))) == 2


@pytest.mark.parametrize("launcher", ["submitit", "slurm"])
def test_results_are_unpickled_from_a_folder_of_a_name_that_nobody_knew(launcher: str) -> None:
    """A folder that somebody else made may hold results of jobs of any number."""
    config = composition.plan([*CELL, f"launcher={launcher}", "sweep_dir=out"], multirun=True).config
    *folders, secret, number = config.hydra.launcher.submitit_folder.split("/")
    assert (folders[-1], number) == (".submitit", "%j")
    code = "from spinbench.sweeping import composition; print(composition._SECRET)"
    other = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert len(secret) == len(other.stdout.strip()) == 16
    assert secret != other.stdout.strip()


@pytest.mark.parametrize(
    "values",
    [
        *("range(0,1000000000)", "range(1000001)", "shuffle(range(0,1000000000))", "sort(range(0,1000000000))"),
        *("range(0,1,step=0)", "range(0,1e300)", "range(1000000000,0,-1)", "range(0,1,0.0000001)"),
    ],
)
def test_ranges_without_end_are_refused_at_once(values: str) -> None:
    since = time.process_time()
    with pytest.raises(SpinbenchError, match=r"a range has at most 1000000 values|values cannot be made"):
        composition.plan([*CELL[:-1], f"seed={values}"], multirun=True)
    assert time.process_time() - since < 5
