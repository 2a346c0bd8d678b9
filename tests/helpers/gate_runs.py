"""Synthetic runs and records for the tests of the gate: known noise, and planted changes."""

from __future__ import annotations

import math
import platform
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from small_records import RESULT

from spinbench.history import axes
from spinbench.history.axes import Cell
from spinbench.history.regression_test import measurements
from spinbench.history.regression_test.measurements import Place, Run, Runs
from spinbench.measuring.record_parts import Environment

FAMILY = axes.family("gate")
CELLS: tuple[Cell, ...] = tuple(
    (model, method, backend)
    for model in ("boltzmann/neural15", "grid", "random_regular")
    for method in ("gibbs", "dhmc")
    for backend in ("numpy", "numba")
)
MACHINE: dict[str, Any] = {
    "cpu": "abacus",
    "cores": 2,
    "python": platform.python_version(),
    "versions": {"numpy": "2.3", "numba": "0.62"},
}
MACHINE_KEY = measurements.machine_parts(Environment(**MACHINE)) or ()
NOISE = {"step_seconds": 0.02, "step_cpu_seconds": 0.05, "marginal_rmse": 0.1, "samples_per_ess": 0.02}

Factor = Callable[[str, Cell], float]


def nothing(metric: str, cell: Cell) -> float:
    """The factor of a metric of a cell that has not changed."""
    return 1.0


def slower(factor: float, *cells: Cell) -> Factor:
    """Steps of these cells take longer."""
    return lambda metric, cell: factor if metric in ("step_seconds", "step_cpu_seconds") and cell in cells else 1.0


def wronger(factor: float, *cells: Cell) -> Factor:
    """Errors of these cells are greater."""
    return lambda metric, cell: factor if metric == "marginal_rmse" and cell in cells else 1.0


def group(method: str, backend: str) -> list[Cell]:
    """The cells of a method and backend."""
    return [cell for cell in CELLS if cell[1:] == (method, backend)]


def values(
    rng: np.random.Generator, cell: Cell, factor: Factor = nothing, accuracy: np.random.Generator | None = None
) -> dict[str, float]:
    """Metrics that scatter by `NOISE`; those of accuracy are drawn by `accuracy`, if given, as for an equal seed."""
    found = {}
    for metric, spread in NOISE.items():
        drawn = accuracy if accuracy is not None and not metric.startswith("step") else rng
        found[metric] = 1e-2 * factor(metric, cell) * math.exp(spread * drawn.standard_normal())
    return found


def runs(
    rng: np.random.Generator,
    seeds: Iterable[int],
    factor: Factor = nothing,
    cells: Sequence[Cell] = CELLS,
    same_stream: bool = True,
    **changes: Any,
) -> Runs:
    """A sitting; with `same_stream` its numbers are those of every other sitting with these seeds."""
    found: dict[Place, dict[int, Run]] = {}
    for number, cell in enumerate(cells):
        for seed in seeds:
            stream = np.random.default_rng((number, seed)) if same_stream else rng
            measured = values(rng, cell, factor, stream)
            answer = repr([measured[name] for name in ("marginal_rmse", "samples_per_ess")])
            logs = {name: math.log(value) for name, value in measured.items()}
            known = {"values": logs, "answer": answer, "timed": (256, 0.1), "machine": MACHINE_KEY}
            found.setdefault(Place(*cell), {})[seed] = Run(**{"failed": "", **known, **changes})
    return found


# Before a test gives `axes` another one: what that makes up must not be kept for the tests that follow.
_shipped = axes.canonical_configs


@cache
def canonical(family: str, cell: Cell) -> dict[str, Any]:
    whole = _shipped(axes.family(family), [cell])[cell]
    return {name: whole[name] for name in ("model", "method", "backend", "budget", "chains", "seed")}


def record(
    commit: str, cell: Cell, seed: int, measured: Mapping[str, float], *, family: str = "gate", **changes: Any
) -> dict[str, Any]:
    """As a sweep of `experiment=gate` writes it."""
    accuracy = {name: value for name, value in measured.items() if not name.startswith("step")}
    changes["result"] = {
        **RESULT,
        "laps": {"count": 256, "wall": [1e-3] * 3, "cpu": [1e-3] * 3, "mean_cpu": 1e-3},
        "seconds": {"run": 0.1, "compile": 0.0},
        "samples": 3000,
        "answer": repr(accuracy),
        "load": {"wall_seconds": 0.2, "cpu_seconds": 0.2, "waited_seconds": 0.0, "yardstick": [1e-4, 1e-4]},
        **changes.get("result", {}),
    }
    return {
        "schema": 1,
        "id": uuid.uuid4().hex,
        "key": uuid.uuid4().hex[:16],
        "family": family,
        "axes": dict(zip(("model", "method", "backend"), cell, strict=True)),
        "config": {**canonical(family, cell), "seed": seed},
        "protocol": "0" * 16,
        "git": {"commit": commit, "dirty": False, "diff": None},
        "status": "ok",
        "error": None,
        "traceback": None,
        "metrics": {name: {"value": value} for name, value in measured.items()},
        "reference": None,
        "environment": MACHINE,
        "oversubscribed": None,
        "started_at": 1_700_000_000 + seed,
        "duration": 2.5,
        **changes,
    }
