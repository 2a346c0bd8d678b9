"""Histories of several machines merge: nothing is doubled or lost, twice is as once, and machines stay apart."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import gate_runs
import numpy as np
import pytest
from gate_runs import CELLS, Factor, nothing, slower
from small_records import whole

from spinbench import cli
from spinbench.conf import searchpath
from spinbench.errors import HistoryError
from spinbench.history import axes
from spinbench.history.asv_results import ResultFiles
from spinbench.history.gate import gate
from spinbench.history.merge import merge
from spinbench.history.recorder import History, record
from spinbench.history.series import Identity, SeriesIndex, identify


def clone(project: Any, name: str) -> Any:
    """The same repository elsewhere, with a history of its own that has not begun."""
    root = project.root.parent / name
    project.git("clone", "-q", str(project.root), str(root))
    (root / ".asv" / "results").mkdir(parents=True)
    shutil.copy(project.root / ".asv" / "results" / "benchmarks.json", root / ".asv" / "results")
    made = type(project)(root)
    made.git("config", "user.name", "tester")
    made.git("config", "user.email", "tester@example.org")
    return made


def sit(project: Any, commit: str, machine: str, monkeypatch: pytest.MonkeyPatch, factor: Factor = nothing) -> None:
    """Measure a cell of conf/axes, and one beyond it, of which the default differs by the machine."""
    rng = np.random.default_rng(len(machine))
    default = {"forgotten": {"abacus": 1, "board": 2}[machine]}
    made = [
        gate_runs.record(commit, cell, seed, gate_runs.values(rng, cell, factor))
        for cell in CELLS[:2]
        for seed in range(3)
    ]
    for one in made[3:]:
        one["config"]["method"] = {**one["config"]["method"], **default}
    usual = searchpath.method_defaults
    with monkeypatch.context() as patched:
        patched.setattr(searchpath, "method_defaults", lambda name: {**usual(name), **default})
        patched.setenv("SPINBENCH_MACHINE", machine)
        record(project.root, [project.sweep(f"{machine}-{commit[:8]}", made)])


def begin_column(project: Any, commit: str, scan: str) -> dict[str, Any]:
    """Let a column of conf/axes begin with a scan of gibbs; a record of it."""
    cell = project.cells[0]
    one = copy.deepcopy(project.record(cell, commit))
    one["config"]["method"]["scan"] = scan
    of_it = Identity(cell[0], (*cell[1:], ""), identify(whole(one)).config)
    SeriesIndex(project.root / ".asv" / "journal").add(of_it, ["run_seconds"], axes.family("inference").column(cell))
    return one


def content(root: Path, begins: str = "") -> dict[str, bytes]:
    home = root / ".asv"
    found = {str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*.json")}
    return {name: text for name, text in found.items() if name.startswith(begins)}


def results(project: Any, machine: str = "board") -> dict[str, dict[str, Any]]:
    """What asv's files hold of a machine, by commit."""
    paths = (project.root / ".asv" / "results" / machine).glob("*-*.json")
    return {path.name[:8]: json.loads(path.read_text())["results"] for path in paths}


@pytest.fixture
def pair(project: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any, list[str]]:
    """One repository in two places, on the machine "abacus"."""
    monkeypatch.setenv("SPINBENCH_MACHINE", "abacus")
    commits = [project.commit("first"), project.commit("second")]
    return project, clone(project, "other"), commits


@pytest.fixture
def two(pair: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Both measured, each on a machine of its own; the second one is slower at the second commit."""
    project, other, commits = pair
    for turn, commit in enumerate(commits):
        sit(project, commit, "abacus", monkeypatch)
        sit(other, commit, "board", monkeypatch, slower(2.0 if turn else 1.0, *CELLS))
    return pair


def test_two_machines_merge_and_the_gate_keeps_them_apart(two: Any) -> None:
    project, other, _ = two
    own, theirs = content(project.root, "journal/"), content(other.root)
    merged = merge(project.root, [other.root])
    assert (merged.new, merged.duplicates, merged.notes) == ({"board": 12}, {"board": 0}, [])
    after = content(project.root)
    assert own.items() <= after.items()
    versions = set()
    for name in (name for name in theirs if "/record-" in name):
        kept = json.loads(after[name])
        assert {**json.loads(theirs[name]), "machine": "board", "series": None} == {**kept, "series": None}
        versions |= {kept["series"]["version"]} if "series" in kept else set()
    # the default was 1 here first: 2 is the next version of the series, whatever it was called where it is from
    assert versions == {2}
    assert "results/board/machine.json" in after
    assert merge(project.root, [other.root / ".asv"]).new == {"board": 0}
    assert content(project.root) == after
    assert [gate(project.root).exit_status, gate(project.root, machine="board").exit_status] == [0, 1]
    labels = {label for found in results(project).values() for row in found.values() for label in row[1][0]}
    assert {label for label in labels if "v2" in label} == {"'gibbs numba samples=3000 v2'"}
    project.asv("publish", "--no-pull")
    site = json.loads((project.root / ".asv" / "html" / "index.json").read_text())
    assert set(site["machines"]) == {"abacus", "board"}


def test_records_of_commits_that_are_not_here_wait_for_them(two: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    project, other, _ = two
    late = other.commit("late")
    sit(other, late, "board", monkeypatch)
    merged = merge(project.root, [other.root])
    assert (merged.new, [late[:8] in note for note in merged.notes]) == ({"board": 18}, [True])
    project.git("fetch", "-q", str(other.root), "main")
    assert late[:8] not in results(project)
    merged = merge(project.root, [other.root])
    assert (merged.new, merged.notes) == ({"board": 0}, [])
    assert late[:8] in results(project)


def test_what_asv_run_measured_comes_along(two: Any) -> None:
    project, other, commits = two
    (path,) = (other.root / ".asv" / "results" / "board").glob(f"{commits[0][:8]}-*.json")
    stored = json.loads(path.read_text())
    stored["results"]["kernels.track_gibbs"] = [[1.5], None, "1", 1_700_000_000_000, 1.0, None, None]
    path.write_text(json.dumps(stored))
    merge(project.root, [other.root])
    assert results(project)[commits[0][:8]]["kernels.track_gibbs"][0] == [1.5]
    copy = clone(project, "third")
    for there in (project, other):
        merge(copy.root, [there.root])
    names = [name for name in content(copy.root) if "/record-" in name]
    assert ({name.split("/")[1] for name in names}, len(names)) == ({"abacus", "board"}, 24)
    shutil.rmtree(other.root / ".asv" / "journal" / "board")
    alone = clone(project, "fourth")
    merge(alone.root, [other.root])  # of which only asv's files are left
    assert commits[0][:8] in results(alone)


def test_a_column_keeps_what_it_holds_here(pair: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere the column was begun with another default, and what stands in it here has a series of its own there."""
    project, other, (commit, _) = pair
    cell = project.cells[0]
    record(project.root, [project.sweep("first", [begin_column(project, commit, "chromatic")])])
    monkeypatch.setenv("SPINBENCH_MACHINE", "board")
    records = [begin_column(other, commit, "random"), project.record(cell, commit, 1)]
    record(other.root, [other.sweep("first", records)])
    monkeypatch.setenv("SPINBENCH_MACHINE", "abacus")
    assert merge(project.root, [other.root]).new == {"board": 2}
    entries = History.open(project.root, "board").journal.read_entries(commit)
    found = {one["config"]["method"]["scan"]: one.get("series") for one in entries}
    assert found == {"chromatic": None, "random": {"model": cell[0], "parts": [*cell[1:], ""], "version": 2}}
    assert merge(project.root, [other.root]).new == {"board": 0}


def test_asvs_files_hold_nothing_of_another_configuration(pair: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands in a column elsewhere is of another series here; asv's file of there is no witness of it."""
    project, other, (first, second) = pair
    for there, machine, scan in ((other, "board", "random"), (project, "abacus", "chromatic")):
        monkeypatch.setenv("SPINBENCH_MACHINE", machine)
        record(there.root, [there.sweep("first", [begin_column(there, first, scan)])])
    (path,) = (other.root / ".asv" / "results" / "board").glob(f"{first[:8]}-*.json")
    later = {**json.loads(path.read_text()), "commit_hash": second}  # as `asv run` would leave it: of no record
    path.with_name(path.name.replace(first[:8], second[:8])).write_text(json.dumps(later))
    merged = merge(project.root, [other.root])
    (note,) = merged.notes
    assert merged.new == {"board": 1}
    assert "with other settings than those of the series here stays out, of 1 commits" in note
    found = results(project)
    assert not found.get(second[:8])
    assert {name.partition(".")[0] for name in found[first[:8]]} == {"swept"}
    assert {row[1][0][0] for row in found[first[:8]].values()} == {"'gibbs numpy v2'"}


def test_a_merge_that_was_killed_is_finished_by_the_next(pair: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    project, other, (commit, _) = pair
    for seed, there in enumerate((project, other)):
        record(there.root, [there.sweep("first", [project.record(project.cells[0], commit, seed)])])

    def killed(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(ResultFiles, "rebuild", killed)
        with pytest.raises(KeyboardInterrupt):
            merge(project.root, [other.root])
    assert merge(project.root, [other.root]).new == {"abacus": 0}
    row = results(project, "abacus")[commit[:8]]["inference.track_run_seconds"]
    assert [0.125, 0.25] in [one for part in row if isinstance(part, list) for one in part]


def test_what_is_no_history_is_refused(
    project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPINBENCH_HISTORY", str(project.root))
    commit = project.commit("first")
    record(project.root, [project.sweep("first", [project.record(project.cells[0], commit)])])
    for folder, sentence in ((tmp_path, "there is no history in"), (project.root, "is the history of .* itself")):
        with pytest.raises(HistoryError, match=sentence):
            merge(project.root, [folder])
    (tmp_path / "journal" / "no machine" / "x").mkdir(parents=True)
    damaged = tmp_path / "journal" / "box" / "spinbench-py3.11" / commit
    damaged.mkdir(parents=True)
    (damaged / "record-1.json").write_text("{")
    unreadable, odd = merge(project.root, [tmp_path]).notes
    assert "is not a record" in unreadable
    assert "is no history of a machine" in odd
    assert cli.main(["history", "merge", str(tmp_path / "nothing")]) == 2
    assert "there is no history in" in capsys.readouterr().err
