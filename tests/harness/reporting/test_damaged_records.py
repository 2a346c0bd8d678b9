"""Records of which parts are missing or of another type are named and left out, or shown: never a traceback."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_records import make, typed

from spinbench import cli
from spinbench.errors import SpinbenchError
from spinbench.foundation import remarks
from spinbench.measuring import records
from spinbench.measuring.measure import measure_cell
from spinbench.reporting import content, curves, export, leaderboard, replay
from spinbench.reporting.profiles.profile import profile

GOOD = make(seed=1)
VICTIMS = (make(seed=0, log_z=1.0), make(status="failed", error="it broke"))
ABSENT = object()
OTHERS = (ABSENT, None, "x", -1, [1], {"a": 1}, True)


def paths(part: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    entries = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    for name, inner in entries:
        yield (*above, name)
        yield from paths(inner, (*above, name))


def damaged(record: dict[str, Any], path: tuple[Any, ...], by: Any) -> dict[str, Any]:
    whole = copy.deepcopy(record)
    part: Any = whole
    for name in path[:-1]:
        if not (name in part if isinstance(part, dict) else isinstance(part, list) and name < len(part)):
            return whole  # it is gone with another part
        part = part[name]
    if isinstance(part, dict | list) and by is not ABSENT:
        part[path[-1]] = by
    elif isinstance(part, dict):
        part.pop(path[-1], None)
    return whole


def shown(folder: Path, record: dict[str, Any]) -> bool:
    """Whether a record is shown beside a good one; otherwise it is refused by name."""
    for name, content_ in (("good", GOOD), ("bad", record)):
        (folder / f"record-{name}.json").write_text(json.dumps(content_))
    found = records.latest(records.read_records(folder))
    assert GOOD in [record.content for record in found]
    rows = leaderboard.rows(found)
    export.tables(found, rows)
    content.data(found, rows)
    content.problems(found)
    profile(found)
    for one in found:
        replay.describe(one)
        curves.points(one, "log_z_error")
    return len(found) > 1


@pytest.mark.parametrize("victim", VICTIMS, ids=("ok", "failed"))
def test_each_part_of_a_record_may_be_missing_or_none(tmp_path: Path, victim: dict[str, Any]) -> None:
    assert shown(tmp_path, victim)
    outcomes = {shown(tmp_path, damaged(victim, path, by)) for path in paths(victim) for by in (ABSENT, None)}
    assert outcomes == {True, False}


def measured(method: str) -> dict[str, Any]:
    """A record as a sweep writes it, of more parts than one that is made by hand; its first bound says nothing."""
    cell = {
        "model": {"name": "grid", "rows": 2, "cols": 2},
        "method": {"name": method},
        "backend": {"name": "numpy", "device": "cpu", "precision": "float64"},
        "budget": {"samples": 64, "seconds": None, "burn_in": None},
        "chains": 2,
        "seed": 0,
    }
    record = json.loads(json.dumps(measure_cell(cell, git={"commit": "b" * 40, "dirty": False, "diff": None})))
    silent = {"value": None, "side": "lower", "grade": "certified", "delta": 0.0, "by": method}
    record["result"]["bounds"].insert(0, silent)
    return dict(record)


def test_each_number_of_a_measured_record_may_be_missing_or_none(tmp_path: Path) -> None:
    victim = measured("wmb")
    assert shown(tmp_path, victim)
    places = [path for path in paths(victim) if path[0] in ("result", "metrics", "reference")]
    outcomes = {shown(tmp_path, damaged(victim, path, by)) for path in places for by in (ABSENT, None)}
    assert outcomes == {True, False}


@given(
    victim=st.sampled_from(VICTIMS),
    harm=st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from(OTHERS)), min_size=1, max_size=3),
)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_parts_may_be_of_any_type(tmp_path: Path, victim: dict[str, Any], harm: list[tuple[int, Any]]) -> None:
    places = list(paths(victim))
    record = victim
    for number, by in harm:
        record = damaged(record, places[number % len(places)], by)
    shown(tmp_path, record)


def test_the_report_names_a_good_record_without_a_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    remarks.left_out.cache_clear()
    for name, record in (("good", GOOD), ("bad", damaged(VICTIMS[0], ("result",), ABSENT))):
        (tmp_path / f"record-{name}.json").write_text(json.dumps(record))
    assert cli.main(["report", str(tmp_path), "--tables"]) == 0
    told = capsys.readouterr()
    assert "record-bad.json is not a record: result is missing or malformed" in told.err
    assert "record-good" not in told.err
    with pytest.raises(SpinbenchError, match=r"record-bad\.json is not a record: result"):
        records.read_record(tmp_path / "record-bad.json")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("started_at",), 1e18),
        (("started_at",), -1.0),
        (("metrics", "marginal_rmse", "value"), 1e299),
        (("metrics", "marginal_rmse", "standard_error"), -1.0),
        (("environment", "gpus"), 7),
        (("result", "trajectory", 0, "samples"), 10**299),
        (("versions",), [1]),
        (("config", "+hydra.job.env_set"), {"PYTHONPATH": "/evil"}),
        (("config", "experiment"), "tour"),
        (("config", "model", "hydra.x"), 1),
        (("config", "model", "name"), "../../evil"),
        (("config", "method", "name"), "/evil"),
        (("config", "model", "path"), "${oc.env:SECRET}"),
        (("config", "method", "extra"), [{"a": "${x}"}]),
    ],
    ids=lambda one: ".".join(map(str, one)) if isinstance(one, tuple) else "",
)
def test_what_no_sweep_writes_is_no_record(tmp_path: Path, path: tuple[Any, ...], value: Any) -> None:
    """Commands are made of records, squares and dates of their numbers."""
    assert not shown(tmp_path, damaged(make(seed=0), path, value))


def test_files_that_changed_under_their_names_make_rows_of_their_own() -> None:
    records_ = [{**make(seed=seed), "files": {"path": "ab" * 32 if seed else "cd" * 32}} for seed in range(3)]
    found = leaderboard.rows(typed(records_))
    assert sorted((row.replicates, row.variant[:14]) for row in found) == [
        (1, "files.path=cdc"),
        (2, "files.path=aba"),
    ]


def test_settings_of_plugins_may_have_any_keys_within(tmp_path: Path) -> None:
    record = make(seed=0)
    record["config"]["method"] |= {"of-mine": {"0.5": [1, {"a b": "c d"}]}}
    assert shown(tmp_path, record)
