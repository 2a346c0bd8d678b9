"""Mutated files of every kind: an answer or one sentence, within 5 s and 2 GiB."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from small_model_files import GOOD

pytestmark = pytest.mark.soak
# How many of each; 22,000 in all.
KINDS = {
    **{f"model {name}": 2000 for name in (*GOOD, "uai.gz")},
    "evidence": 500,
    "record": 1500,
    "journal": 500,
    "asv's results": 500,
    "resumed sweep": 1000,
    "exact answer": 1000,
    "machine code": 1000,
}
HELPERS = Path(__file__).resolve().parents[1] / "helpers"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sweeps of two cells, and the history that they entered at two commits."""
    folder = tmp_path_factory.mktemp("made")
    history = folder / "history"
    python = [sys.executable, "-m", "spinbench"]
    cells = ["-m", "method=exact,bp", "backend=numpy", "model=boltzmann/neural15", "budget=smoke"]
    commit = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "second"]
    environment = {**os.environ, "SPINBENCH_HISTORY": str(history)}
    for command in (
        [*python, "init", "."],
        [*python, "sweep", *cells, f"sweep_dir={folder / 'sweep'}"],
        commit,
        [*python, "sweep", *cells, f"sweep_dir={folder / 'second'}"],
    ):
        history.mkdir(exist_ok=True)
        done = subprocess.run(command, cwd=history, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert len(list(history.rglob("record-*.json"))) == 4
    return folder


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=pytest.mark.xdist_group(kind)) for kind in KINDS])
def test_files(
    kind: str,
    made: Path,
    tmp_path: Path,
    scaled: Callable[[int], int],
    record_property: Callable[[str, object], None],
) -> None:
    count = scaled(KINDS[kind])
    command = [sys.executable, str(Path(__file__).with_name("reader.py")), kind, "0", str(count), str(made)]
    environment = {**os.environ, "PYTHONPATH": str(HELPERS), "SPINBENCH_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=60 + 5 * count
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    record_property(f"files read ({kind})", found["read"])
    record_property(f"of them refused in a sentence ({kind})", found["refused"])
    record_property("files that ended in anything else", len(found["wrong"]))
    record_property("most CPU seconds of one", found["slowest"])
    record_property("most MiB of a process", found["mib"])
    assert not found["wrong"]
    assert found["refused"] < found["read"] or kind.startswith("model")
