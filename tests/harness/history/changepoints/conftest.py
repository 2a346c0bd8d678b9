"""A history of planted changes."""

from __future__ import annotations

import shutil
from typing import Any, NamedTuple

import gate_runs
import numpy as np
import pytest
from gate_runs import CELLS, group, slower, wronger

from spinbench.history.recorder import record

SLOW, WRONG, SKIPPED = 5, 8, 7
CELLS_OF = [*group("gibbs", "numba"), *group("dhmc", "numpy")]


class Planted(NamedTuple):
    """Commits, and those that made a method slower, and another one wrong."""

    commits: list[str]
    slow: str
    wrong: str


@pytest.fixture
def planted(
    project: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Planted:
    """Twelve commits, of which one is not measured; made once, and copied for each test."""
    kept = tmp_path_factory.getbasetemp() / "planted"
    if not kept.exists():
        plant(project, rng)
        shutil.copytree(project.root, kept)
    shutil.rmtree(project.root)
    shutil.copytree(kept, project.root)
    names = project.git("log", "--reverse", "--format=%H").split()
    monkeypatch.setenv("SPINBENCH_HISTORY", str(project.root))
    return Planted(names, names[SLOW], names[WRONG])


def plant(project: Any, rng: np.random.Generator) -> None:
    for turn in range(12):
        commit = project.commit(f"commit {turn}")
        slow = slower(1.5 if turn >= SLOW else 1.0, *group("dhmc", "numpy"))
        wrong = wronger(2.5 if turn >= WRONG else 1.0, *group("gibbs", "numba"))
        made = []
        for cell in CELLS_OF:
            for seed in range(3):
                stream = np.random.default_rng((CELLS.index(cell), seed, turn >= WRONG))
                measured = gate_runs.values(rng, cell, lambda *of: slow(*of) * wrong(*of), stream)  # noqa: B023
                made.append(gate_runs.record(commit, cell, seed, measured))
        if turn != SKIPPED:
            record(project.root, [project.sweep(f"sweep{turn}", made)])
