"""Compiled kernels are kept apart by their sources, so that an update never measures old machine code."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spinbench.backends.numba import machine_code


def test_a_changed_source_gets_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "__init__.py").write_text("")
    helper = tmp_path / "helper.py"
    helper.write_text("a = 1\n")
    monkeypatch.setattr(machine_code, "__file__", str(tmp_path / "machine_code.py"))
    named = []
    for text in ("a = 1\n", "a = 2\n", "a = 1\n"):
        helper.write_text(text)
        machine_code.numba_folder.cache_clear()
        named.append(machine_code.numba_folder().name)
    machine_code.numba_folder.cache_clear()
    assert named[0] == named[2] != named[1]


def test_folders_of_older_sources_are_removed_when_nobody_uses_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPINBENCH_CACHE_DIR", str(tmp_path))
    compiled = tmp_path / "compiled"
    days = {"numba-a": 0.5, "numba-b": 0.6, "numba-c": 0.7, "numba-d": 0.8, "numba-e": 2, "numba-f": 30, "jax": 99}
    for name, age in days.items():
        (compiled / name).mkdir(parents=True)
        (compiled / name / "kernel.nbi").write_text("")
        os.utime(compiled / name, (time.time() - age * 86_400,) * 2)
    machine_code.numba_folder.cache_clear()
    own = machine_code.numba_folder()
    machine_code.numba_folder.cache_clear()
    left = {path.name for path in compiled.iterdir()}
    # a to c are the last used, d was used today
    assert left == {own.name, "jax", "numba-a", "numba-b", "numba-c", "numba-d"}


def test_kernels_are_compiled_into_that_folder(tmp_path: Path) -> None:
    code = (
        "from spinbench import run, PairwiseModel; from spinbench.backends.numba import machine_code;"
        "run(PairwiseModel.from_edges([0.1, 0.2], [(0, 1)], [0.3]), 'gibbs', 'numba', 10, chains=1);"
        "print(len(list(machine_code.numba_folder().rglob('*.nbi'))))"
    )
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment["SPINBENCH_CACHE_DIR"] = str(tmp_path)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert int(done.stdout) > 0
