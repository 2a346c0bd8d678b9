"""Pages whose commands are followed as they stand, and the examples of the commands' help."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from markdown_blocks import DOCS, Block, blocks, check_printed
from small_sweeps import stored

import spinbench
from spinbench.command_help import COMMANDS
from spinbench.models import generators

COMPARING = DOCS / "how-to" / "compare-methods.md"


def test_its_commands_and_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPINBENCH_HISTORY", str(tmp_path))
    spinbench.save(generators.grid(3, 3, seed=1), "my.uai")
    source = ""
    printed = io.StringIO()
    for block in blocks(COMPARING):
        if block.language == "sh":
            done = subprocess.run(["bash", "-ec", block.tested], capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"line {block.line}: {done.stdout}{done.stderr}"
        else:
            source += block.text
            with contextlib.redirect_stdout(printed):
                exec(compile(block.text, str(COMPARING), "exec"), {"__name__": "page"})
    check_printed(source, printed.getvalue())
    assert len([*Path("multirun/compare/records").glob("*.json")]) == 8


OWN_MODEL = DOCS / "how-to" / "own-model.md"


def section(heading: str) -> list[Block]:
    """The blocks below a heading."""
    lines = OWN_MODEL.read_text(encoding="utf-8").splitlines()
    begin = lines.index(f"## {heading}")
    end = next(place for place in range(begin + 1, len(lines)) if lines[place].startswith("## "))
    return [one for one in blocks(OWN_MODEL) if begin < one.line <= end]


@pytest.mark.parametrize("files", [5, 200])
def test_its_commands(files: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    python, shell = section("Two hundred files")
    exec(python.text.replace("range(200)", f"range({files})"), {})
    assert len([*Path("many").iterdir()]) == files
    done = subprocess.run(["bash", "-ec", shell.text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    records = stored(Path("multirun/many"))
    assert len(records) == 2 * files
    assert {record["status"] for record in records} <= {"ok", "oversubscribed", "marginals too short"}
    assert f"RMSE of the marginals after 500 samples, {files} models" in done.stdout
    assert f"{files} models" in Path("board.md").read_text(encoding="utf-8")
    assert "many/003.uai" in done.stdout


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
