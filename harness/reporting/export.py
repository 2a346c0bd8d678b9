"""Tables of records: that of `spinbench.read`, and those beside a report, as CSV, and as Parquet where pyarrow is.

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

from spinbench.errors import SpinbenchError
from spinbench.foundation.frames import Kind, Table, columns_of, frame
from spinbench.foundation.remarks import escape_row
from spinbench.foundation.trees import flatten
from spinbench.measuring import records as stored
from spinbench.measuring.record_types import Record
from spinbench.reporting.leaderboard import Row

NO_PARQUET = "no Parquet files: pyarrow is not installed; pip install 'spinbench[parquet]'"


def report_tables(records: Sequence[Record], board: Sequence[Row]) -> dict[str, Table]:
    """All of them by name.

    Args:
        records: one a cell.
        board: their leaderboard.
    """
    return {
        "leaderboard": leaderboard_table(board),
        "cells": table_rows(records),
        "trajectories": trajectory_table(records),
        "benchopt": benchopt_table(records),
    }


def leaderboard_table(board: Sequence[Row]) -> Table:
    """A line a row of the leaderboard."""
    names = [field.name for field in fields(Row) if field.name not in ("records", "metric_means")]
    lines: Table = [{name: getattr(row, name) for name in names} for row in board]
    for line, row in zip(lines, board, strict=True):
        for heading, mean in row.metric_means.items():
            title = f"metric {heading}" if heading in names else heading
            line |= {title: mean.value, f"{title}, standard error": mean.standard_error}
    return lines


def trajectory_table(records: Sequence[Record]) -> Table:
    """A line a checkpoint."""
    return [
        {"key": record.key, **record["axes"], "seed": record.config["seed"], **point}
        for record in records
        for point in _raw_checkpoints(record)
    ]


def _raw_checkpoints(record: Record) -> list[dict[str, object]]:
    """As in its file: columns are whatever points have."""
    points: list[dict[str, object]] = (record["result"] or {}).get("trajectory", [])
    return points


# benchopt's name of the objective that all solvers share.
OBJECTIVE = "inference"
_CHECKPOINT_COLUMNS = {"samples": "stop_val", "seconds": "time"}


def benchopt_table(records: Sequence[Record]) -> Table:
    """A line a checkpoint with the columns of benchopt 1.10; as there, what failed has none.

    `time` is in seconds of burn-in and sampling, `stop_val` a number of samples, `idx_rep` the seed.
    `objective_value` is the RMSE of the marginals, `objective_log_z` an answer and `objective_exact_log_z` the right
    one, in nats; metrics of the whole run, `objective_METRIC`, stand on its last line. `p_solver_`, `p_dataset_` and
    `p_obj_` are settings of method and backend, of the model and of the run.
    """
    return [line for record in records for line in _benchopt_lines(record)]


def _benchopt_lines(record: Record) -> Table:
    """Of one record."""
    run_columns = _benchopt_run_columns(record)
    exact = record.exact_log_z
    lines: Table = []
    for point in _raw_checkpoints(record):
        checkpoint_columns = {name: point[key] for key, name in _CHECKPOINT_COLUMNS.items()}
        errors = {f"objective_{key}": value for key, value in point.items() if key not in _CHECKPOINT_COLUMNS}
        objective = {"objective_value": point["marginal_rmse"], **errors, "objective_exact_log_z": exact}
        lines.append({**run_columns, **checkpoint_columns, **objective})
    if lines:
        metrics = {
            f"objective_{name}": metric.value for name, metric in record.metrics.items() if metric.value is not None
        }
        lines[-1] |= {**metrics, "status": record.result.status}
    return lines


def _benchopt_run_columns(record: Record) -> dict[str, object]:
    """What benchopt knows of a run: its names, settings, place and day."""
    config, environment = record.config, record.environment
    method, model = config["method"], config["model"]
    backend = {"backend": config["backend"]["name"], **_settings(config["backend"])}
    run = {"chains": config["chains"], **config["budget"]}
    versions = environment.versions
    return {
        "objective_name": _parametrise_name(OBJECTIVE, run),
        "dataset_name": _parametrise_name(model["name"], _settings(model)),
        "solver_name": _parametrise_name(method["name"], backend | _settings(method)),
        "idx_rep": config["seed"],
        "sampling_strategy": "Iteration",
        **{f"p_obj_{key}": _plain_value(value) for key, value in run.items()},
        **{f"p_dataset_{key}": _plain_value(value) for key, value in _settings(model).items()},
        **{f"p_solver_{key}": _plain_value(value) for key, value in (backend | _settings(method)).items()},
        "run_date": datetime.datetime.fromtimestamp(record.started_at, datetime.UTC).isoformat(),
        "system-processor": environment.cpu,
        "system-cpus": environment.cores,
        "version-numpy": versions.get("numpy"),
        **{f"version-{name}": version for name, version in versions.items()},
        "benchmark-git-tag": record.git.commit,
    }


def _settings(part: Mapping[str, object]) -> dict[str, object]:
    """The settings of a part of a configuration."""
    return {key: value for key, value in part.items() if key != "name"}


def _parametrise_name(name: str, settings: Mapping[str, object]) -> str:
    """As benchopt writes it: NAME[SETTING=VALUE,...]."""
    text = ",".join(f"{key}={value}" for key, value in sorted(settings.items()))
    return f"{name}[{text}]" if text else name


def _plain_value(value: object) -> object:
    return json.dumps(value) if isinstance(value, list | dict) else value


def write_tables(tables: Mapping[str, Table], folder: Path) -> list[Path]:
    """Write NAME.csv, and NAME.parquet where pyarrow is installed; returns the paths."""
    paths = []
    for name, table in tables.items():
        paths.append(write_csv(table, folder / f"{name}.csv"))
        if table and has_parquet():
            paths.append(_write_parquet(table, folder / f"{name}.parquet"))
    return paths


def write_csv(table: Table, path: Path) -> Path:
    """Write a table, with the columns in the order in which its lines have them; returns the path.

    Raises:
        SpinbenchError: the file cannot be written.
    """
    columns = list(dict.fromkeys(key for line in table for key in line))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(escape_row(columns))
            writer.writerows(escape_row([line.get(name, "") for name in columns]) for line in table)
    except OSError as error:
        raise SpinbenchError(f"the table {path} cannot be written: {error.strerror or error}") from error
    return path


def has_parquet() -> bool:
    """Whether Parquet files can be written."""
    return find_spec("pyarrow") is not None


def _write_parquet(table: Table, path: Path) -> Path:
    import pyarrow.parquet

    pyarrow.parquet.write_table(frame(columns_of(table), "arrow"), path, compression="zstd")
    return path


def read(*folders: str | Path, kind: Kind = "pandas") -> Any:
    """The records of one or several sweeps as a data frame, a line a cell.

    Columns are what a record holds, names joined by dots: "axes.method", "config.seed", "metrics.marginal_rmse.value",
    "result.status" and so on; the trajectory is left out, and lists are JSON. Of cells with equal configurations the
    one that was measured last counts.

    Args:
        folders: of sweeps.
        kind: "pandas", "polars" or "arrow".

    Raises:
        RecordError: a folder holds no records.
        SpinbenchError: no such kind.
        UnavailableError: its package is not installed.
    """
    records = [record for folder in folders for record in stored.read_records(Path(folder))]
    return frame(columns_of(table_rows(stored.latest_per_cell(records))), kind)


def table_rows(records: Sequence[Record]) -> Table:
    """A line a record, with all that it holds but the trajectory; nested names are dotted, lists are JSON."""
    rows = []
    for record in records:
        # The content as read, with fields of other versions.
        content = record.content
        result = {key: value for key, value in (content["result"] or {}).items() if key != "trajectory"}
        line = flatten({**content, "result": result})
        rows.append({key: _plain_value(value) for key, value in line.items()})
    return rows
