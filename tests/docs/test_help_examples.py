"""The example with which each command's help ends runs, where its reader has the files and commits that it names."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import spinbench
from spinbench.command_help import COMMANDS
from spinbench.models import generators

# What takes minutes, a network or both.
OMITTED = {"sweep", "warm", "check", "peers", "publish"}
CELLS = "method=gibbs backend=numpy budget=samples budget.samples=100"


def shell(script: str, folder: Path) -> None:
    environment = {**os.environ, "SPINBENCH_HISTORY": str(folder), "COLUMNS": "150"}
    for person in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{person}_NAME": "reader", f"GIT_{person}_EMAIL": "reader@localhost"}
    done = subprocess.run(
        ["bash", "-ec", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a history over seven commits, a sweep's records, models and samples."""
    folder = tmp_path_factory.mktemp("reader")
    model = generators.grid(3, 3, seed=1)
    spinbench.save(model, folder / "my.uai")
    (folder / "models").mkdir()
    shutil.copy(folder / "my.uai", folder / "models" / "a.uai")
    states = spinbench.run(model, "gibbs", "numpy", 1000, keep=100).states
    np.savez(folder / "samples.npz", states=states)
    (folder / ".gitignore").write_text("multirun\nmodels\n*.npz\n*.csv\npage\nmy_sampler\n")
    shell("git init -q -b main && spinbench init . && git add -A && git commit -q -m first", folder)
    shell("for n in 1 2 3 4 5; do git commit -q --allow-empty -m $n; done", folder)
    shell(f"spinbench sweep -m model=grid model.rows=3 {CELLS} sweep_dir=multirun/before", folder)
    shell("git commit -q --allow-empty -m last", folder)
    shell(f"spinbench sweep -m model=grid model.rows=3 {CELLS} sweep_dir=multirun/tour", folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*COMMANDS} - OMITTED))
def test_example_runs(name: str, folder: Path) -> None:
    shell(f"spinbench {name} {COMMANDS[name].example}", folder)
