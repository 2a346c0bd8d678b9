"""The tables beside a report: CSV, and Parquet where pyarrow is installed."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path

from spinbench.foundation.frames import Table, columns_of, frame
from spinbench.measuring.records import Record
from spinbench.reporting.leaderboard import Row

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
            written.append(_parquet(table, folder / f"{name}.parquet"))
    return written


def has_parquet() -> bool:
    """Whether Parquet files can be written."""
    return find_spec("pyarrow") is not None


def _parquet(table: Table, path: Path) -> Path:
    import pyarrow.parquet

    pyarrow.parquet.write_table(frame(columns_of(table), "arrow"), path)
    return path
