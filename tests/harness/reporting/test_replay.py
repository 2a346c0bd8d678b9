"""Records are shown in full and measured again."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_records import whole

from spinbench import cli
from spinbench.foundation import atomic
from spinbench.measuring import records
from spinbench.measuring.measure import measure_cell
from spinbench.measuring.record_types import Record
from spinbench.reporting import replay

CONFIG = {
    "model": {"name": "grid", "rows": 2, "cols": 3},
    "method": {"name": "gibbs"},
    "backend": {"name": "numpy", "device": "cpu", "precision": "float64"},
    "budget": {"samples": 200, "seconds": None, "burn_in": None},
    "chains": 4,
    "seed": 3,
}


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    return measure_cell(CONFIG, git={"commit": "b" * 40, "dirty": False, "diff": None})


@pytest.fixture
def kept(record: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return records.write_record(tmp_path / "multirun" / "one", record)


def test_show_prints_all_of_it(record: dict[str, Any], kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["show", record["key"][:6]]) == 0
    text = capsys.readouterr().out
    for piece in ("gibbs on numpy, grid", "seed=3", "b" * 40, "budget.samples", "marginal RMSE", "environment"):
        assert piece in text
    for name in record["environment"]["versions"]:
        assert f"versions.{name}" in text
    assert repr(record["metrics"]["marginal_rmse"]["value"]) in text


def test_show_of_a_failure_has_its_reason(record: dict[str, Any], kept: Path, capsys: Any) -> None:
    broken = {**record, "status": "failed", "error": "[red]why", "traceback": "line 1", "result": None, "metrics": {}}
    path = kept.with_name("record-x.json")
    atomic.write_json(path, {**broken, "reference": None})
    assert cli.main(["show", str(path)]) == 0
    text = capsys.readouterr().out
    assert "[red]why" in text
    assert "line 1" in text


def test_a_rerun_reproduces_the_figures(record: dict[str, Any], kept: Path, capsys: Any) -> None:
    assert cli.main(["rerun", str(kept)]) == 0
    text = capsys.readouterr().out
    assert "reproduced: all" in text
    assert "not as it was: commit: " + "b" * 40 in text


def changed(record: dict[str, Any], changes: dict[str, Any]) -> Record:
    """The record with other parts, by their dotted names; functions make them of the old ones."""
    other = copy.deepcopy(record)
    for name, value in changes.items():
        *above, last = name.split(".")
        part: Any = other
        for one in above:
            part = part[one]
        part[last] = value(part[last]) if callable(value) else value
    return whole(other)


TIMED = {"config.budget": {"seconds": 1.0, "samples": None}, "result.log_z": 2.0, "result.log_z_se": 0.3}
AGAIN = {**TIMED, "result.samples": 1, "result.log_z": 2.5, "result.log_z_se": 0.4}
EXACT = {"result.log_z_kind": "exact"}
FAILED = {"status": "failed", "error": "why", "result": None, "metrics": {}}


@pytest.mark.parametrize(
    ("then", "now", "status", "verdict"),
    [
        ({}, {}, 0, "reproduced: all "),
        ({}, {"result.seconds.run": 99.0, "metrics.run_seconds.value": 99.0}, 0, "reproduced: all "),
        (TIMED, AGAIN, 0, "the budget is in seconds, so the number of samples depends on "),
        (TIMED, AGAIN, 0, "the estimates of log Z are 1.0 standard errors apart"),
        (TIMED | EXACT, AGAIN | EXACT, 1, "(samples, log_z, log_z_se)"),
        ({}, {"metrics.marginal_rmse.value": lambda then: math.nextafter(then, 1.0)}, 1, "(marginal_rmse.value)"),
        ({}, FAILED, 1, "not reproduced: the record says ok, now the cell failed (why)"),
        (FAILED, FAILED, 0, "the cell failed (why), as the record says"),
    ],
    ids=[
        "the same",
        "seconds",
        "a budget in seconds",
        "how far apart",
        "exact",
        "a bit",
        "another outcome",
        "fails again",
    ],
)
def test_verdicts_on_a_second_record(
    record: dict[str, Any], then: dict[str, Any], now: dict[str, Any], status: int, verdict: str
) -> None:
    done = replay.compare_replay(changed(record, then), changed(record, now))
    assert done.exit_status == status
    assert verdict in done.verdict()


METRIC = """
from spinbench.api import Measured, Metric


class First(Metric):
    title = "first"

    def measure(self, model, result, reference):
        return Measured(float(result.marginals[0]), 0.5)


class Pace(First):
    timed = True

    def measure(self, model, result, reference):
        return Measured(result.seconds.run)
"""


@pytest.fixture
def measured(install_plugin: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A record with numbers of two metrics of others."""
    folder = install_plugin("spinbench_first", METRIC, {"metrics": {"first": "First", "pace": "Pace"}})
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return measure_cell(CONFIG)


@pytest.mark.parametrize(
    ("changes", "differing"),
    [
        ({"metrics.pace.value": 1e9}, []),
        ({"metrics.first.standard_error": 0.25}, ["first.standard_error"]),
        ({"metrics.first": {"failed": "it came out as nan"}}, ["first.value", "first.standard_error"]),
    ],
    ids=["a time", "an error", "both"],
)
def test_numbers_of_others_metrics_are_figures(
    measured: dict[str, Any], changes: dict[str, Any], differing: list[str]
) -> None:
    done = replay.compare_replay(whole(measured), changed(measured, changes))
    assert (done.differing_figures, done.exit_status) == (differing, int(bool(differing)))


def test_metrics_that_one_record_lacks_are_changes(measured: dict[str, Any], record: dict[str, Any]) -> None:
    """They were installed, or removed, meanwhile."""
    assert record["metrics"].keys() < measured["metrics"].keys()
    for then, now in ((measured, record), (record, measured)):
        done = replay.compare_replay(whole(then), whole(now))
        assert done.exit_status == 0
        assert not [name for name in done.figures if name.startswith("first")]
        (said,) = [text for text in done.changes if text.startswith("plugins.metrics.first.version: ")]
        assert said.endswith(("1.0 then, none now", "none then, 1.0 now"))


def test_names_that_fit_none_or_several(record: dict[str, Any], kept: Path, capsys: Any) -> None:
    atomic.write_json(kept.with_name("record-2.json"), {**record, "id": "ff", "key": "zz1"})
    atomic.write_json(kept.with_name("record-3.json"), {**record, "id": "fe", "key": "zz2"})
    atomic.write_json(Path(".asv/journal/box/env/c/record-zz1.json").absolute(), {**record, "id": "ff", "key": "zz1"})
    for name, sentence in (("nothing", "neither the file of a record nor"), ("zz", "zz fits 2 records")):
        assert cli.main(["show", name]) == 2
        assert sentence in capsys.readouterr().err
    assert cli.main(["show", "zz1"]) == 0
