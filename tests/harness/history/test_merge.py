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
from spinbench.history.series import Book, Identity, identity


def swept(commit: str, cell: tuple[str, ...], seed: int, rng: np.random.Generator, factor: Factor) -> dict[str, Any]:
    return gate_runs.record(commit, cell, seed, gate_runs.values(rng, cell, factor))  # type: ignore[arg-type]


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
    made = [swept(commit, CELLS[0], seed, rng, factor) for seed in range(3)]
    grown = [swept(commit, CELLS[1], seed, rng, factor) for seed in range(3)]
    default = {"forgotten": {"abacus": 1, "board": 2}[machine]}
    for one in grown:
        one["config"]["method"] = {**one["config"]["method"], **default}
    usual = searchpath.method_defaults
    with monkeypatch.context() as patched:
        patched.setattr(searchpath, "method_defaults", lambda name: {**usual(name), **default})
        patched.setenv("SPINBENCH_MACHINE", machine)
        record(project.root, [project.sweep(f"{machine}-{commit[:8]}", [*made, *grown])])


def content(root: Path) -> dict[str, bytes]:
    home = root / ".asv"
    return {str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*.json")}


@pytest.fixture
def two(project: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any, list[str]]:
    """One repository, measured on two machines; the second one is slower at the second commit."""
    commits = [project.commit("first"), project.commit("second")]
    other = clone(project, "other")
    for turn, commit in enumerate(commits):
        sit(project, commit, "abacus", monkeypatch)
        sit(other, commit, "board", monkeypatch, slower(2.0 if turn else 1.0, *CELLS))
    monkeypatch.setenv("SPINBENCH_MACHINE", "abacus")
    return project, other, commits


def test_two_machines_merge_and_the_gate_keeps_them_apart(two: Any) -> None:
    project, other, _ = two
    before, theirs = content(project.root), content(other.root)
    merged = merge(project.root, [other.root])
    assert (merged.new, merged.known, merged.notes) == ({"board": 12}, {"board": 0}, [])
    after = content(project.root)
    journals = [name for name in before if name.startswith("journal/")]
    assert {name: after[name] for name in journals} == {name: before[name] for name in journals}
    records = [name for name in theirs if "/record-" in name]
    assert set(records) <= set(after)
    for name in records:
        own, kept = json.loads(theirs[name]), json.loads(after[name])
        assert kept["machine"] == "board"
        assert {**own, "series": None} == {**kept, "series": None}
    # the default was 1 here first: 2 is the next version of the series, whatever it was called where it is from
    (one,) = {kept["series"]["version"] for name in records if "series" in (kept := json.loads(after[name]))}
    assert one == 2
    assert "results/board/machine.json" in after
    assert merge(project.root, [other.root / ".asv"]).new == {"board": 0}
    assert content(project.root) == after
    assert gate(project.root).exit_status == 0
    assert gate(project.root, machine="board").exit_status == 1
    values = {name: json.loads(text)["results"] for name, text in after.items() if name.startswith("results/board/")
              and not name.endswith("machine.json")}  # fmt: skip
    labels = {label for found in values.values() for row in found.values() for label in row[1][0]}
    assert {label for label in labels if "v2" in label} == {"'gibbs numba samples=3000 v2'"}
    project.asv("publish", "--no-pull")
    machines = json.loads((project.root / ".asv" / "html" / "index.json").read_text())["machines"]
    assert set(machines) == {"abacus", "board"}


def test_records_of_commits_that_are_not_here_wait_for_them(two: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    project, other, _ = two
    late = other.commit("late")
    sit(other, late, "board", monkeypatch)
    merged = merge(project.root, [other.root])
    assert merged.new == {"board": 18}
    assert [late[:8] in note for note in merged.notes] == [True]
    project.git("fetch", "-q", str(other.root), "main")
    assert late not in History.open(project.root, "board")._files.commits()
    merged = merge(project.root, [other.root])
    assert (merged.new, merged.notes) == ({"board": 0}, [])
    assert late in History.open(project.root, "board")._files.commits()


def test_what_asv_run_measured_comes_along(two: Any) -> None:
    project, other, commits = two
    (path,) = (other.root / ".asv" / "results" / "board").glob(f"{commits[0][:8]}-*.json")
    stored = json.loads(path.read_text())
    row = [[1.5], None, "1", 1_700_000_000_000, 1.0, None, None]
    stored["results"]["kernels.track_gibbs"] = row
    path.write_text(json.dumps(stored))
    merge(project.root, [other.root])
    found = json.loads((project.root / ".asv" / "results" / "board" / path.name).read_text())["results"]
    assert found["kernels.track_gibbs"][0] == [1.5]
    copy = clone(project, "third")
    merge(copy.root, [project.root])
    merge(copy.root, [other.root])
    assert {name.split("/")[1] for name in content(copy.root) if "/record-" in name} == {"abacus", "board"}
    assert len([name for name in content(copy.root) if "/record-" in name]) == 24
    shutil.rmtree(other.root / ".asv" / "journal" / "board")
    alone = clone(project, "fourth")
    merge(alone.root, [other.root])  # of which only asv's files are left
    assert (alone.root / ".asv" / "results" / "board" / path.name).is_file()


def test_a_column_keeps_what_it_holds_here(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere the column was begun with another default, and what stands in it here has a series of its own there."""
    commit = project.commit("first")
    other = clone(project, "other")
    cell = project.cells[0]
    old, new = (copy.deepcopy(project.record(cell, commit, seed)) for seed in (0, 1))
    new["config"]["method"]["scan"] = "random"
    for there, machine, records in ((project, "abacus", [old]), (other, "board", [new, old])):
        home = Book(there.root / ".asv" / "journal")
        monkeypatch.setenv("SPINBENCH_MACHINE", machine)
        for one in records:
            column = axes.family("inference").column(cell) if one is records[0] else ()
            home.enter(Identity(cell[0], (*cell[1:], ""), identity(whole(one)).config), ["run_seconds"], column)
        own = [{**one, "id": f"{there is project:x}{one['id']}"} for one in records]
        record(there.root, [there.sweep("first", own)])
    monkeypatch.setenv("SPINBENCH_MACHINE", "abacus")
    assert merge(project.root, [other.root]).new == {"board": 2}
    entries = History.open(project.root, "board").journal.entries(commit)
    found = {one["config"]["method"]["scan"]: one.get("series") for one in entries}
    assert found == {"chromatic": None, "random": {"model": cell[0], "parts": [*cell[1:], ""], "version": 2}}
    assert merge(project.root, [other.root]).new == {"board": 0}


def test_asvs_files_hold_nothing_of_another_configuration(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands in a column elsewhere is of another series here; asv's file of there is no witness of it."""
    first, second = project.commit("first"), project.commit("second")
    other = clone(project, "other")
    cell = project.cells[0]
    for there, machine, scan in ((project, "abacus", "chromatic"), (other, "board", "random")):
        monkeypatch.setenv("SPINBENCH_MACHINE", machine)
        one = copy.deepcopy(project.record(cell, first))
        one["config"]["method"]["scan"] = scan
        book = Book(there.root / ".asv" / "journal")
        book.enter(
            Identity(cell[0], (*cell[1:], ""), identity(whole(one)).config),
            ["run_seconds"],
            axes.family("inference").column(cell),
        )
        record(there.root, [there.sweep("first", [one])])
    (path,) = (other.root / ".asv" / "results" / "board").glob(f"{first[:8]}-*.json")
    later = json.loads(path.read_text())
    later["commit_hash"] = second  # as `asv run` would leave it: of no record
    path.with_name(path.name.replace(first[:8], second[:8])).write_text(json.dumps(later))

    monkeypatch.setenv("SPINBENCH_MACHINE", "abacus")
    merged = merge(project.root, [other.root])
    assert merged.new == {"board": 1}
    (note,) = merged.notes
    assert "with other settings than those of the series here stays out, of 1 commits" in note
    results = {path.name[:8]: json.loads(path.read_text())["results"]
               for path in (project.root / ".asv" / "results" / "board").glob("*-*.json")}  # fmt: skip
    assert {name.partition(".")[0] for name in results[first[:8]]} == {"swept"}
    assert not results.get(second[:8])
    assert {row[1][0][0] for row in results[first[:8]].values()} == {"'gibbs numpy v2'"}


def test_a_merge_that_was_killed_is_finished_by_the_next(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = project.commit("first")
    other = clone(project, "other")
    monkeypatch.setenv("SPINBENCH_MACHINE", "abacus")
    for seed, there in enumerate((project, other)):
        record(there.root, [there.sweep("first", [project.record(project.cells[0], commit, seed)])])

    def killed(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(ResultFiles, "rebuild", killed)
        with pytest.raises(KeyboardInterrupt):
            merge(project.root, [other.root])
    assert merge(project.root, [other.root]).new == {"abacus": 0}
    (path,) = (project.root / ".asv" / "results" / "abacus").glob(f"{commit[:8]}-*.json")
    stored = json.loads(path.read_text())
    place = stored["result_columns"].index("samples")
    samples = stored["results"]["inference.track_run_seconds"][place]
    assert [one for one in samples if one is not None] == [[0.125, 0.25]]


def test_what_is_no_history_is_refused(
    project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPINBENCH_HISTORY", str(project.root))
    with pytest.raises(HistoryError, match="there is no history in"):
        merge(project.root, [tmp_path])
    commit = project.commit("first")
    record(project.root, [project.sweep("first", [project.record(project.cells[0], commit)])])
    with pytest.raises(HistoryError, match=r"is the history of .* itself"):
        merge(project.root, [project.root])
    (tmp_path / "journal" / "no machine" / "x").mkdir(parents=True)
    (tmp_path / "journal" / "box" / "spinbench-py3.11" / commit).mkdir(parents=True)
    (tmp_path / "journal" / "box" / "spinbench-py3.11" / commit / "record-1.json").write_text("{")
    notes = merge(project.root, [tmp_path]).notes
    assert [("is no history of a machine" in note, "is not a record" in note) for note in notes] == [
        (False, True),
        (True, False),
    ]
    assert cli.main(["history", "merge", str(tmp_path / "nothing")]) == 2
    assert "there is no history in" in capsys.readouterr().err
