"""Records into asv's history: what enters, what stays out, and that nothing is lost on the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from asv.results import Results

from spinbench.errors import HistoryError
from spinbench.history import axes
from spinbench.history.asv_results import ResultFiles
from spinbench.history.publish import publish
from spinbench.history.recorder import History, record

METRICS = [metric.name for metric in axes.family("inference").metrics]


def fill(project: Any, commit: str, name: str = "first", seeds: int = 1, **changes: Any) -> Path:
    """A sweep's folder with records of all of the project's test cells."""
    records = [project.record(cell, commit, seed, **changes) for cell in project.cells for seed in range(seeds)]
    return project.sweep(name, records)


def snapshot(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "record.lock"
    }


def test_a_record_enters_the_series_and_asv_shows_it(bare_project: Any) -> None:
    project = bare_project
    commit = project.commit("first")
    report = record(project.root, [fill(project, commit)])
    assert (report.new, report.known, report.refused, report.commits) == (3, 0, (), (commit,))
    assert [path.exists() for path in report.files] == [True]
    assert project.value(commit, "marginal_rmse", project.cells[0]) == 0.125
    assert project.value(commit, "marginal_rmse", ("grid", "dhmc", "jax")) == "not run"
    shown = project.asv("show", commit)
    assert "inference.track_marginal_rmse [testbox/spinbench-py" in shown
    assert "125ms" in shown
    assert f"asv show {commit[:8]}" in report.sentences()[0]


def test_foreign_repository_in_the_environment(project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a hook of another repository."""
    commit = project.commit("first")
    folder = fill(project, commit)
    subprocess.run(["git", "init", "-q", str(tmp_path / "foreign")], check=True)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "foreign" / ".git"))
    report = record(project.root, [folder])
    assert (report.new, report.refused, report.commits) == (3, (), (commit,))
    assert publish(project.root).is_file()


def test_seeds_are_replicates_and_doing_it_again_changes_nothing(project: Any) -> None:
    commit = project.commit("first")
    folder = fill(project, commit, seeds=3)
    record(project.root, [folder])
    before = snapshot(project.root / ".asv")
    row = project.result(commit)["inference.track_run_seconds"]
    place = axes.family("inference").cells.index(project.cells[0])
    assert row["samples"][place] == [0.125, 0.25, 0.375]
    assert row["result"][place] == 0.25
    again = record(project.root, [folder, folder / "records"])
    assert (again.new, again.known) == (0, 9)
    assert snapshot(project.root / ".asv") == before


def test_failed_refused_and_missing_values(project: Any) -> None:
    commit = project.commit("first")
    first, second, third = project.cells
    failed = {"status": "failed", "error": "killed", "metrics": {name: {"failed": "killed"} for name in METRICS}}
    partial = {name: {"value": 1.0} for name in METRICS}
    partial["seconds_per_ess"] = {"failed": "no effective sample size"}
    del partial["compile_seconds"]
    records = [
        project.record(first, commit, **failed),
        project.record(second, commit, status="skipped", error="refused", metrics={}),
        project.record(third, commit, metrics=partial),
    ]
    record(project.root, [project.sweep("odd", records)])
    assert project.value(commit, "run_seconds", first) is None
    assert project.value(commit, "run_seconds", second) == "not run"
    assert project.value(commit, "run_seconds", third) == 1.0
    for metric in ("compile_seconds", "seconds_per_ess"):
        assert project.value(commit, metric, third) == "not run"
    # A good record of the failed cell, entered later, replaces the failure.
    record(project.root, [project.sweep("later", [project.record(first, commit)])])
    assert project.value(commit, "run_seconds", first) == 0.125


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"git": {"commit": "HEAD", "dirty": True}}, "uncommitted changes in the tree"),
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
def test_what_stays_out_of_the_history(project: Any, changes: dict[str, Any], sentence: str) -> None:
    commit = project.commit("first")
    odd = project.record(project.cells[0], commit)
    for key, value in changes.items():
        odd[key] = {**odd[key], **value} if key == "config" else value
    if odd["git"]["commit"] == "HEAD":
        odd["git"]["commit"] = commit
    folder = project.sweep("odd", [odd])
    kept, untouched = snapshot(folder), snapshot(project.root / ".asv")
    report = record(project.root, [folder])
    assert (report.new, report.commits) == (0, ())
    (refusal,) = report.refused
    assert refusal.startswith("1 of 1 records stay out of the history: ")
    assert sentence in refusal
    assert snapshot(project.root / ".asv") == untouched
    assert snapshot(folder) == kept


def test_what_a_killed_recorder_left_behind_is_made_up_for_by_the_next(
    project: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal had the records; asv's file of the commit is made when any other commit is recorded."""
    first = project.commit("first")
    folder = fill(project, first)

    def kill(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as killed:
        killed.setattr(ResultFiles, "rebuild", kill)
        with pytest.raises(KeyboardInterrupt):
            record(project.root, [folder])
    second = project.commit("second")
    record(project.root, [project.sweep("second", [project.record(project.cells[0], second)])])
    assert project.value(first, "run_seconds", project.cells[0]) == project.value(
        second, "run_seconds", project.cells[0]
    )
    assert not list((project.root / ".asv" / "unfinished").rglob("*" + first))


def test_good_records_are_not_held_up_by_others(project: Any) -> None:
    commit = project.commit("first")
    dirty = project.record(project.cells[0], commit, git={"commit": commit, "dirty": True})
    report = record(project.root, [project.sweep("dirty", [dirty]), fill(project, commit)])
    assert report.new == 3
    (refusal,) = report.refused
    assert refusal.startswith("1 of 4 records stay out of the history: they were measured with uncommitted changes")
    assert report.sentences()[1:] == [refusal]


def test_of_another_host_unless_the_machine_is_named(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = project.commit("first")
    folder = fill(project, commit, environment={"hostname": "elsewhere"})
    monkeypatch.delenv("SPINBENCH_MACHINE")
    (refusal,) = record(project.root, [folder]).refused
    assert "host elsewhere; name the machine that they count for in SPINBENCH_MACHINE" in refusal
    monkeypatch.setenv("SPINBENCH_MACHINE", "cluster")
    assert record(project.root, [folder]).new == 3


def test_unreadable_records_are_named_and_skipped(project: Any) -> None:
    commit = project.commit("first")
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
    assert len(report.refused) == len(bad)
    for name in bad:
        assert sum(name in sentence for sentence in report.refused) == 1


def test_errors_are_sentences(bare_project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = bare_project
    commit = project.commit("first")
    folder = fill(project, commit)
    with pytest.raises(HistoryError, match=r"nowhere is not a folder; give folders that `spinbench sweep` wrote"):
        record(project.root, [tmp_path / "nowhere"])
    with pytest.raises(HistoryError, match="there are no files record"):
        record(project.root, [project.root / "harness"])
    with pytest.raises(HistoryError, match=r"there is no asv\.conf\.json in .* or above it"):
        record(tmp_path, [folder])
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "asv.conf.json").write_text((project.root / "asv.conf.json").read_text())
    with pytest.raises(HistoryError, match="is not a git checkout"):
        record(plain, [folder])
    inner = project.root / "inner"
    inner.mkdir()
    (inner / "asv.conf.json").write_text("{}")
    with pytest.raises(HistoryError, match="but the git checkout starts at"):
        record(inner, [folder])
    monkeypatch.setenv("SPINBENCH_MACHINE", "../up")
    with pytest.raises(HistoryError, match=r"machine name '\.\./up' cannot name a folder"):
        record(project.root, [folder])
    monkeypatch.setenv("SPINBENCH_MACHINE", "testbox")
    suite = project.root / "harness" / "history" / "suite" / "inference.py"
    suite.write_text("import nothing_of_this_name\n")
    with pytest.raises(HistoryError, match=r"asv cannot import the benchmarks .* 'nothing_of_this_name'"):
        record(project.root, [folder])
    suite.write_text("")
    with pytest.raises(HistoryError, match=r"asv does not find benchmark inference\.track_marginal_rmse"):
        record(project.root, [folder])
    (project.root / "asv.conf.json").write_text("{")
    with pytest.raises(HistoryError, match="asv cannot read"):
        record(project.root, [folder])


def test_a_folder_inside_the_checkout_finds_its_root(project: Any) -> None:
    commit = project.commit("first")
    folder = fill(project, commit)
    assert record(folder, [folder]).files[0].is_relative_to(project.root / ".asv")


RECORDER = """
import sys
from pathlib import Path
from spinbench.history.recorder import record
report = record(Path(sys.argv[1]), [Path(folder) for folder in sys.argv[2:]])
print(report.new)
"""


def test_a_new_format_of_asv_is_refused_at_import() -> None:
    program = "from asv.results import Results; Results.api_version = 3; import spinbench.history.recorder"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "ImportError: asv's formats are results 3, benchmarks 2 and machine 1" in done.stderr


def test_two_recorders_at_once_lose_nothing(project: Any) -> None:
    commit = project.commit("first")
    folders = [fill(project, commit, f"sweep{i}", started_at=i) for i in range(2)]
    for i, folder in enumerate(folders):  # one seed each
        for path in (folder / "records").iterdir():
            entry = json.loads(path.read_text())
            entry["config"]["seed"] = i
            path.write_text(json.dumps(entry))
    running = [
        subprocess.Popen([sys.executable, "-c", RECORDER, str(project.root), str(folder)], stdout=subprocess.PIPE)
        for folder in folders
    ]
    assert [int(process.communicate(timeout=60)[0]) for process in running] == [3, 3]
    row = project.result(commit)["inference.track_run_seconds"]
    assert sum(len(samples or ()) for samples in row["samples"]) == 6


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
    assert report.new + report.known == 3
    assert project.value(commit, "run_seconds", project.cells[0]) == 0.125
    assert not (project.root / ".asv" / "scratch").exists()


def test_values_of_asv_run_are_kept(project: Any) -> None:
    commit = project.commit("first")
    report = record(project.root, [fill(project, commit)])
    cells = axes.family("inference").cells
    other, broken = cells.index(("grid", "dhmc", "jax")), cells.index(("grid", "gibbs", "jax"))
    appended = cells.index(("grid", "exact", "numba"))
    stored = Results.load(str(report.files[0]))
    name = "inference.track_run_seconds"
    # As asv would have written it before "exact" was appended to the axis.
    values = dict(zip(cells, stored._results[name], strict=True))
    values[cells[other]], values[cells[broken]] = 3.5, None
    stored._results[name] = [value for cell, value in values.items() if cell[1] != "exact"]
    stored._benchmark_params[name][1].remove("'exact'")
    stored.save(str(project.root / ".asv" / "results"))
    record(project.root, [project.sweep("more", [project.record(project.cells[1], commit)])])
    assert project.value(commit, "run_seconds", cells[other]) == 3.5
    assert project.value(commit, "run_seconds", cells[broken]) is None
    assert project.value(commit, "run_seconds", cells[appended]) == "not run"
    for cell in project.cells:
        assert project.value(commit, "run_seconds", cell) == 0.125
    measured = History.open(project.root).measured(commit)
    assert measured["inference", "run_seconds", cells[other]].values == (3.5,)
    assert measured["inference", "run_seconds", cells[broken]].failed == "asv recorded a failure"
    assert measured["inference", "run_seconds", project.cells[0]].values == (0.125,)


def test_a_damaged_result_file_is_set_aside_and_rebuilt(project: Any) -> None:
    commit = project.commit("first")
    folder = fill(project, commit)
    path = record(project.root, [folder]).files[0]
    whole = path.read_bytes()
    path.write_bytes(whole[:100])
    (sentence,) = record(project.root, [folder]).refused
    assert "was damaged" in sentence
    assert path.read_bytes() == whole
    (aside,) = (project.root / ".asv" / "damaged").iterdir()
    assert aside.read_bytes() == whole[:100]


def test_the_description_of_the_machine_stays(project: Any) -> None:
    commit = project.commit("first")
    folder = fill(project, commit)
    record(project.root, [folder])
    path = project.root / ".asv" / "results" / "testbox" / "machine.json"
    first = json.loads(path.read_text())
    assert (first["machine"], first["os"]) == ("testbox", os.uname().sysname)
    path.write_text(json.dumps({**first, "os": "Linux of that day"}))
    files = record(project.root, [folder]).files
    assert json.loads(files[0].read_text())["params"]["os"] == "Linux of that day"
    assert json.loads(path.read_text())["os"] == "Linux of that day"


@pytest.mark.parametrize("damaged", [b"{", b"[1]", b"\xff", b'{"version": 2}', b'{"version": 1, "os": []}'])
def test_a_description_of_the_machine_that_cannot_be_read_is_written_anew(
    project: Any, damaged: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = fill(project, project.commit("first"))
    record(project.root, [folder])
    path = project.root / ".asv" / "results" / "testbox" / "machine.json"
    whole = path.read_bytes()
    path.write_bytes(damaged)
    record(project.root, [folder])
    assert path.read_bytes() == whole
    assert "machine.json, which describes this machine anew" in capsys.readouterr().err


def test_the_users_description_of_the_machine_is_taken_over(project: Any, tmp_path: Path) -> None:
    commit = project.commit("first")
    described = {"machine": "testbox", "os": "Linux 6.1", "arch": "x", "cpu": "y", "num_cpu": "2", "ram": "3"}
    (tmp_path / ".asv-machine.json").write_text(json.dumps({"testbox": described, "version": 1}))
    files = record(project.root, [fill(project, commit)]).files
    assert json.loads(files[0].read_text())["params"]["os"] == "Linux 6.1"
