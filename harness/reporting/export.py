"""The tables beside a report: CSV, and Parquet where pyarrow is installed.

One of them has the columns of benchopt (https://benchopt.github.io), whose `read_results`, `merge` and pages take it.
"""

from __future__ import annotations

import csv
import datetime
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from spinbench.foundation.frames import Table, columns_of, frame
from spinbench.measuring import reading
from spinbench.measuring.record_types import Record
from spinbench.reporting.leaderboard import Row

NO_PARQUET = "no Parquet files: pyarrow is not installed; pip install 'spinbench[parquet]'"


def tables(records: Sequence[Record], board: Sequence[Row]) -> dict[str, Table]:
    """All of them by name.

    Args:
        records: one a cell.
        board: their leaderboard.
    """
    return {
        "leaderboard": leaderboard(board),
        "cells": reading.lines(records),
        "trajectories": trajectories(records),
        "benchopt": benchopt(records),
    }


def leaderboard(board: Sequence[Row]) -> Table:
    """A line a row of the leaderboard."""
    names = [field.name for field in fields(Row) if field.name not in ("members", "more")]
    lines: Table = [{name: getattr(row, name) for name in names} for row in board]
    for line, row in zip(lines, board, strict=True):
        for heading, found in row.more.items():
            title = f"metric {heading}" if heading in names else heading
            line |= {title: found.value, f"{title}, standard error": found.standard_error}
    return lines


def trajectories(records: Sequence[Record]) -> Table:
    """A line a checkpoint."""
    return [
        {"key": record.key, **record["axes"], "seed": record.config["seed"], **point}
        for record in records
        for point in _checkpoints(record)
    ]


def _checkpoints(record: Record) -> list[dict[str, Any]]:
    """As in its file: columns are whatever points have."""
    found: list[dict[str, Any]] = (record["result"] or {}).get("trajectory", [])
    return found


OBJECTIVE = "inference"
"""benchopt's name of what all solvers are asked for."""
_CHECKPOINT = {"samples": "stop_val", "seconds": "time"}


def benchopt(records: Sequence[Record]) -> Table:
    """A line a checkpoint with the columns of benchopt 1.10; as there, what failed has none.

    `time` is in seconds of burn-in and sampling, `stop_val` a number of samples, `idx_rep` the seed.
    `objective_value` is the RMSE of the marginals, `objective_log_z` an answer and `objective_exact_log_z` the right
    one, in nats; metrics of the whole run, `objective_METRIC`, stand on its last line. `p_solver_`, `p_dataset_` and
    `p_obj_` are settings of method and backend, of the model and of the run.
    """
    return [line for record in records for line in _benchopt(record)]


def _benchopt(record: Record) -> Table:
    """Of one record."""
    named = _names(record)
    exact = record.exact_log_z
    lines: Table = []
    for point in _checkpoints(record):
        place = {name: point[key] for key, name in _CHECKPOINT.items()}
        errors = {f"objective_{key}": value for key, value in point.items() if key not in _CHECKPOINT}
        objective = {"objective_value": point["marginal_rmse"], **errors, "objective_exact_log_z": exact}
        lines.append({**named, **place, **objective})
    if lines:
        metrics = {f"objective_{name}": one.value for name, one in record.metrics.items() if one.value is not None}
        lines[-1] |= {**metrics, "status": record.result.status}
    return lines


def _names(record: Record) -> dict[str, Any]:
    """What benchopt knows of a run: its names, settings, place and day."""
    config, environment = record.config, record.environment
    method, model = config["method"], config["model"]
    backend = {"backend": config["backend"]["name"], **_rest(config["backend"])}
    run = {"chains": config["chains"], **config["budget"]}
    versions = environment.versions
    return {
        "objective_name": _parametrized(OBJECTIVE, run),
        "dataset_name": _parametrized(model["name"], _rest(model)),
        "solver_name": _parametrized(method["name"], backend | _rest(method)),
        "idx_rep": config["seed"],
        "sampling_strategy": "Iteration",
        **{f"p_obj_{key}": _plain(value) for key, value in run.items()},
        **{f"p_dataset_{key}": _plain(value) for key, value in _rest(model).items()},
        **{f"p_solver_{key}": _plain(value) for key, value in (backend | _rest(method)).items()},
        "run_date": datetime.datetime.fromtimestamp(record.started_at, datetime.UTC).isoformat(),
        "system-processor": environment.cpu,
        "system-cpus": environment.cores,
        "version-numpy": versions.get("numpy"),
        **{f"version-{name}": version for name, version in versions.items()},
        "benchmark-git-tag": record.git.commit,
    }


def _rest(part: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a part of a configuration."""
    return {key: value for key, value in part.items() if key != "name"}


def _parametrized(name: str, given: Mapping[str, Any]) -> str:
    """As benchopt writes it: NAME[SETTING=VALUE,...]."""
    shown = ",".join(f"{key}={value}" for key, value in sorted(given.items()))
    return f"{name}[{shown}]" if shown else name


def _plain(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | dict) else value


def write(found: Mapping[str, Table], folder: Path) -> list[Path]:
    """Write NAME.csv, and NAME.parquet where pyarrow is installed; returns the paths."""
    written = []
    for name, table in found.items():
        columns = list(dict.fromkeys(key for line in table for key in line))
        path = folder / f"{name}.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(table)
        written.append(path)
        if table and has_parquet():
            written.append(_parquet(table, folder / f"{name}.parquet"))
    return written


def has_parquet() -> bool:
    """Whether Parquet files can be written."""
    return find_spec("pyarrow") is not None


def _parquet(table: Table, path: Path) -> Path:
    import pyarrow.parquet

    pyarrow.parquet.write_table(frame(columns_of(table), "arrow"), path, compression="zstd")
    return path
