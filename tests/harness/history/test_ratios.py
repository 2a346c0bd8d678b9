"""Our time over another library's is a series of its own, where both did the same work."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from spinbench.history import axes
from spinbench.history.recorder import record
from spinbench.measuring.measure import measure_cell

METRIC = "step_cpu_seconds"


def on(project: Any, backend: str, commit: str, seconds: float, seed: int = 0, **method: Any) -> dict[str, Any]:
    """A record of gibbs on a model, by its backend."""

    def value(metric: str, cell: Any, seed: int) -> dict[str, float]:
        return {"value": seconds * (1 + 0.1 * seed)} if "seconds" in metric else {"value": 0.5}

    found: dict[str, Any] = copy.deepcopy(project.record(("grid", "gibbs", "numpy"), commit, seed, value))
    found["axes"]["backend"] = found["config"]["backend"]["name"] = backend
    found["config"]["method"] |= method
    return found


def ratios(project: Any, commit: str) -> dict[str, dict[str, float]]:
    """By benchmark and cell, in asv's result file."""
    rows = {name: row for name, row in project.result(commit).items() if name.startswith("peers.")}
    return {name: dict(zip(row["params"][0], row["result"], strict=True)) for name, row in rows.items()}


def test_ratios_to_each_library_follow_the_commits(project: Any) -> None:
    commits = [project.commit(f"commit {number}") for number in range(2)]
    for slower, commit in enumerate(commits, 1):
        ours = [on(project, "numpy", commit, 0.02 * slower, seed) for seed in (0, 1, 2)]
        ours += [on(project, "numba", commit, 0.01 * slower, seed) for seed in (0, 1, 2)]
        theirs = [on(project, name, commit, 0.04, seed) for name in ("dwave", "thrml") for seed in (0, 1, 2)]
        record(project.root, [project.sweep(commit, [*ours, *theirs])])
    for slower, commit in enumerate(commits, 1):
        found = ratios(project, commit)
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


def test_other_work_has_no_ratio(project: Any) -> None:
    commit = project.commit("first")
    records = [on(project, "numba", commit, 0.01), on(project, "dwave", commit, 0.04, scan="random")]
    record(project.root, [project.sweep("odd", records)])
    assert ratios(project, commit) == {}
    record(project.root, [project.sweep("same", [on(project, "numba", commit, 0.02, scan="random")])])
    (cells,) = [found for name, found in ratios(project, commit).items() if f"{METRIC}_over_dwave" in name]
    assert cells == {"'gibbs(scan=random) numba'": pytest.approx(0.5)}


def test_a_library_that_took_no_time_has_no_ratio(project: Any) -> None:
    commit = project.commit("first")
    records = [on(project, "numba", commit, 0.01), on(project, "dwave", commit, 0.0)]
    record(project.root, [project.sweep("odd", records)])
    assert ratios(project, commit) == {}


def test_ratio_to_dwave_samplers(project: Any) -> None:
    pytest.importorskip("dwave.samplers", reason="dwave-samplers is not installed: pip install dwave-samplers")
    commit = project.commit("first")
    with axes.composer() as compose:
        asked = {
            name: compose(["method=exact", "model=boltzmann/neural15", f"backend={name}", "chains=1"])
            for name in ("numpy", "dwave")
        }
    measured = [measure_cell(config, git={"commit": commit, "dirty": False}) for config in asked.values()]
    assert [one["error"] for one in measured] == [None, None]
    record(project.root, [project.sweep("dwave", measured)])
    (cells,) = [found for name, found in ratios(project, commit).items() if f"{METRIC}_over_dwave" in name]
    assert cells["'exact numpy chains=1'"] > 0
