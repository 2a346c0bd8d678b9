"""`spinbench.read`: one line a cell, of the newest record."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from small_records import RESULT

import spinbench
from spinbench.measuring import records
from spinbench.measuring.records import RecordError
from tests.harness.measuring.test_records import record

POINT = {"seconds": 0.1, "samples": 5, "marginal_rmse": None, "log_z": None, "log_z_error": None}
NOTED = {**RESULT, "notes": ["a", "b"], "trajectory": [POINT]}


def of_seed(seed: int, **changes: Any) -> dict[str, Any]:
    found = copy.deepcopy(record(f"k{seed}{len(changes)}", result=NOTED, **changes))
    found["config"]["seed"] = seed
    return found


def test_records_are_lines_with_dotted_names(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    for one in (of_seed(0), of_seed(1), of_seed(1, started_at=2, metrics={"marginal_rmse": {"value": 0.5}})):
        records.write_record(tmp_path, one)
    found = {line["config.seed"]: line for line in spinbench.read(tmp_path, kind="arrow").to_pylist()}
    assert set(found) == {0, 1}
    assert (found[1]["metrics.marginal_rmse.value"], found[0]["metrics.marginal_rmse.value"]) == (0.5, None)
    assert (found[0]["result.seconds.run"], found[0]["result.notes"]) == (0.5, '["a", "b"]')
    assert not [name for name in found[0] if "trajectory" in name]


def test_several_folders_are_one_table_and_an_empty_one_is_named(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    for seed in range(2):
        records.write_record(tmp_path / str(seed), of_seed(seed))
    found = spinbench.read(tmp_path / "0", tmp_path / "1")
    assert isinstance(found, pandas.DataFrame)
    assert sorted(found["config.seed"]) == [0, 1]
    (tmp_path / "2").mkdir()
    with pytest.raises(RecordError, match="holds no records"):
        spinbench.read(tmp_path / "0", tmp_path / "2")
