"""The journal: append only, and what its records come to."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from small_records import typed, whole

from spinbench.foundation.remarks import remark
from spinbench.history import axes, journal
from spinbench.history.journal import Journal
from spinbench.measuring.record_parts import Metric

FAMILY = axes.family("inference")
CELL = ("grid", "gibbs", "numpy")
COMMIT = "a" * 40
VERSIONS = {metric.name: metric.version for metric in FAMILY.metrics}
KILLED = {"status": "failed", "error": "killed", "metrics": {}}


def seconds(*values: float, **changes: Any) -> dict[str, Any]:
    """What a record has measured, and nothing else."""
    measured = {"value": values[0], **changes} if len(values) == 1 else {"samples": list(values)}
    return {"metrics": {"run_seconds": measured}}


def replicates(project: Any, seeds: int, *changes: dict[str, Any]) -> journal.Replicates | None:
    """Of records with these changes, one after another, of so many seeds in turn."""
    entries = [
        project.record(CELL, COMMIT, place % seeds, **{"started_at": place, "versions": VERSIONS, **one})
        for place, one in enumerate(changes)
    ]
    return journal.family_replicates(typed(entries), FAMILY).get(("run_seconds", CELL))


def test_records_are_added_once_and_read_in_order(project: Any, tmp_path: Path) -> None:
    kept = Journal(tmp_path / "journal")
    assert kept.commits() == set()
    late, early = (project.record(CELL, COMMIT, started_at=started) for started in (20, 10))
    changed = {**late, "duration": 99.0}
    assert [kept.add(whole(one), FAMILY.metrics) for one in (late, early, changed)] == [True, True, False]
    found = kept.read_entries(COMMIT)
    assert [(one.id, one.duration) for one in found] == [(early["id"], 2.5), (late["id"], 2.5)]
    assert found[0]["versions"]["run_seconds"] == "1"
    assert (kept.commits(), kept.read_entries("b" * 40)) == ({COMMIT}, [])


def test_a_torn_entry_is_named_and_does_not_block_its_commit(
    project: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    remark.cache_clear()
    kept = Journal(tmp_path / "journal")
    sound, torn = (project.record(CELL, COMMIT) for _ in range(2))
    for one in (sound, torn):
        kept.add(whole(one), FAMILY.metrics)
    (file,) = (tmp_path / "journal").rglob(f"record-{torn['id']}.json")
    file.write_bytes(file.read_bytes()[:-10])
    assert [one.id for one in kept.read_entries(COMMIT)] == [sound["id"]]
    assert file.name in capsys.readouterr().err


def test_the_newest_good_record_of_a_seed_counts(project: Any) -> None:
    found = replicates(
        project,
        2,
        seconds(1.0, standard_error=0.1),
        seconds(2.0, standard_error=0.2),
        seconds(3.0, standard_error=0.3),
        KILLED,
    )
    assert found is not None
    assert (found.values, found.errors, found.failed, found.started_at) == ((3.0, 2.0), (0.3, 0.2), "", 3)
    assert found.settings is not None
    assert "seed" not in found.settings
    assert found.settings["chains"] == 16


# Of another version of the metric.
OLD = {**seconds(1.0), "versions": {**VERSIONS, "run_seconds": "0"}}


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        pytest.param([seconds(1.0, 5.0, 2.0)], ((1.0, 5.0, 2.0), "", False), id="samples of a single record"),
        pytest.param([seconds(1.0, 5.0, 2.0), seconds(7.0)], ((2.0, 7.0), "", False), id="two records"),
        pytest.param([KILLED], ((), "killed", False), id="a killed one"),
        pytest.param(
            [{"metrics": {"run_seconds": {"failed": "it has none"}}}], ((), "it has none", True), id="it ran without"
        ),
        pytest.param([OLD, seconds(7.0)], ((7.0,), "", False), id="an old one and a new one"),
        pytest.param([OLD], None, id="an old one"),
        pytest.param([{"metrics": {}}], None, id="of other metrics"),
        pytest.param([{"status": "skipped", "metrics": {}}], None, id="a refused one"),
    ],
)
def test_what_records_of_a_metric_come_to(project: Any, records: list[dict[str, Any]], expected: object) -> None:
    found = replicates(project, len(records), *records)
    assert (found and (found.values, found.failed, found.ran)) == expected
    assert found is None or found.errors == ()


@pytest.mark.parametrize(
    "metric",
    [{"value": math.inf}, {"value": math.nan}, {"value": 0.0, "better": "higher"}, {"samples": [1.0, math.nan]}, {}],
)
def test_only_finite_numbers_count(metric: dict[str, Any]) -> None:
    assert journal.finite_values(Metric(**metric)) == ()
