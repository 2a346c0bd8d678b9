"""Real records of an unchanged program, as runs; the first line of gate_records.csv.gz says where they are from."""

from __future__ import annotations

import csv
import gzip
import math
from pathlib import Path

from spinbench.history.regression_test.measurements import Place, Run, Runs

PATH = Path(__file__).parents[1] / "harness" / "history" / "gate_records.csv.gz"
# Name of a sitting of which the accuracy alone is kept.
MORE_SEEDS = "more seeds"
COLUMNS = {
    "step_seconds": "step_us",
    "step_cpu_seconds": "mean_us",
    "marginal_rmse": "rmse",
    "samples_per_ess": "per_ess",
}


def sittings(machine: str) -> dict[str, Runs]:
    """The runs of a machine, "quieter" or "busy", by sitting."""
    found: dict[str, dict[Place, dict[int, Run]]] = {}
    with gzip.open(PATH, "rt", encoding="utf-8", newline="") as file:
        next(file)
        for row in csv.DictReader(file):
            if row["machine"] == machine:
                place = Place(row["model"], row["method"], row["backend"])
                found.setdefault(row["sitting"], {}).setdefault(place, {})[int(row["seed"])] = _run(row)
    return dict(found)


def _run(row: dict[str, str]) -> Run:
    scatter = float(row["scatter"] or 0)
    return Run(
        failed="",
        values={metric: math.log(max(float(row[name]), 1e-6)) for metric, name in COLUMNS.items() if row[name]},
        scatter={"step_seconds": scatter, "step_cpu_seconds": scatter},
        answer=row["answer"],
        timed=(int(row["batches"]), 1e-3 * float(row["run_ms"])) if row["batches"] else None,
        machine=("one",),
        yardstick=tuple(float(row[name]) for name in ("before_us", "after_us") if row[name]),
    )
