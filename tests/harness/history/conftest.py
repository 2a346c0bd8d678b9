"""A project with a history of its own: a git repository with asv.conf.json and the suite, and records to enter."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import gate_runs
import numpy as np
import pytest
from small_records import RESULT

from spinbench.history import axes
from spinbench.history.axes import Cell
from spinbench.history.recorder import record

CHECKOUT = Path(__file__).resolve().parents[3]
MACHINE = "testbox"
CELLS: tuple[Cell, ...] = (
    ("boltzmann/neural15", "gibbs", "numpy"),
    ("boltzmann/neural15", "exact", "numpy"),
    ("grid", "gibbs", "numpy"),
)

# Metric, cell and seed to a record's entry for that metric.
Value = Callable[[str, Cell, int], Any]


def constant(metric: str, cell: Cell, seed: int) -> dict[str, Any]:
    return {"value": 0.125 * (1 + seed)}


def make_record(
    cell: Cell, commit: str | None, seed: int = 0, value: Value = constant, **changes: Any
) -> dict[str, Any]:
    names = [metric.name for metric in axes.family("inference").metrics]
    return {
        "schema": 1,
        "id": uuid.uuid4().hex,
        "key": uuid.uuid4().hex[:16],
        "family": "inference",
        "axes": dict(zip(("model", "method", "backend"), cell, strict=True)),
        "config": {**gate_runs.canonical("inference", cell), "seed": seed},
        "protocol": "0" * 16,
        "git": {"commit": commit, "dirty": False if commit else None, "diff": None},
        "status": "ok",
        "error": None,
        "traceback": None,
        "metrics": {name: value(name, cell, seed) for name in names},
        "result": RESULT,
        "reference": None,
        "environment": {},
        "started_at": 1_700_000_000 + seed,
        "duration": 2.5,
        **changes,
    }


@dataclass(frozen=True)
class Project:
    """Tests reach the helpers of this file through it."""

    root: Path
    cells: ClassVar[tuple[Cell, ...]] = CELLS
    record = staticmethod(make_record)
    constant = staticmethod(constant)

    def git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.root), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, title: str) -> str:
        (self.root / "log").write_text(title)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", title)
        return self.git("rev-parse", "HEAD")

    def sweep(self, name: str, records: Iterable[Mapping[str, Any]]) -> Path:
        """A sweep's folder with these records."""
        folder = self.root / "multirun" / name
        (folder / "records").mkdir(parents=True, exist_ok=True)
        for one in records:
            (folder / "records" / f"record-{one['key']}.json").write_text(json.dumps(one))
        return folder

    def asv(self, *arguments: str) -> str:
        command = [sys.executable, "-m", "asv", *arguments]
        done = subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def result(self, commit: str) -> dict[str, dict[str, Any]]:
        """asv's result file of a commit: benchmark to column to content."""
        (path,) = (self.root / ".asv" / "results" / MACHINE).glob(f"{commit[:8]}-spinbench-py*.json")
        whole = json.loads(path.read_text())
        assert whole["commit_hash"] == commit
        return {name: dict(zip(whole["result_columns"], row, strict=False)) for name, row in whole["results"].items()}

    def value(self, commit: str, metric: str, cell: Cell) -> Any:
        """What asv's result file holds of a metric: a number, None for failed, "not run"."""
        found = self.result(commit)[f"inference.track_{metric}"]["result"]
        entry = found[axes.family("inference").cells.index(cell)] if found is not None else None
        return "not run" if isinstance(entry, float) and math.isnan(entry) else entry


@pytest.fixture(scope="session")
def discovered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """asv's benchmarks.json of the suite, which takes a second to find out."""
    project = make_project(tmp_path_factory.mktemp("discovered") / "project")
    commit = project.commit("first")
    record(project.root, [project.sweep("first", [make_record(CELLS[0], commit)])])
    return project.root / ".asv" / "results" / "benchmarks.json"


def make_project(root: Path) -> Project:
    suite = CHECKOUT / "harness" / "history" / "suite"
    shutil.copytree(suite, root / "harness" / "history" / "suite", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(CHECKOUT / "asv.conf.json", root)
    (root / ".gitignore").write_text(".asv/\nmultirun/\n__pycache__/\n")
    project = Project(root)
    project.git("init", "-q", "-b", "main")
    project.git("config", "user.name", "tester")
    project.git("config", "user.email", "tester@example.org")
    return project


@pytest.fixture
def bare_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """An empty history on the machine "testbox"; the user's home and git's settings are out of sight."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SPINBENCH_MACHINE", MACHINE)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return make_project(tmp_path / "project")


@pytest.fixture
def project(bare_project: Project, discovered: Path) -> Project:
    """The same, after asv has found its benchmarks."""
    results = bare_project.root / ".asv" / "results"
    results.mkdir(parents=True)
    shutil.copy(discovered, results)
    return bare_project


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20241105)
