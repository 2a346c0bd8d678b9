"""`spinbench.read`: the records of sweeps as one table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spinbench.foundation.frames import Kind, Table, columns_of, frame
from spinbench.foundation.trees import flatten
from spinbench.measuring import records as stored
from spinbench.measuring.record_types import Record


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
        content = record.content  # with fields of other versions
        result = {key: value for key, value in (content["result"] or {}).items() if key != "trajectory"}
        line = flatten({**content, "result": result})
        rows.append({key: json.dumps(value) if isinstance(value, list) else value for key, value in line.items()})
    return rows
