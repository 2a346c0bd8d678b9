"""Folders and lines of strangers: nothing of them is run, and nothing takes for ever."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spinbench.errors import SpinbenchError
from spinbench.sweeping import composition

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
