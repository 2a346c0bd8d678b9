"""Records into asv's history: what enters, what stays out, and what the journal's records come to."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from asv.results import Results
from small_records import typed, whole

from spinbench.errors import HistoryError
from spinbench.foundation.remarks import remark
from spinbench.history import axes, journal
from spinbench.history.asv_results import ResultFiles
from spinbench.history.journal import Journal
from spinbench.history.publish import publish
from spinbench.history.recorder import History, record
from spinbench.measuring.record_parts import Metric

METRICS = [metric.name for metric in axes.family("inference").metrics]
RUN_SECONDS = "inference.track_run_seconds"


def fill(project: Any, commit: str, name: str = "first", seeds: int = 1, **changes: Any) -> Path:
    """A sweep's folder with records of all of the project's test cells."""
    records = [project.record(cell, commit, seed, **changes) for cell in project.cells for seed in range(seeds)]
    return project.sweep(name, records)


def snapshot(folder: Path) -> dict[str, bytes]:
    found = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if path.name != "record.lock"}


def machine_file(project: Any) -> Path:
    return project.root / ".asv" / "results" / "testbox" / "machine.json"


@pytest.fixture
def commit(project: Any) -> str:
    return project.commit("first")


def test_a_record_enters_the_series_and_asv_shows_it(bare_project: Any) -> None:
    project = bare_project
    commit = project.commit("first")
    folder = fill(project, commit)
    report = record(folder, [folder])  # a folder inside the checkout finds its root
    assert (report.new, report.duplicates, report.refused, report.commits) == (3, 0, (), (commit,))
    assert [path.is_relative_to(project.root / ".asv") and path.exists() for path in report.files] == [True]
    assert project.value(commit, "marginal_rmse", project.cells[0]) == 0.125
    assert project.value(commit, "marginal_rmse", ("grid", "dhmc", "jax")) == "not run"
    shown = project.asv("show", commit)
    assert "inference.track_marginal_rmse [testbox/spinbench-py" in shown
    assert "125ms" in shown
    assert f"asv show {commit[:8]}" in report.sentences()[0]


def test_foreign_repository_in_the_environment(
    project: Any, commit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a hook of another repository."""
    subprocess.run(["git", "init", "-q", str(tmp_path / "foreign")], check=True)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "foreign" / ".git"))
    report = record(project.root, [fill(project, commit)])
    assert (report.new, report.refused, report.commits) == (3, (), (commit,))
    assert publish(project.root).is_file()


def test_seeds_are_replicates_and_doing_it_again_changes_nothing(project: Any, commit: str) -> None:
    folder = fill(project, commit, seeds=3)
    record(project.root, [folder])
    before = snapshot(project.root / ".asv")
    row = project.result(commit)[RUN_SECONDS]
    place = axes.family("inference").cells.index(project.cells[0])
    assert (row["samples"][place], row["result"][place]) == ([0.125, 0.25, 0.375], 0.25)
    again = record(project.root, [folder, folder / "records"])
    assert (again.new, again.duplicates) == (0, 9)
    assert snapshot(project.root / ".asv") == before


def test_failed_refused_and_missing_values(project: Any, commit: str) -> None:
    first, second, third = project.cells
    failed = {"status": "failed", "error": "killed", "metrics": {name: {"failed": "killed"} for name in METRICS}}
    partial = {name: {"value": 1.0} for name in METRICS if name != "compile_seconds"}
    records = [
        project.record(first, commit, **failed),
        project.record(second, commit, status="skipped", error="refused", metrics={}),
        project.record(third, commit, metrics={**partial, "seconds_per_ess": {"failed": "no effective sample size"}}),
    ]
    record(project.root, [project.sweep("odd", records)])
    expected = {
        ("run_seconds", first): None,
        ("run_seconds", second): "not run",
        ("run_seconds", third): 1.0,
        ("compile_seconds", third): "not run",
        ("seconds_per_ess", third): "not run",
    }
    assert {name: project.value(commit, *name) for name in expected} == expected
    # A good record of the failed cell, entered later, replaces the failure.
    record(project.root, [project.sweep("later", [project.record(first, commit)])])
    assert project.value(commit, "run_seconds", first) == 0.125


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"git": {"commit": "HEAD", "dirty": True}}, "uncommitted changes in the tree"),
        ({"git": {"commit": "HEAD", "dirty": None}}, "where git cannot tell what is changed"),
        ({"git": {"commit": None, "dirty": None}}, "outside a git checkout"),
        ({"git": {"commit": "0" * 40, "dirty": False}}, "belong to commit 00000000, which"),
        ({"environment": {"python": "3.9.1"}}, "Python 3.9.1"),
        ({"config": {"model": {"name": "file", "path": "mine.uai"}}}, "do not say what their own files held"),
        ({"config": {"method": {"name": "gone"}}}, "have the method gone, whose defaults are not known here"),
        (
            {"config": {"chains": 3}, "status": "failed", "error": "killed", "metrics": {}},
            "failed where nothing was ever measured (boltzmann/neural15 gibbs numpy)",
        ),
    ],
)
def test_what_stays_out_of_the_history(project: Any, commit: str, changes: dict[str, Any], sentence: str) -> None:
    odd = project.record(project.cells[0], commit)
    odd |= {**changes, "config": {**odd["config"], **changes.get("config", {})}}
    if odd["git"]["commit"] == "HEAD":
        odd["git"]["commit"] = commit
    folder = project.sweep("odd", [odd])
    kept, untouched = snapshot(folder), snapshot(project.root / ".asv")
    report = record(project.root, [folder])
    (refusal,) = report.refused
    assert refusal.startswith("1 of 1 records stay out of the history: ")
    assert sentence in refusal
    assert (report.new, report.commits) == (0, ())
    assert (snapshot(project.root / ".asv"), snapshot(folder)) == (untouched, kept)


def test_of_another_host_unless_the_machine_is_named(
    project: Any, commit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fill(project, commit, environment={"hostname": "elsewhere"})
    monkeypatch.delenv("SPINBENCH_MACHINE")
    (refusal,) = record(project.root, [folder]).refused
    assert "host elsewhere; name the machine that they count for in SPINBENCH_MACHINE" in refusal
    monkeypatch.setenv("SPINBENCH_MACHINE", "cluster")
    assert record(project.root, [folder]).new == 3


def test_unreadable_records_are_named_and_skipped(project: Any, commit: str) -> None:
    folder = fill(project, commit)
    bad = {
        "record-empty.json": "",
        "record-other.json": '{"schema": 99}',
        "record-id.json": json.dumps(project.record(project.cells[0], commit, id="../../../evil")),
        "record-commit.json": json.dumps(project.record(project.cells[0], "--option" * 6)),
        "record-part.json": json.dumps({"schema": 1, "id": "ab"}),
        "record-infinite.json": json.dumps(project.record(project.cells[0], commit, duration=float("inf"))),
    }
    for name, text in bad.items():
        (folder / "records" / name).write_text(text)
    report = record(project.root, [folder])
    assert report.new == 3
    assert {name: sum(name in sentence for sentence in report.refused) for name in bad} == dict.fromkeys(bad, 1)
    assert len(report.refused) == len(bad)


def test_errors_are_sentences(bare_project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = bare_project.root
    folder = fill(bare_project, bare_project.commit("first"))
    config = root / "asv.conf.json"
    for inner in (tmp_path / "plain", root / "inner"):
        inner.mkdir()
        (inner / "asv.conf.json").write_text(config.read_text())

    def refused(sentence: str, where: Path = root, folder: Path = folder) -> None:
        with pytest.raises(HistoryError, match=sentence):
            record(where, [folder])

    refused("nowhere is not a folder; give folders that `spinbench sweep` wrote", folder=tmp_path / "nowhere")
    refused("there are no files record", folder=root / "harness")
    refused(r"there is no asv\.conf\.json in .* or above it", tmp_path)
    refused("is not a git checkout", tmp_path / "plain")
    refused("but the git checkout starts at", root / "inner")
    monkeypatch.setenv("SPINBENCH_MACHINE", "../up")
    refused(r"machine name '\.\./up' cannot name a folder")
    monkeypatch.setenv("SPINBENCH_MACHINE", "testbox")
    config.write_text("{")
    refused("asv cannot read")


@pytest.mark.parametrize("group", ["backend", "method", "model"])
def test_a_record_of_what_is_not_installed_here_stops_no_other(bare_project: Any, group: str) -> None:
    folder = fill(bare_project, bare_project.commit("first"))
    first, *others = sorted((folder / "records").glob("record-*.json"))
    content = json.loads(first.read_text())
    content["config"][group]["name"] = content["axes"][group] = "elsewhere"
    first.write_text(json.dumps(content))
    report = record(bare_project.root, [folder])
    assert report.new >= len(others)
    assert report.new + len(report.refused) == 1 + len(others)
    again = record(bare_project.root, [folder])
    assert (again.new, again.duplicates) == (0, report.new)


def test_nothing_of_a_checkout_is_imported(bare_project: Any, tmp_path: Path) -> None:
    """Neither its benchmarks nor modules beside them, of the names of asv's own."""
    folder = fill(bare_project, bare_project.commit("first"))
    suite = bare_project.root / "harness" / "history" / "suite"
    for file in (suite / "inference.py", suite / "__init__.py", bare_project.root / "asv.py", suite / "asv_runner.py"):
        file.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    assert record(bare_project.root, [folder]).new
    assert not (tmp_path / "ran").exists()


RECORDER = """
import sys
from pathlib import Path
from spinbench.history.recorder import record
report = record(Path(sys.argv[1]), [Path(folder) for folder in sys.argv[2:]])
print(report.new)
"""
KILLED = """
import os, signal, sys
moment, left = sys.argv.pop(1), int(sys.argv.pop(1))
replace = os.replace
def dying(source, target):
    global left
    left -= 1
    if left == 0 and moment == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    replace(source, target)
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
os.replace = dying
"""


@pytest.mark.parametrize(
    ("moment", "replacement"),
    # 1 to 3 are the journal's files, then benchmarks.json, machine.json and the result file
    [("before", 2), ("after", 4), ("before", 6)],
)
def test_a_kill_at_any_moment_leaves_whole_files(bare_project: Any, moment: str, replacement: int) -> None:
    project = bare_project
    commit = project.commit("first")
    folder = fill(project, commit)
    command = [sys.executable, "-c", KILLED + RECORDER, moment, str(replacement), str(project.root), str(folder)]
    assert subprocess.run(command, capture_output=True, check=False).returncode == -signal.SIGKILL
    for path in (project.root / ".asv").rglob("*.json"):
        if "scratch" not in path.parts:
            json.loads(path.read_text())
    report = record(project.root, [folder])
    assert report.new + report.duplicates == 3
    assert project.value(commit, "run_seconds", project.cells[0]) == 0.125
    assert not (project.root / ".asv" / "scratch").exists()


def test_what_a_killed_recorder_left_behind_is_made_up_for_by_the_next(
    project: Any, commit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal had the records; asv's file of the commit is made when any other commit is recorded."""

    def kill(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as killed:
        killed.setattr(ResultFiles, "rebuild", kill)
        with pytest.raises(KeyboardInterrupt):
            record(project.root, [fill(project, commit)])
    second = project.commit("second")
    record(project.root, [project.sweep("second", [project.record(project.cells[0], second)])])
    assert {project.value(one, "run_seconds", project.cells[0]) for one in (commit, second)} == {0.125}
    assert not list((project.root / ".asv" / "unfinished").rglob("*" + commit))


def test_a_new_format_of_asv_is_refused_at_import() -> None:
    program = "from asv.results import Results; Results.api_version = 3; import spinbench.history.recorder"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "ImportError: asv's formats are results 3, benchmarks 2 and machine 1" in done.stderr


def test_values_of_asv_run_are_kept(project: Any, commit: str) -> None:
    report = record(project.root, [fill(project, commit)])
    cells = axes.family("inference").cells
    other, broken, appended = ("grid", "dhmc", "jax"), ("grid", "gibbs", "jax"), ("grid", "exact", "numba")
    stored = Results.load(str(report.files[0]))
    # As asv would have written it before "exact" was appended to the axis.
    values = {**dict(zip(cells, stored._results[RUN_SECONDS], strict=True)), other: 3.5, broken: None}
    stored._results[RUN_SECONDS] = [value for cell, value in values.items() if cell[1] != "exact"]
    stored._benchmark_params[RUN_SECONDS][1].remove("'exact'")
    stored.save(str(project.root / ".asv" / "results"))
    record(project.root, [project.sweep("more", [project.record(project.cells[1], commit)])])
    expected = {other: 3.5, broken: None, appended: "not run", **dict.fromkeys(project.cells, 0.125)}
    assert {cell: project.value(commit, "run_seconds", cell) for cell in expected} == expected
    measured = History.open(project.root).replicates(commit)
    assert measured["inference", "run_seconds", other].values == (3.5,)
    assert measured["inference", "run_seconds", broken].failed == "asv recorded a failure"
    assert measured["inference", "run_seconds", project.cells[0]].values == (0.125,)


def test_a_damaged_result_file_is_set_aside_and_rebuilt(project: Any, commit: str) -> None:
    folder = fill(project, commit)
    path = record(project.root, [folder]).files[0]
    whole = path.read_bytes()
    path.write_bytes(whole[:100])
    (sentence,) = record(project.root, [folder]).refused
    (aside,) = (project.root / ".asv" / "damaged").iterdir()
    assert "was damaged" in sentence
    assert (path.read_bytes(), aside.read_bytes()) == (whole, whole[:100])


def test_the_description_of_the_machine_stays(project: Any, commit: str, tmp_path: Path) -> None:
    """The user's is taken over as the history begins."""
    described = {"machine": "testbox", "os": "Linux 6.1", "arch": "x", "cpu": "y", "num_cpu": "2", "ram": "3"}
    (tmp_path / ".asv-machine.json").write_text(json.dumps({"testbox": described, "version": 1}))
    folder = fill(project, commit)
    for system in ("Linux 6.1", "Linux of that day"):
        files = record(project.root, [folder]).files
        known = json.loads(machine_file(project).read_text())
        assert known["os"] == json.loads(files[0].read_text())["params"]["os"] == system
        machine_file(project).write_text(json.dumps({**known, "os": "Linux of that day"}))


FAMILY = axes.family("inference")
CELL = ("grid", "gibbs", "numpy")
COMMIT = "a" * 40
VERSIONS = {metric.name: metric.version for metric in FAMILY.metrics}
KILLED_CELL = {"status": "failed", "error": "killed", "metrics": {}}


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
        KILLED_CELL,
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
        pytest.param([KILLED_CELL], ((), "killed", False), id="a killed one"),
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
