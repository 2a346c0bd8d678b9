"""A history of planted changes."""

from __future__ import annotations

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
def planted(project: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> Planted:
    """Twelve commits, of which one is not measured."""
    names = []
    for turn in range(12):
        names.append(project.commit(f"commit {turn}"))
        if turn == SKIPPED:
            continue
        slow = slower(1.5 if turn >= SLOW else 1.0, *group("dhmc", "numpy"))
        wrong = wronger(2.5 if turn >= WRONG else 1.0, *group("gibbs", "numba"))
        made = [
            gate_runs.record(
                names[-1],
                cell,
                seed,
                gate_runs.values(
                    rng,
                    cell,
                    lambda metric, cell, slow=slow, wrong=wrong: slow(metric, cell) * wrong(metric, cell),
                    np.random.default_rng((CELLS.index(cell), seed, turn >= WRONG)),
                ),
            )
            for cell in CELLS_OF
            for seed in range(3)
        ]
        record(project.root, [project.sweep(f"sweep{turn}", made)])
    monkeypatch.setenv("SPINBENCH_HISTORY", str(project.root))
    return Planted(names, names[SLOW], names[WRONG])
