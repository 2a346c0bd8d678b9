"""The tables beside a report: CSV, and Parquet where pyarrow is installed."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from spinbench.foundation.trees import flattened
from spinbench.measuring.records import Record
from spinbench.reporting.leaderboard import Row

Table = list[dict[str, Any]]

NO_PARQUET = "no Parquet files: pyarrow is not installed; pip install 'spinbench[parquet]'"


def leaderboard(board: Sequence[Row]) -> Table:
    """A line a row of the leaderboard."""
    names = [field.name for field in fields(Row) if field.name not in ("members", "more")]
    lines: Table = [{name: getattr(row, name) for name in names} for row in board]
    for line, row in zip(lines, board, strict=True):
        for heading, found in row.more.items():
            title = f"metric {heading}" if heading in names else heading
            line |= {title: found.value, f"{title}, standard error": found.standard_error}
    return lines


def cells(records: Sequence[Record]) -> Table:
    """A line a record, with all that it holds but the trajectory; nested names are dotted, lists are JSON."""
    found = []
    for record in records:
        result = {key: value for key, value in (record["result"] or {}).items() if key != "trajectory"}
        line = flattened({**record, "result": result})
        found.append({key: json.dumps(value) if isinstance(value, list) else value for key, value in line.items()})
    return found


def trajectories(records: Sequence[Record]) -> Table:
    """A line a checkpoint."""
    return [
        {"key": record["key"], **record["axes"], "seed": record["config"]["seed"], **point}
        for record in records
        for point in (record["result"] or {}).get("trajectory", [])
    ]


def write(tables: Mapping[str, Table], folder: Path) -> list[Path]:
    """Write NAME.csv, and NAME.parquet where pyarrow is installed; returns the paths."""
    written = []
    for name, table in tables.items():
        columns = list(dict.fromkeys(key for line in table for key in line))
        path = folder / f"{name}.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(table)
        written.append(path)
        if table and has_parquet():
            written.append(_parquet(table, columns, folder / f"{name}.parquet"))
    return written


def has_parquet() -> bool:
    """Whether Parquet files can be written."""
    return find_spec("pyarrow") is not None


def _parquet(table: Table, columns: Sequence[str], path: Path) -> Path:
    import pyarrow
    import pyarrow.parquet

    arrays = {}
    for column in columns:
        values = [line.get(column) for line in table]
        kinds = {type(value) for value in values if value is not None}
        if len(kinds) > 1 and not kinds <= {int, float}:  # a setting that is a number here and a text there
            values = [None if value is None else str(value) for value in values]
        elif kinds == {int, float}:
            values = [None if value is None else float(value) for value in values]
        arrays[column] = pyarrow.array(values)
    pyarrow.parquet.write_table(pyarrow.table(arrays), path)
    return path
