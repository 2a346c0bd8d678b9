"""Records: written whole or not at all, and identified by what they measured."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_records import RESULT, typed

from spinbench.foundation import remarks
from spinbench.measuring import cells, records
from spinbench.measuring.records import RecordError

CELL: dict[str, Any] = {
    "model": {"name": "grid"},
    "method": {"name": "gibbs", "scan": "raster"},
    "backend": {"name": "numba", "device": "cpu", "precision": "float64"},
    "budget": {"samples": 10, "seconds": None, "burn_in": None},
    "chains": 16,
    "seed": 0,
}
GIT = {"commit": "a" * 40, "dirty": False, "diff": None}


def record(key: str = "k", **changes: Any) -> dict[str, Any]:
    axes = {"model": "grid", "method": "gibbs", "backend": "numba"}
    empty = {"family": "inference", "axes": axes, "git": {}, "metrics": {}, "duration": 1.0, "protocol": "p"}
    empty |= {"error": None, "traceback": None, "result": RESULT, "reference": None, "environment": {}}
    return {"schema": 1, "id": key, "key": key, "started_at": 1, "status": "ok", "config": CELL, **empty, **changes}


def test_record_comes_back_and_replaces_its_predecessor(tmp_path: Path) -> None:
    records.write_record(tmp_path, record(status="failed"))
    path = records.write_record(tmp_path, record())
    assert [one.content for one in records.read_records(tmp_path)] == [record()]
    assert [file.name for file in path.parent.iterdir()] == ["record-k.json"]


def test_failed_write_leaves_the_old_record_and_no_fragment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = records.write_record(tmp_path, record())

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RecordError, match="cannot be written: No space left"):
        records.write_record(tmp_path, record(status="failed"))
    with pytest.raises(ValueError, match="JSON compliant"):
        records.write_record(tmp_path, record(metrics=float("inf")))
    assert records.read_record(path).content == record()
    assert len(list(path.parent.iterdir())) == 1


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 2}', "\0\xff"])
def test_what_is_no_record_is_refused_by_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "record-x.json").write_text(text, encoding="latin-1")
    with pytest.raises(RecordError, match=r"record-x\.json"):
        records.read_records(tmp_path)


def damaged(text: str, *path: str, by: Any) -> str:
    """A record's text with one entry replaced."""
    whole = json.loads(text)
    part = whole
    for name in path[:-1]:
        part = part[name]
    part[path[-1]] = by
    return json.dumps(whole)


@pytest.mark.parametrize(
    ("path", "by"),
    [
        (("metrics",), {"log_z_error": {"value": "1+2j"}}),
        (("metrics",), {"log_z_error": {"value": 10**400}}),
        (("metrics",), {"log_z_error": {"value": math.nan}}),
        (("result",), None),
        (("result",), {**RESULT, "log_z": [1]}),
        (("result",), {**RESULT, "trajectory": [{}]}),
        (("result", "seconds"), {"run": 1.0}),
        (("axes",), {"model": "grid"}),
        (("config", "budget"), None),
        (("git",), {"commit": 7}),
        (("started_at",), "yesterday"),
        (("status",), None),
    ],
)
def test_a_malformed_record_is_named_and_the_rest_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], path: tuple[str, ...], by: Any
) -> None:
    remarks.remark.cache_clear()
    good = records.write_record(tmp_path, record("good"))
    (tmp_path / "record-bad.json").write_text(damaged(good.read_text(), *path, by=by))
    (tmp_path / "record-deep.json").write_text("[" * 100_000)
    (tmp_path / "record-huge.json").write_text(json.dumps(record() | {"seed": 10**400}))
    os.mkfifo(tmp_path / "record-pipe.json")
    (tmp_path / "record-torn.json").write_bytes(good.read_bytes()[:-20])
    assert [one.content for one in records.read_records(tmp_path)] == [record("good")]
    told = capsys.readouterr().err
    names = ["bad", "deep", "huge", "pipe", "torn"]
    assert [name for name in names if f"record-{name}.json" in told] == names


def test_what_a_terminal_would_obey_does_not_leave_a_record(tmp_path: Path) -> None:
    path = records.write_record(tmp_path, record(error="\x1b]0;owned\x07 \x9b31m \ud800 \U0001f600\n"))
    assert records.read_record(path).error == "\ufffd]0;owned\ufffd \ufffd31m \ufffd \U0001f600\n"


def test_key_tells_cells_code_and_files_apart(tmp_path: Path) -> None:
    file = tmp_path / "m.uai"
    file.write_text("one")
    mine = {**CELL, "model": {"name": "file", "path": str(file)}}
    keys = [
        records.cell_key(CELL, GIT),
        records.cell_key({**CELL, "seed": 1}, GIT),
        records.cell_key(CELL, {**GIT, "commit": "b" * 40}),
        records.cell_key(CELL, {**GIT, "dirty": True, "diff": "1"}),
        records.cell_key(mine, GIT),
    ]
    file.write_text("two")
    keys.append(records.cell_key(mine, GIT))
    assert len(set(keys)) == len(keys)
    assert records.cell_key(dict(reversed(CELL.items())), GIT) == keys[0]


def test_outside_of_git_another_version_is_another_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = {"commit": None, "dirty": None, "diff": None}
    keys = {records.cell_key(CELL, nowhere), records.cell_key(CELL, GIT)}
    monkeypatch.setattr(records, "__version__", "99.0")
    assert len({*keys, records.cell_key(CELL, nowhere)}) == 3


@pytest.mark.parametrize(
    ("name", "ended"), [("gibbs", {"ladder": 50}), ("pt", {"updates": "gibbs", "blocks": 0, "houdayer": 0})]
)
def test_settings_that_ended_are_dropped_at_their_defaults_of_0_1_0(
    tmp_path: Path, name: str, ended: dict[str, Any]
) -> None:
    """Its records hold all settings, and are of the cells that are measured without these."""
    today = {**CELL, "method": {"name": name, "scan": "raster"}}
    then = {**CELL, "method": {**today["method"], **ended}}
    path = records.write_record(tmp_path, record(config=then, protocol=cells.protocol_digest(then)))
    known = records.read_record(path)
    assert (known.config, known.protocol) == (today, cells.protocol_digest(today))
    assert known["config"] == then
    chosen = {**then["method"], **dict.fromkeys(ended, 7)}
    path = records.write_record(tmp_path, record(config={**CELL, "method": chosen}))
    assert (records.read_record(path).config["method"], records.read_record(path).protocol) == (chosen, "p")


def test_protocol_is_all_but_the_axes_and_the_seed() -> None:
    same = {**CELL, "seed": 5, "model": {"name": "ring"}}
    assert cells.protocol_digest(same) == cells.protocol_digest(CELL)
    for name, value in {"chains": 1, "budget": {"samples": 11}, "method": {"name": "gibbs", "scan": "random"}}.items():
        assert cells.protocol_digest({**CELL, name: value}) != cells.protocol_digest(CELL)
    assert CELL["method"]["name"] == "gibbs"


@pytest.mark.parametrize(
    ("spec", "label"),
    [
        ({"name": "uai14/Grids_12"}, "uai14/Grids_12"),
        ({"name": "grid", "rows": 10, "cols": 10, "c1": 1, "c2": 1.0, "seed": 0}, "grid"),
        ({"name": "grid", "rows": 20, "c2": 0.25}, "grid(rows=20,c2=0.25)"),
        ({"name": "file", "path": "a/b.uai", "evidence": None}, "a/b.uai"),
        ({"name": "file", "path": "a/b.uai", "evidence": "e.evid"}, "a/b.uai given e.evid"),
        ({"name": "nosuch", "x": 1}, "nosuch(x=1)"),
    ],
)
def test_labels_of_models(spec: dict[str, Any], label: str) -> None:
    assert records.model_label(spec) == label


@pytest.mark.parametrize(
    ("found", "earlier", "counts"),
    [
        pytest.param(
            [record("new", started_at=2), record("other", config={**CELL, "seed": 1}), record("old", started_at=1)],
            set(),
            {"new", "other"},
            id="of a cell the latest",
        ),
        pytest.param(
            [record("before", id="a", started_at=2), record("now", id="b", started_at=1)],
            {"a"},
            {"now"},
            id="of this run, whatever the clock said",
        ),
    ],
)
def test_which_record_counts(found: list[dict[str, Any]], earlier: set[str], counts: set[str]) -> None:
    assert {entry.key for entry in records.latest_per_cell(typed(found), earlier=earlier)} == counts


def test_identities_pass_over_damaged_files(tmp_path: Path) -> None:
    assert records.record_ids(tmp_path) == frozenset()
    records.write_record(tmp_path, record("one", id="a"))
    records.record_path(tmp_path, "two").write_text('{"schema": 1, "id"')
    assert records.record_ids(tmp_path) == {"a"}


def test_plain_data_is_json() -> None:
    content = {
        "array": np.array([1.0, np.nan]),
        "scalar": np.float32(0.5),
        "infinite": -np.inf,
        "nested": ({1: np.int64(2)}, True, None),
        "path": Path("x"),
    }
    expected = {
        "array": [1.0, None],
        "scalar": 0.5,
        "infinite": None,
        "nested": [{"1": 2}, True, None],
        "path": "x",
    }
    assert json.loads(json.dumps(records.plain(content), allow_nan=False)) == expected


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.uai")
    model = {"name": "file", "path": str(tmp_path / "pipe.uai")}
    assert records.cell_key({**CELL, "model": model}, GIT)
