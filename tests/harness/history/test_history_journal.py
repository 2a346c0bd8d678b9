"""The journal: append only, and what its records come to."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from small_records import typed, whole

from spinbench.foundation.atomic import write_json
from spinbench.foundation.remarks import left_out
from spinbench.history import axes, journal
from spinbench.history.journal import Journal
from spinbench.measuring.record_parts import Metric

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
    return journal.replicates(typed(entries), FAMILY).get(("run_seconds", CELL))


def test_records_are_added_once_and_read_in_order(project: Any, tmp_path: Path) -> None:
    kept = Journal(tmp_path / "journal")
    assert kept.commits() == set()
    late, early = project.record(CELL, COMMIT, started_at=20), project.record(CELL, COMMIT, started_at=10)
    assert kept.add(whole(late), FAMILY.metrics)
    assert kept.add(whole(early), FAMILY.metrics)
    assert not kept.add(whole({**late, "duration": 99.0}), FAMILY.metrics)
    assert [one.id for one in kept.entries(COMMIT)] == [early["id"], late["id"]]
    assert kept.entries(COMMIT)[1].duration == 2.5
    assert kept.entries(COMMIT)[0]["versions"]["run_seconds"] == "1"
    assert kept.commits() == {COMMIT}
    assert kept.entries("b" * 40) == []


def test_a_torn_entry_is_named_and_does_not_block_its_commit(
    project: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left_out.cache_clear()
    kept = Journal(tmp_path / "journal")
    sound, torn = project.record(CELL, COMMIT), project.record(CELL, COMMIT)
    kept.add(whole(sound), FAMILY.metrics)
    kept.add(whole(torn), FAMILY.metrics)
    file = next((tmp_path / "journal").rglob(f"record-{torn['id']}.json"))
    file.write_bytes(file.read_bytes()[:-10])
    assert [one.id for one in kept.entries(COMMIT)] == [sound["id"]]
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


def test_what_records_of_a_metric_come_to(project: Any) -> None:
    def made(seed: int, **changes: Any) -> dict[str, Any]:
        return entry(project, seed, 1, **changes)

    samples, other = made(0, metrics=seconds(1.0, 5.0, 2.0)), made(1, metrics=seconds(7.0))
    old = made(0, metrics=seconds(1.0))
    old["versions"] = {**old["versions"], "run_seconds": "0"}  # another version of the metric
    killed = made(0, status="failed", error="killed", metrics={})
    without = made(0, metrics={"run_seconds": {"failed": "it has none"}})
    for entries, expected in (
        ([samples], ((1.0, 5.0, 2.0), "", False)),  # of a single record samples are replicates
        ([samples, other], ((2.0, 7.0), "", False)),
        ([killed], ((), "killed", False)),
        ([without], ((), "it has none", True)),
        ([old, other], ((7.0,), "", False)),
    ):
        found = of(entries)
        assert found is not None
        assert (found.values, found.failed, found.ran) == expected
        assert found.errors == ()
    for one in (old, made(0, metrics={}), made(0, status="skipped", metrics={})):
        assert of([one]) is None


@pytest.mark.parametrize(
    "metric",
    [{"value": math.inf}, {"value": math.nan}, {"value": 0.0, "better": "higher"}, {"samples": [1.0, math.nan]}, {}],
)
def test_only_finite_numbers_count(metric: dict[str, Any]) -> None:
    assert journal.numbers(Metric(**metric)) == ()


def test_a_value_that_json_has_not_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "x.json", {"value": math.inf})
    assert list(tmp_path.iterdir()) == []
