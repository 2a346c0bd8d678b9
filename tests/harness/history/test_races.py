"""Series beside those of sweeps: records of races, and our time over another library's."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_records import whole

import spinbench
from spinbench.errors import SpinbenchError
from spinbench.history import axes
from spinbench.history.recorder import History, record
from spinbench.history.series import identify
from spinbench.inference.advising.advice import Advice, Entry
from spinbench.inference.budget import Budget
from spinbench.measuring.measure import measure_cell
from spinbench.measuring.races import RaceRecorder
from spinbench.measuring.records import read_records
from spinbench.models import specs
from spinbench.reporting import leaderboard, replay

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
