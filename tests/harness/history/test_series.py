"""What is swept beyond conf/axes enters the history, too: series that grow by themselves, and asv shows them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_records import whole

from spinbench.conf import searchpath
from spinbench.errors import HistoryError
from spinbench.history import axes
from spinbench.history.gate import gate
from spinbench.history.recorder import History, record
from spinbench.history.series import Book, Identity, Series, identity
from spinbench.measuring.records import model_label
from spinbench.reporting.past import verdicts

MODEL = "boltzmann/neural15"
RUN_SECONDS = Series(MODEL, ("gibbs", "numpy", "")).benchmark("run_seconds")
CONTENT = "1a2b3c4d" + "0" * 56


def changed(project: Any, commit: str, seed: int = 0, **parts: Any) -> dict[str, Any]:
    """A record of the first cell with other settings in the parts of its configuration that are named."""
    found: dict[str, Any] = project.record(project.cells[0], commit, seed)
    for name, part in parts.items():
        known = found["config"][name]
        found["config"][name] = {**known, **part} if isinstance(known, dict) else part
    return found


def labels(root: Path) -> dict[str, list[str]]:
    """The cells that grew, by benchmark, as asv describes them."""
    found = json.loads((root / ".asv" / "results" / "benchmarks.json").read_text())
    return {name: one["params"][0] for name, one in found.items() if name.startswith("swept.")}


def test_a_cell_that_conf_axes_does_not_know_has_a_series(project: Any) -> None:
    commit = project.commit("first")
    records = [
        changed(project, commit, chains=3),
        changed(project, commit, seed=1, chains=3),
        changed(project, commit, method={"scan": "random"}, budget={"seconds": None, "samples": 50}),
        changed(project, commit, backend={"precision": "float32"}),
    ]
    report = record(project.root, [project.sweep("odd", records)])
    assert (report.new, report.refused) == (4, ())
    grown = labels(project.root)
    assert grown[RUN_SECONDS] == [
        "'gibbs numpy chains=3'",
        "'gibbs numpy(precision=float32)'",
        "'gibbs(scan=random) numpy samples=50'",
    ]
    row = project.result(commit)[RUN_SECONDS]
    assert dict(zip(row["params"][0], row["result"], strict=True))["'gibbs numpy chains=3'"] == 0.1875
    assert "gibbs numpy chains=3" in project.asv("show", commit[:8])
    assert record(project.root, [project.root / "multirun" / "odd"]).new == 0


def test_asv_gets_the_median_of_few_seeds_and_the_samples_of_many(project: Any) -> None:
    commit = project.commit("first")
    few = [changed(project, commit, seed, chains=3) for seed in range(3)]
    many = [changed(project, commit, seed, chains=5) for seed in range(8)]
    record(project.root, [project.sweep("odd", [*few, *many])])
    row = project.result(commit)[RUN_SECONDS]
    samples = dict(zip(row["params"][0], row["samples"], strict=True))
    assert samples["'gibbs numpy chains=3'"] is None
    assert len(samples["'gibbs numpy chains=5'"]) == 8


def test_parameters_that_differ_late_are_models_of_their_own() -> None:
    """Six digits would make one label of both, and the second a version of the first."""
    one, other = (model_label({"name": "grid", "c1": value}) for value in (0.1234567, 0.1234568))
    assert (one, other) == ("grid(c1=0.1234567)", "grid(c1=0.1234568)")
    assert model_label({"name": "grid", "c1": 0.1 + 0.2}) == "grid(c1=0.3)"


def test_own_files_are_named_by_content(project: Any) -> None:
    commit = project.commit("first")
    odd = changed(project, commit)
    odd["config"]["model"] = {"name": "file", "path": "/somewhere/mine.uai", "evidence": None, "beta": None}
    odd["files"] = {"path": CONTENT}
    moved = {**odd, "config": {**odd["config"], "model": {**odd["config"]["model"], "path": "mine.uai"}}}
    assert identity(whole(odd)).model == "mine.uai@1a2b3c4d"
    assert identity(whole(odd)) == identity(whole(moved))
    edited = {**odd, "files": {"path": "f" * 64}}
    assert identity(whole(edited)).model == "mine.uai@ffffffff"
    with pytest.raises(HistoryError, match="do not say what their own files held"):
        identity(whole({**odd, "files": {}}))


def test_a_changed_default_starts_a_version_and_a_new_setting_does_not(tmp_path: Path) -> None:
    def of(**method: Any) -> Identity:
        return Identity("grid", ("dhmc", "numba", ""), {"method": {"name": "dhmc", **method}})

    def enter(measured: Identity) -> Series:
        return Book(tmp_path).enter(measured, ["run_seconds"])

    assert enter(of(form="identity")).label == "dhmc numba"
    assert enter(of(form="sparse")).label == "dhmc numba v2"
    assert enter(of(form="sparse", slack=0.1)).label == "dhmc numba v2"
    assert enter(of(form="sparse", slack=0.2)).label == "dhmc numba v3"  # the first of this form said nothing of it
    assert enter(of(form="identity")).label == "dhmc numba"  # measured again, by older code
    files = sorted((tmp_path / ".series").iterdir())
    assert len(files) == 4
    assert enter(of(form="sparse")).label == "dhmc numba v2"
    Book(tmp_path).enter(of(form="sparse"), ["run_seconds", "log_z_error"])
    assert len(list((tmp_path / ".series").iterdir())) == 5
    assert len(Book(tmp_path).benchmarks()["swept.grid.track_run_seconds", "run_seconds"]) == 3
    assert len(Book(tmp_path).benchmarks()["swept.grid.track_log_z_error", "log_z_error"]) == 1
    assert enter(of(form="identity", slack=0.1)).label == "dhmc numba"  # the default changed back
    files[0].write_text("{")
    with pytest.raises(HistoryError, match=r"series-.*\.json is not a series of the history"):
        Book(tmp_path)


def test_failures_count_where_something_was_measured_before(project: Any) -> None:
    first, second = project.commit("first"), project.commit("second")
    good = changed(project, first, chains=3)
    bad = {**changed(project, second, chains=3), "status": "failed", "error": "killed", "metrics": {}}
    refused = {**changed(project, second, chains=5), "status": "skipped", "error": "refused", "metrics": {}}
    record(project.root, [project.sweep("first", [good])])
    assert record(project.root, [project.sweep("second", [bad, refused])]).new == 1
    report = gate(project.root, first, second)
    assert report.exit_status == 1
    (failure,) = report.judgement.failures
    assert (failure.place.model, failure.place.settings) == (MODEL, "chains=3")


def test_asv_compares_and_publishes_what_grew_and_a_run_of_asv_keeps_it(project: Any) -> None:
    first, second = project.commit("first"), project.commit("second")
    record(project.root, [project.sweep("first", [changed(project, first, chains=3)])])
    later = {**changed(project, second, chains=3), "metrics": {"run_seconds": {"value": 3.0}}}
    record(project.root, [project.sweep("second", [later, changed(project, second, chains=5)])])
    compared = project.asv("compare", first, second)
    assert any(RUN_SECONDS in line and "125ms" in line and "3.00s" in line for line in compared.splitlines())
    project.asv(
        "run", "-E", "here", "--set-commit-hash", second, "--bench", "just-discover"
    )  # writes what it discovers
    assert labels(project.root)[RUN_SECONDS] == ["'gibbs numpy chains=3'", "'gibbs numpy chains=5'"]
    project.asv("publish", "--no-pull")
    graphs = (project.root / ".asv" / "html" / "graphs").rglob(f"{RUN_SECONDS}.json")
    (graph,) = (path for path in graphs if "summary" not in path.parts)
    assert [values for _, values in json.loads(graph.read_text())] == [[0.125, None], [3.0, 0.125]]
    report = gate(project.root)
    (shown,) = (one for one in report.judgement.findings if one.metric.name == "run_seconds")
    assert shown.place.settings == "chains=3"
    assert (shown.base, shown.head) == pytest.approx((0.125, 3.0))


def test_a_cell_that_conf_axes_learns_later_goes_on_where_it_was(project: Any) -> None:
    commit = project.commit("first")
    entry = project.record(project.cells[0], commit)
    Book(project.root / ".asv" / "journal").enter(identity(whole(entry)), ["run_seconds"])
    record(project.root, [project.sweep("later", [entry])])
    (kept,) = History.open(project.root).journal.entries(commit)
    assert kept["series"] == {"model": MODEL, "parts": ["gibbs", "numpy", ""], "version": 1}


def test_a_record_of_before_a_setting_is_of_the_column(project: Any) -> None:
    """Though it is the first that is entered, as by a sweep over commits."""
    first, second = project.commit("first"), project.commit("second")
    older, later = project.record(project.cells[0], first), project.record(project.cells[0], second)
    older["config"]["method"] = {key: one for key, one in older["config"]["method"].items() if key != "scan"}
    record(project.root, [project.sweep("first", [older])])
    record(project.root, [project.sweep("second", [later])])
    found = [project.value(commit, "run_seconds", project.cells[0]) for commit in (first, second)]
    assert found == [0.125, 0.125]


@pytest.fixture
def default(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets defaults of gibbs, for the labels and for what conf/axes says."""
    known, canonical = searchpath.method_defaults, axes.canonical

    def change(**method: Any) -> None:
        def defaults(name: str) -> Any:
            return {**known(name), **method} if name == "gibbs" else known(name)

        def composed(found: Any, cells: Any) -> Any:
            return {
                cell: {**config, "method": {**config["method"], **method}}
                for cell, config in canonical(found, cells).items()
            }

        monkeypatch.setattr(searchpath, "method_defaults", defaults)
        monkeypatch.setattr(axes, "canonical", composed)

    return change


def test_a_changed_default_of_a_cell_of_conf_axes_starts_a_version(project: Any, default: Any) -> None:
    first, second, third = (project.commit(title) for title in ("first", "second", "third"))
    cell = project.cells[0]
    record(project.root, [project.sweep("first", [project.record(cell, first)])])
    default(scan="random")
    later = changed(project, second, method={"scan": "random"})
    record(project.root, [project.sweep("second", [later])])
    assert project.value(first, "run_seconds", cell) == 0.125
    assert "inference.track_run_seconds" not in project.result(second)
    assert project.result(second)[RUN_SECONDS]["params"] == [["'gibbs numpy v2'"]]
    with pytest.raises(HistoryError, match=r"1 cell of .* in a later version of their series"):
        gate(project.root, first, second)
    for commit in (first, second):
        record(project.root, [project.sweep(f"also-{commit}", [project.record(project.cells[1], commit)])])
    told = verdicts.lines(verdicts.judged(project.root, [first, second]))
    assert any("1 cell of" in line and "in a later version of their series" in line for line in told)

    # with a new setting the version goes on, and with the first settings the column
    default(scan="random", later=1)
    more = changed(project, third, method={"scan": "random", "later": 1})
    again = project.record(cell, third)
    assert record(project.root, [project.sweep("third", [more, again])]).new == 2
    assert project.result(third)[RUN_SECONDS]["params"] == [["'gibbs numpy v2'"]]
    assert project.value(third, "run_seconds", cell) == 0.125
    assert [
        one.base for one in gate(project.root, second, third).judgement.findings if one.metric.name == "run_seconds"
    ]


def test_a_column_holds_one_configuration_however_it_is_labelled(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings that conf/axes names itself are edited: the label says them, and the column is another's."""
    first, second = project.commit("first"), project.commit("second")
    cell = project.cells[0]
    record(project.root, [project.sweep("first", [project.record(cell, first)])])
    canonical = axes.canonical
    monkeypatch.setattr(
        axes,
        "canonical",
        lambda found, cells: {one: {**config, "chains": 3} for one, config in canonical(found, cells).items()},
    )
    record(project.root, [project.sweep("second", [changed(project, second, chains=3)])])
    assert project.result(second)[RUN_SECONDS]["params"] == [["'gibbs numpy chains=3'"]]


def test_what_a_column_holds_enters_it_by_whatever_sweep(project: Any) -> None:
    commit = project.commit("first")
    cell = project.cells[0]
    own = {**project.record(cell, commit, 1), "family": "mine"}
    record(project.root, [project.sweep("first", [own])])
    record(project.root, [project.sweep("second", [project.record(cell, commit, 0)])])
    assert RUN_SECONDS not in project.result(commit)
    assert {one["family"] for one in History.open(project.root).journal.entries(commit)} == {"inference"}
    assert project.value(commit, "run_seconds", cell) == 0.1875


FORKS = """
import os, random, signal, sys, time
from pathlib import Path
from spinbench.history.recorder import record

def start(folder):
    child = os.fork()
    if child == 0:
        try:
            record(Path(sys.argv[1]), [Path(folder)])
        finally:
            os._exit(0)
    return child
"""
KILLS = (
    FORKS
    + """
draw, folders = random.Random(5), sys.argv[2:]
for _ in range(20):
    child = start(draw.choice(folders))
    time.sleep(0.01 + 0.15 * draw.random())
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
children = [start(folder) for folder in folders]  # both at once
print(*[os.waitpid(child, 0)[1] for child in children])
"""
)


def test_twenty_kills_while_axes_grow_and_two_at_once_lose_nothing(project: Any) -> None:
    commit = project.commit("first")
    folders = [
        project.sweep(f"sweep{part}", [changed(project, commit, seed=part, chains=chains) for chains in numbers])
        for part, numbers in enumerate((range(2, 9), range(6, 13)))
    ]
    command = [sys.executable, "-c", KILLS, str(project.root), *map(str, folders)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240, env=dict(os.environ))
    assert done.stdout.split() == ["0", "0"], done.stderr
    for path in (project.root / ".asv").rglob("*.json"):
        json.loads(path.read_text())
    entries = History.open(project.root).journal.entries(commit)
    assert sorted((one["config"]["chains"], one["config"]["seed"]) for one in entries) == sorted(
        [(chains, 0) for chains in range(2, 9)] + [(chains, 1) for chains in range(6, 13)]
    )
    expected = sorted(f"'gibbs numpy chains={chains}'" for chains in range(2, 13))
    for name, found in labels(project.root).items():
        assert found == expected
        row = project.result(commit)[name]
        assert sorted(row["params"][0]) == expected
    assert not list(project.root.rglob("*.tmp"))
    assert not (project.root / ".asv" / "scratch").exists()
