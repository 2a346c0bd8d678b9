"""What a record says of a result, and what reads records."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_records import RESULT

import spinbench
from spinbench.api import Estimate
from spinbench.inference.batch_timings import Checkpoint
from spinbench.inference.result import replace_pairs
from spinbench.inference.stored_states.source import RunSource
from spinbench.measuring import records, result_metrics
from spinbench.measuring.records import RecordError
from spinbench.models import generators
from spinbench.models.generators import grid
from tests.harness.measuring.test_records import record


@pytest.mark.parametrize(("error", "kept"), [(0.1, True), (None, True), (np.inf, False)])
def test_no_number_is_made_of_an_unresolved_log_z(error: float | None, kept: bool) -> None:
    model = grid(2, 2)
    exact = spinbench.exact(model, cache=False)
    point = Checkpoint(1.0, 10, Estimate(marginals=exact.marginals, log_z=exact.log_z, log_z_se=error))
    result = dataclasses.replace(
        exact, log_z_se=error, status="ok" if kept else "log Z unresolved", trajectory=(point,)
    )
    metrics, _ = result_metrics.result_metrics(result, exact, {})
    assert ("value" in metrics["log_z_error"]) is kept
    summary = result_metrics.summarize_result(result, exact)
    assert (summary["log_z"] is not None) is kept
    assert [(p["log_z"] is not None, p["log_z_error"] is not None) for p in summary["trajectory"]] == [(kept, kept)]


@pytest.mark.parametrize(("size", "known"), [(0.0, False), (np.nan, False), (2.0, True)])
def test_no_cost_of_an_effective_sample_where_there_is_none(size: float, known: bool) -> None:
    model = grid(2, 2)
    exact = spinbench.exact(model, cache=False)
    metrics, _ = result_metrics.result_metrics(dataclasses.replace(exact, ess=np.full(4, size)), exact, {})
    assert [("value" in metrics[name]) for name in ("seconds_per_ess", "samples_per_ess")] == [known, known]


OTHER: dict[str, dict[str, Any]] = {
    "claims": {"marginals_se": np.zeros(4)},
    "sizes": {"ess": np.zeros(4)},
    "pairs": {"source": RunSource(pairs=(np.zeros(4), None))},
    "draws": {"draws": (np.ones((4, 2), dtype=np.int8), None)},
    "weights": {"draws": (np.zeros((4, 2), dtype=np.int8), np.zeros(2))},
    "diagnostics": {"diagnostics": {"acceptance": 0.5}},
}


@pytest.mark.parametrize("what", OTHER)
def test_numbers_are_all_that_metrics_see_and_the_answer_is_not(what: str) -> None:
    found = spinbench.run(generators.grid(2, 2), "gibbs", "numpy", 40, chains=4)
    whole = dataclasses.replace(replace_pairs(found, np.ones(4)), draws=(np.zeros((4, 2), dtype=np.int8), None))
    one, other = (
        result_metrics.summarize_result(each, None) for each in (whole, dataclasses.replace(whole, **OTHER[what]))
    )
    assert one["numbers"] != other["numbers"]
    assert one["answer"] == other["answer"]


def test_time_is_in_neither() -> None:
    one, other = (spinbench.run(generators.grid(2, 2), "gibbs", "numpy", 40, chains=4) for _ in range(2))
    assert one.seconds != other.seconds
    for name in ("numbers", "answer"):
        assert result_metrics.summarize_result(one, None)[name] == result_metrics.summarize_result(other, None)[name]


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


def test_a_record_says_why_a_number_is_doubtful() -> None:
    summary = result_metrics.summarize_result(spinbench.run(grid(2, 2, seed=0), "bp", "numpy", 50), None)
    assert summary["levels"] == {"marginals": "doubtful", "log_z": "doubtful"}
    reasons = summary["reasons"]
    assert isinstance(reasons, dict)
    assert reasons.keys() == {"marginals", "log_z"}
    assert all(reasons.values())
    exact = result_metrics.summarize_result(spinbench.exact(grid(2, 2, seed=0), cache=False), None)
    assert exact["reasons"] == {}
