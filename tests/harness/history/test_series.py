"""What is swept beyond conf/axes, records of races, and times over another library's have series, which asv shows."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_records import whole

import spinbench
from spinbench.conf import searchpath
from spinbench.errors import HistoryError, SpinbenchError
from spinbench.history import axes
from spinbench.history.gate import gate
from spinbench.history.recorder import History, record
from spinbench.history.series import Identity, Series, SeriesIndex, identify
from spinbench.inference.advising.advice import Advice, Entry
from spinbench.inference.budget import Budget
from spinbench.measuring.measure import measure_cell
from spinbench.measuring.races import RaceRecorder
from spinbench.measuring.records import model_label, read_records
from spinbench.models import specs
from spinbench.reporting import leaderboard, replay
from spinbench.reporting.past import verdicts

MODEL = "boltzmann/neural15"
RUN_SECONDS = Series(MODEL, ("gibbs", "numpy", "")).benchmark_name("run_seconds")


def changed(project: Any, commit: str, seed: int = 0, **parts: Any) -> dict[str, Any]:
    """A record of the first cell with other settings in the parts of its configuration that are named."""
    found: dict[str, Any] = project.record(project.cells[0], commit, seed)
    for name, part in parts.items():
        known = found["config"][name]
        found["config"][name] = {**known, **part} if isinstance(known, dict) else part
    return found


def enter(project: Any, *records: dict[str, Any]) -> Any:
    """Record them as a sweep of their own."""
    return record(project.root, [project.sweep(records[0]["id"], records)])


def labels(root: Path) -> dict[str, list[str]]:
    """The cells that grew, by benchmark, as asv describes them."""
    found = json.loads((root / ".asv" / "results" / "benchmarks.json").read_text())
    return {name: one["params"][0] for name, one in found.items() if name.startswith("swept.")}


def column(project: Any, commit: str, content: str) -> dict[str, Any]:
    """By cell, what asv's result file holds of the time of runs."""
    row = project.result(commit)[RUN_SECONDS]
    return dict(zip(row["params"][0], row[content], strict=True))


@pytest.fixture
def commits(project: Any) -> list[str]:
    return [project.commit(title) for title in ("first", "second", "third")]


def test_a_cell_that_conf_axes_does_not_know_has_a_series(project: Any, commits: list[str]) -> None:
    commit = commits[0]
    records = [
        changed(project, commit, chains=3),
        changed(project, commit, seed=1, chains=3),
        changed(project, commit, method={"scan": "random"}, budget={"seconds": None, "samples": 50}),
        changed(project, commit, backend={"precision": "float32"}),
    ]
    report = enter(project, *records)
    assert (report.new, report.refused, enter(project, *records).new) == (4, (), 0)
    assert labels(project.root)[RUN_SECONDS] == [
        "'gibbs numpy chains=3'",
        "'gibbs numpy(precision=float32)'",
        "'gibbs(scan=random) numpy samples=50'",
    ]
    assert column(project, commit, "result")["'gibbs numpy chains=3'"] == 0.1875
    assert "gibbs numpy chains=3" in project.asv("show", commit[:8])


@pytest.mark.parametrize(
    ("value", "label"),
    [(0.1234567, "grid(c1=0.1234567)"), (0.1234568, "grid(c1=0.1234568)"), (0.1 + 0.2, "grid(c1=0.3)")],
)
def test_parameters_that_differ_late_are_models_of_their_own(value: float, label: str) -> None:
    """Six digits would make one label of the first two, and the second a version of the first."""
    assert model_label({"name": "grid", "c1": value}) == label


def test_own_files_are_named_by_content(project: Any, commits: list[str]) -> None:
    def of(path: str, held: str) -> Identity:
        odd = changed(project, commits[0])
        odd["config"]["model"] = {"name": "file", "path": path, "evidence": None, "beta": None}
        return identify(whole({**odd, "files": {"path": held} if held else {}}))

    here = of("/somewhere/mine.uai", "1a2b3c4d" + "0" * 56)
    assert (here.model, here) == ("mine.uai@1a2b3c4d", of("mine.uai", "1a2b3c4d" + "0" * 56))
    assert of("mine.uai", "f" * 64).model == "mine.uai@ffffffff"
    with pytest.raises(HistoryError, match="do not say what their own files held"):
        of("mine.uai", "")


def test_a_changed_default_starts_a_version_and_a_new_setting_does_not(tmp_path: Path) -> None:
    def of(**method: Any) -> Identity:
        return Identity("grid", ("dhmc", "numba", ""), {"method": {"name": "dhmc", **method}})

    def files() -> list[Path]:
        return sorted((tmp_path / ".series").iterdir())

    for settings, label in (
        ({"form": "identity"}, "dhmc numba"),
        ({"form": "sparse"}, "dhmc numba v2"),
        ({"form": "sparse", "slack": 0.1}, "dhmc numba v2"),
        ({"form": "sparse", "slack": 0.2}, "dhmc numba v3"),  # the first of this form said nothing of it
        ({"form": "identity"}, "dhmc numba"),  # measured again, by older code
        ({"form": "sparse"}, "dhmc numba v2"),
    ):
        assert SeriesIndex(tmp_path).add(of(**settings), ["run_seconds"]).label == label
    assert len(files()) == 4
    SeriesIndex(tmp_path).add(of(form="sparse"), ["run_seconds", "log_z_error"])
    assert len(files()) == 5
    known = SeriesIndex(tmp_path).series_by_benchmark()
    sizes = {name: len(known[f"swept.grid.track_{name}", name]) for name in ("run_seconds", "log_z_error")}
    assert sizes == {"run_seconds": 3, "log_z_error": 1}
    again = SeriesIndex(tmp_path).add(of(form="identity", slack=0.1), ["run_seconds"])
    assert again.label == "dhmc numba"  # the default changed back
    files()[0].write_text("{")
    with pytest.raises(HistoryError, match=r"series-.*\.json is not a series of the history"):
        SeriesIndex(tmp_path)


def test_cells_of_0_1_0_are_of_the_series_that_lack_its_settings(project: Any, commits: list[str]) -> None:
    """Whichever version entered them."""
    settings = {"chains": 3, "method": {"ladder": 50}}
    enter(project, changed(project, commits[0], **settings))
    enter(project, changed(project, commits[1], chains=3))
    assert labels(project.root)[RUN_SECONDS] == ["'gibbs numpy chains=3'"]
    for file in (project.root / ".asv").rglob("series-*.json"):
        stored = json.loads(file.read_text())
        stored["config"]["method"] |= settings["method"]
        file.write_text(json.dumps(stored))
    enter(project, changed(project, commits[2], **settings))
    assert labels(project.root)[RUN_SECONDS] == ["'gibbs numpy chains=3'"]


def test_failures_count_where_something_was_measured_before(project: Any, commits: list[str]) -> None:
    first, second, _ = commits
    bad = {**changed(project, second, chains=3), "status": "failed", "error": "killed", "metrics": {}}
    refused = {**changed(project, second, chains=5), "status": "skipped", "error": "refused", "metrics": {}}
    enter(project, changed(project, first, chains=3))
    assert enter(project, bad, refused).new == 1
    report = gate(project.root, first, second)
    (failure,) = report.judgement.changes
    assert (failure.place.model, failure.place.settings, report.exit_status) == (MODEL, "chains=3", 1)


def test_asv_compares_and_publishes_what_grew_and_a_run_of_asv_keeps_it(project: Any, commits: list[str]) -> None:
    first, second, _ = commits
    enter(project, changed(project, first, chains=3))
    later = {**changed(project, second, chains=3), "metrics": {"run_seconds": {"value": 3.0}}}
    enter(project, later, changed(project, second, chains=5))
    compared = project.asv("compare", first, second)
    assert any(RUN_SECONDS in line and "125ms" in line and "3.00s" in line for line in compared.splitlines())
    # writes what it discovers
    project.asv("run", "-E", "here", "--set-commit-hash", second, "--bench", "just-discover")
    assert labels(project.root)[RUN_SECONDS] == ["'gibbs numpy chains=3'", "'gibbs numpy chains=5'"]
    project.asv("publish", "--no-pull")
    graphs = (project.root / ".asv" / "html" / "graphs").rglob(f"{RUN_SECONDS}.json")
    (graph,) = (path for path in graphs if "summary" not in path.parts)
    assert [values for _, values in json.loads(graph.read_text())] == [[0.125, None], [3.0, 0.125]]
    report = gate(project.root, first, second)
    (shown,) = (one for one in report.judgement.findings if one.metric.name == "run_seconds")
    assert (shown.place.settings, shown.base, shown.head) == ("chains=3", pytest.approx(0.125), pytest.approx(3.0))


def test_a_record_of_before_a_setting_is_of_the_column(project: Any, commits: list[str]) -> None:
    """Though it is the first that is entered, as by a sweep over commits."""
    older, later = (project.record(project.cells[0], commit) for commit in commits[:2])
    older["config"]["method"] = {key: one for key, one in older["config"]["method"].items() if key != "scan"}
    for one in (older, later):
        enter(project, one)
    assert [project.value(commit, "run_seconds", project.cells[0]) for commit in commits[:2]] == [0.125, 0.125]


@pytest.fixture
def default(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets defaults of gibbs, for the labels and for what conf/axes says, and other settings for this alone."""
    known, canonical = searchpath.method_defaults, axes.canonical_configs

    def change(settings: dict[str, Any] | None = None, **method: Any) -> None:
        def defaults(name: str) -> Any:
            return {**known(name), **method} if name == "gibbs" else known(name)

        def composed(found: Any, cells: Any) -> Any:
            return {
                cell: {**config, **(settings or {}), "method": {**config["method"], **method}}
                for cell, config in canonical(found, cells).items()
            }

        monkeypatch.setattr(searchpath, "method_defaults", defaults)
        monkeypatch.setattr(axes, "canonical_configs", composed)

    return change


def test_a_changed_default_of_a_cell_of_conf_axes_starts_a_version(
    project: Any, commits: list[str], default: Any
) -> None:
    first, second, third = commits
    cell = project.cells[0]
    enter(project, project.record(cell, first))
    default(scan="random")
    enter(project, changed(project, second, method={"scan": "random"}))
    assert project.value(first, "run_seconds", cell) == 0.125
    assert "inference.track_run_seconds" not in project.result(second)
    assert [*column(project, second, "result")] == ["'gibbs numpy v2'"]
    with pytest.raises(HistoryError, match=r"1 cell of .* in a later version of their series"):
        gate(project.root, first, second)
    for commit in (first, second):
        enter(project, project.record(project.cells[1], commit))
    told = verdicts.describe_series(verdicts.judge_commits(project.root, [first, second]))
    assert any("1 cell of" in line and "in a later version of their series" in line for line in told)

    # with a new setting the version goes on, and with the first settings the column
    default(scan="random", later=1)
    more = changed(project, third, method={"scan": "random", "later": 1})
    assert enter(project, more, project.record(cell, third)).new == 2
    assert [*column(project, third, "result")] == ["'gibbs numpy v2'"]
    assert project.value(third, "run_seconds", cell) == 0.125
    assert "run_seconds" in {one.metric.name for one in gate(project.root, second, third).judgement.findings}


def test_a_column_holds_one_configuration_however_it_is_labelled(
    project: Any, commits: list[str], default: Any
) -> None:
    """The settings that conf/axes names itself are edited: the label says them, and the column is another's."""
    first, second, _ = commits
    enter(project, project.record(project.cells[0], first))
    default({"chains": 3})
    enter(project, changed(project, second, chains=3))
    assert [*column(project, second, "result")] == ["'gibbs numpy chains=3'"]


def test_what_a_column_holds_enters_it_by_whatever_sweep(project: Any, commits: list[str]) -> None:
    cell = project.cells[0]
    enter(project, {**project.record(cell, commits[0], 1), "family": "mine"})
    enter(project, project.record(cell, commits[0], 0))
    assert RUN_SECONDS not in project.result(commits[0])
    assert {one["family"] for one in History.open(project.root).journal.read_entries(commits[0])} == {"inference"}
    assert project.value(commits[0], "run_seconds", cell) == 0.1875


RING = {"model": "ring", "model.n": 7}


def entry(method: str, samples: int | None, **changes: Any) -> Entry:
    """What a race tells of a candidate that was asked so many samples last; None: it gave no answer."""
    asked = None if samples is None else Budget(samples=samples, burn_in=5)
    model = specs.build({"name": "ring", "n": 7})
    result = None if asked is None else spinbench.run(model, method, "numpy", asked, chains=4, seed=3, checkpoints=1)
    told: dict[str, Any] = {
        "candidate": f"{method}.numpy", "kind": method, "runs": 2, "seconds": 1.5, "samples": samples or 0,
        "status": "ok", "error": 0.1, "distance": None, "fate": "won", "method": method, "backend": "numpy",
        "settings": {}, "seed": 3, "asked": asked, "result": result, "failed": False,
    }  # fmt: skip
    return Entry(**{**told, **changes})


def advice(*race: Entry) -> Advice:
    answer = next(one.result for one in race if one.result is not None)
    return Advice(
        answer, 0.1, True, "resolved", "", "", race, "marginals", 6.0, 5.5, chains=4, seed=3, python="", command=""
    )


@pytest.fixture
def raced(project: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("SPINBENCH_HISTORY", str(project.root))
    return project


def test_races_at_two_commits_are_one_series_apart_from_sweeps(raced: Any) -> None:
    found = []
    for number, samples in enumerate((40, 70)):
        commit = raced.commit(f"commit {number}")
        occasion = RaceRecorder.begin(raced.root / "multirun" / commit, RING)
        late = entry("pt", None, status="", error=None, fate="not ready after 3 s")
        assert len(occasion.write(advice(entry("gibbs", samples), late))) == 2
        report = record(raced.root, [occasion.folder])
        assert (report.new, report.refused) == (1, ())
        found += History.open(raced.root).journal.read_entries(commit)
    assert [one["series"]["parts"] for one in found] == [["gibbs", "numpy", "chains=4 seconds=6 race=marginals"]] * 2
    assert identify(whole(found[0])) == identify(whole(found[1]))
    assert [one["result"]["samples"] for one in found] == [40, 70]
    swept = {**found[0]["config"], "budget": {"seconds": 6.0, "samples": None, "burn_in": None}}
    assert identify(whole({**found[0], "config": swept})).parts[2] == "chains=4 seconds=6"


def test_what_came_of_a_candidate_is_its_status(tmp_path: Path) -> None:
    broken = entry("mf", None, fate="TypeError: no", failed=True)
    late = entry("pt", None, fate="not ready after 3 s")
    RaceRecorder.begin(tmp_path, RING).write(advice(entry("gibbs", 40), broken, late))
    found = {one["axes"]["method"]: one for one in read_records(tmp_path)}
    assert {name: (one["status"], one["error"]) for name, one in found.items()} == {
        "gibbs": ("ok", None),
        "mf": ("failed", "TypeError: no"),
        "pt": ("skipped", "not ready after 3 s"),
    }
    rows = {row.method: row for row in leaderboard.rows(found.values())}
    assert set(rows) == {"gibbs", "mf"}
    assert rows["gibbs"].status.endswith("no exact answer")
    with pytest.raises(SpinbenchError, match="gave no answer in its race"):
        replay.rerun(found["pt"])


def test_a_record_of_a_race_is_run_again_bit_for_bit(tmp_path: Path) -> None:
    RaceRecorder.begin(tmp_path, RING).write(advice(entry("gibbs", 40)))
    (then,) = read_records(tmp_path)
    done = replay.rerun(then)
    assert done.verdict().startswith("reproduced: all")
    assert {"samples": 40, "seconds": None, "burn_in": 5}.items() <= done.repeated["config"]["budget"].items()


def test_a_file_that_changes_during_the_race_leaves_no_record(tmp_path: Path) -> None:
    path = tmp_path / "my.uai"
    spinbench.save(specs.build({"name": "ring", "n": 7}), path)
    occasion = RaceRecorder.begin(tmp_path / "kept", {"model": "file", "model.path": str(path)})
    path.write_text(path.read_text() + "\n")
    with pytest.raises(SpinbenchError, match="changed during the race"):
        occasion.write(advice(entry("gibbs", 40)))
    exact = replace(advice(entry("gibbs", 40)), race=())
    assert RaceRecorder.begin(tmp_path / "kept", RING).write(exact) == []


METRIC = "step_cpu_seconds"


def on(project: Any, backend: str, commit: str, seconds: float, seed: int = 0, **method: Any) -> dict[str, Any]:
    """A record of gibbs on a model, by its backend."""

    def value(metric: str, cell: Any, seed: int) -> dict[str, float]:
        return {"value": seconds * (1 + 0.1 * seed)} if "seconds" in metric else {"value": 0.5}

    found: dict[str, Any] = copy.deepcopy(project.record(("grid", "gibbs", "numpy"), commit, seed, value))
    found["axes"]["backend"] = found["config"]["backend"]["name"] = backend
    found["config"]["method"] |= method
    return found


def ratios(project: Any, commit: str, *records: dict[str, Any]) -> dict[str, dict[str, float]]:
    """By benchmark and cell, in asv's result file, once these are recorded, too."""
    record(project.root, [project.sweep(records[0]["id"], records)])
    rows = {name: row for name, row in project.result(commit).items() if name.startswith("peers.")}
    return {name: dict(zip(row["params"][0], row["result"], strict=True)) for name, row in rows.items()}


def test_ratios_to_each_library_follow_the_commits(project: Any) -> None:
    for slower in (1, 2):
        commit = project.commit(f"commit {slower}")
        seconds = {"numpy": 0.02 * slower, "numba": 0.01 * slower, "dwave": 0.04, "thrml": 0.04}
        found = ratios(
            project, commit, *(on(project, name, commit, seconds[name], s) for name in seconds for s in (0, 1))
        )
        for peer in ("dwave", "thrml"):
            cells = found[f"peers.grid.track_{METRIC}_over_{peer}"]
            assert cells == {"'gibbs numba'": pytest.approx(slower / 4), "'gibbs numpy'": pytest.approx(slower / 2)}
            assert f"peers.grid.track_seconds_per_ess_over_{peer}" in found
    described = json.loads((project.root / ".asv" / "results" / "benchmarks.json").read_text())
    one = described[f"peers.grid.track_{METRIC}_over_dwave"]
    assert (one["params"], one["unit"]) == ([["'gibbs numba'", "'gibbs numpy'"]], "x")
    project.asv("publish")
    site = json.loads((project.root / ".asv" / "html" / "index.json").read_text())
    assert f"peers.grid.track_{METRIC}_over_thrml" in site["benchmarks"]


def test_other_work_and_no_time_have_no_ratio(project: Any) -> None:
    other, commit = project.commit("no time"), project.commit("other work")
    assert ratios(project, other, on(project, "numba", other, 0.01), on(project, "dwave", other, 0.0)) == {}
    theirs = on(project, "dwave", commit, 0.04, scan="random")
    assert ratios(project, commit, on(project, "numba", commit, 0.01), theirs) == {}
    found = ratios(project, commit, on(project, "numba", commit, 0.02, scan="random"))
    (cells,) = [found[name] for name in found if f"{METRIC}_over_dwave" in name]
    assert cells == {"'gibbs(scan=random) numba'": pytest.approx(0.5)}


def test_ratio_to_dwave_samplers(project: Any) -> None:
    pytest.importorskip("dwave.samplers", reason="dwave-samplers is not installed: pip install dwave-samplers")
    commit = project.commit("first")
    cell = ["method=exact", "model=boltzmann/neural15", "chains=1"]
    with axes.composer() as compose:
        configs = [compose([*cell, f"backend={name}"]) for name in ("numpy", "dwave")]
    measured = [measure_cell(config, git={"commit": commit, "dirty": False}) for config in configs]
    assert [one["error"] for one in measured] == [None, None]
    found = ratios(project, commit, *measured)
    (cells,) = [found[name] for name in found if f"{METRIC}_over_dwave" in name]
    assert cells["'exact numpy chains=1'"] > 0
