"""The journal: append only, and what its records come to."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from spinbench.foundation.atomic import write_json
from spinbench.foundation.remarks import left_out
from spinbench.history import axes, journal
from spinbench.history.journal import Journal

FAMILY = axes.family("inference")
CELL = ("grid", "gibbs", "numpy")
COMMIT = "a" * 40


def entry(project: Any, seed: int, started_at: int, **changes: Any) -> dict[str, Any]:
    versions = {metric.name: metric.version for metric in FAMILY.metrics}
    return project.record(CELL, COMMIT, seed, started_at=started_at, versions=versions, **changes)


def seconds(*values: float, **changes: Any) -> dict[str, Any]:
    measured = {"value": values[0], **changes} if len(values) == 1 else {"samples": list(values)}
    return {"run_seconds": measured}


def of(entries: list[dict[str, Any]]) -> journal.Replicates | None:
    return journal.replicates(entries, FAMILY).get(("run_seconds", CELL))


def test_records_are_added_once_and_read_in_order(project: Any, tmp_path: Path) -> None:
    kept = Journal(tmp_path / "journal")
    assert kept.commits() == set()
    late, early = project.record(CELL, COMMIT, started_at=20), project.record(CELL, COMMIT, started_at=10)
    assert kept.add(late, FAMILY.metrics)
    assert kept.add(early, FAMILY.metrics)
    assert not kept.add({**late, "duration": 99.0}, FAMILY.metrics)
    assert [one["id"] for one in kept.entries(COMMIT)] == [early["id"], late["id"]]
    assert kept.entries(COMMIT)[1]["duration"] == 2.5
    assert kept.entries(COMMIT)[0]["versions"]["run_seconds"] == "1"
    assert kept.commits() == {COMMIT}
    assert kept.entries("b" * 40) == []


def test_a_torn_entry_is_named_and_does_not_block_its_commit(
    project: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left_out.cache_clear()
    kept = Journal(tmp_path / "journal")
    whole, torn = project.record(CELL, COMMIT), project.record(CELL, COMMIT)
    kept.add(whole, FAMILY.metrics)
    kept.add(torn, FAMILY.metrics)
    file = next((tmp_path / "journal").rglob(f"record-{torn['id']}.json"))
    file.write_bytes(file.read_bytes()[:-10])
    assert [one["id"] for one in kept.entries(COMMIT)] == [whole["id"]]
    assert file.name in capsys.readouterr().err


def test_the_newest_good_record_of_a_seed_counts(project: Any) -> None:
    failed = {"status": "failed", "error": "killed", "metrics": {}}
    entries = [
        entry(project, 0, 1, metrics=seconds(1.0, standard_error=0.1)),
        entry(project, 1, 2, metrics=seconds(2.0, standard_error=0.2)),
        entry(project, 0, 3, metrics=seconds(3.0, standard_error=0.3)),
        entry(project, 1, 4, **failed),
    ]
    found = of(entries)
    assert found is not None
    assert (found.values, found.errors, found.failed) == ((3.0, 2.0), (0.3, 0.2), "")
    assert found.started_at == 4
    assert found.settings is not None
    assert "seed" not in found.settings
    assert found.settings["chains"] == 16


def test_samples_are_replicates_of_a_single_record_only(project: Any) -> None:
    first = entry(project, 0, 1, metrics=seconds(1.0, 5.0, 2.0))
    second = entry(project, 1, 2, metrics=seconds(7.0))
    alone, both = of([first]), of([first, second])
    assert alone is not None
    assert both is not None
    assert alone.values == (1.0, 5.0, 2.0)
    assert both.values == (2.0, 7.0)
    assert both.errors == ()


def test_failures_and_missing_values(project: Any) -> None:
    killed = of([entry(project, 0, 1, status="failed", error="killed", metrics={})])
    assert killed is not None
    assert (killed.values, killed.failed, killed.ran) == ((), "killed", False)
    none = of([entry(project, 0, 1, metrics={"run_seconds": {"failed": "it has none"}})])
    assert none is not None
    assert (none.values, none.failed, none.ran) == ((), "it has none", True)
    assert of([entry(project, 0, 1, metrics={})]) is None
    assert of([entry(project, 0, 1, status="skipped", metrics={})]) is None


def test_other_versions_of_a_metric_stay_out(project: Any) -> None:
    old = entry(project, 0, 1, metrics=seconds(1.0))
    old["versions"] = {**old["versions"], "run_seconds": "0"}
    assert of([old]) is None
    both = of([old, entry(project, 1, 2, metrics=seconds(2.0))])
    assert both is not None
    assert both.values == (2.0,)


@pytest.mark.parametrize(
    "metric",
    [{"value": math.inf}, {"value": math.nan}, {"value": "1"}, {"value": True}, {"samples": [1.0, None]}, {}],
)
def test_only_finite_numbers_count(metric: dict[str, Any]) -> None:
    assert journal.numbers(metric) == ()


def test_a_value_that_json_has_not_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "x.json", {"value": math.inf})
    assert list(tmp_path.iterdir()) == []
