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
