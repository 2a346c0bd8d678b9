"""The gate by pairs: both commits' workers by turns, interrupts, builds, and how the ratios are judged."""

from __future__ import annotations

import itertools
import math
import sys
from pathlib import Path
from typing import Any

import gate_runs
import numpy as np
import pytest

from spinbench.errors import HistoryError
from spinbench.history import builds, pairs
from spinbench.history import gate as gate_module
from spinbench.history.gate import gate
from spinbench.history.recorder import record
from spinbench.history.regression_test.measurements import Place
from spinbench.history.regression_test.pair_effects import pair_effects
from spinbench.measuring import isolation

PLACES = [Place(*cell) for cell in gate_runs.CELLS]
SLOW_PLACE = Place("grid", "gibbs", "numba")
# Spread of log ratios over starts, as measured.
SPREAD = 0.03
HERE = (Path(sys.executable), Path(sys.executable))


def draw_starts(rng: np.random.Generator, factor: float, starts: int = pairs.STARTS) -> dict[Place, list[float]]:
    """Log ratios of cells that have not changed, but for `SLOW`, whose steps take `factor` times as long."""
    shifts = {place: np.log(factor) * (place == SLOW_PLACE) for place in PLACES}
    return {place: rng.normal(shift, SPREAD, starts).tolist() for place, shift in shifts.items()}


def worse_places(ratios: dict[Place, list[float]]) -> list[Place]:
    effects = pair_effects(ratios)
    return [
        place
        for decision in effects.decisions()
        for place, verdict in zip(effects.units(decision.level), decision.verdicts, strict=True)
        if verdict == "worse"
    ]


def test_unchanged_costs_are_seldom_worse_and_planted_ones_are_found() -> None:
    rng = np.random.default_rng(0)
    alarms = [worse_places(draw_starts(rng, 1.0)) for _ in range(200)]
    # At most a share of 0.01 of unchanged pairs of commits may be called worse: P(Binomial(200, 0.01) > 6) < 0.005.
    assert sum(map(bool, alarms)) <= 6
    found = [SLOW_PLACE in worse_places(draw_starts(rng, 1.2)) for _ in range(50)]
    assert all(found)


@pytest.mark.parametrize("starts", [2, 4, 8])
def test_errors_are_those_of_means_over_starts_and_builds(starts: int) -> None:
    rng = np.random.default_rng(1)
    cells, groups, _ = pair_effects(draw_starts(rng, 1.0, starts)).levels
    usual = np.hypot(SPREAD / np.sqrt(starts), 0.01)
    np.testing.assert_allclose(cells.error, usual, rtol=0.5)
    np.testing.assert_allclose(groups.error, np.hypot(SPREAD / np.sqrt(3 * starts), 0.01), rtol=0.5)


def cell(method: str, **model: object) -> dict[str, Any]:
    return {
        "model": {"name": "grid", "rows": 3, "cols": 3, **model},
        "method": {"name": method},
        "backend": {"name": "numpy", "device": "cpu", "precision": "float64"},
        "budget": {"seconds": None, "samples": 100, "burn_in": None},
        "chains": 4,
        "seed": 0,
    }


def test_two_processes_measure_a_cell_by_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "STARTS", 2)
    monkeypatch.setattr(pairs, "FEWEST_STARTS", 2)
    monkeypatch.setattr(pairs, "START_SECONDS", 0.0)
    told: list[Place] = []
    gibbs, unknown = Place("grid", "gibbs", "numpy"), Place("grid", "unheard_of", "numpy")
    cells = {unknown: (cell("gibbs"), cell("unheard_of")), gibbs: (cell("gibbs"), cell("gibbs"))}
    ratios, refusals = pairs.measure_pairs(HERE, cells, 300.0, lambda place, logs: told.append(place))
    assert list(ratios) == told == [gibbs]
    assert len(ratios[gibbs]) == 2
    assert np.isfinite(ratios[gibbs]).all()
    (sentence,) = refusals
    assert sentence.startswith("grid unheard_of numpy was not measured by pairs: no method is named 'unheard_of'")
    assert pairs.measure_pairs(HERE, cells, 0.0, lambda place, logs: None) == ({}, [])


@pytest.mark.parametrize(
    ("before", "seconds", "fewest", "kept"),
    [
        # A start is 4 steps and 6 turns of both sides, 16 steps, or as many turns as its seconds hold.
        (2 * 16, 0.0, 3, None),
        (2 * 16 + 15, 0.0, 3, None),
        (3 * 16, 0.0, 3, [3]),
        (4 * 16 + 2 * 16 + 5, 0.0, 3, [4]),
        (4 * 16 + 3 * 16 + 7, 0.0, 3, [4, 3]),
        (15, 1e9, 1, None),
        (16, 1e9, 1, [1]),
        (35, 1e9, 1, [1]),
    ],
)
def test_an_interrupt_keeps_what_was_measured_by_pairs(
    before: int, seconds: float, fewest: int, kept: list[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, closed = itertools.count(1), []

    class Worker:
        """Its steps take a second at base and two at head."""

        def __init__(self, core: int, device: str, *, python: Path) -> None:
            self.seconds = {Path("base"): 1.0, Path("head"): 2.0}[python]

        def measure(self, cell: Any, limit: float) -> dict[str, Any]:
            if next(steps) == before + 1:
                raise KeyboardInterrupt
            return {"status": "ok", "metrics": {"step_cpu_seconds": {"value": self.seconds}}}

        def close(self) -> None:
            closed.append(self)

    monkeypatch.setattr(isolation, "Worker", Worker)
    monkeypatch.setattr(pairs, "STARTS", 4)
    monkeypatch.setattr(pairs, "FEWEST_STARTS", fewest)
    monkeypatch.setattr(pairs, "START_SECONDS", seconds)
    cells = {Place("grid", method, "numpy"): (cell(method), cell(method)) for method in ("gibbs", "pt", "swap")}
    arguments = (Path("base"), Path("head")), cells, 300.0, lambda place, logs: None
    if kept is None:
        with pytest.raises(KeyboardInterrupt):
            pairs.measure_pairs(*arguments)
    else:
        ratios, refusals = pairs.measure_pairs(*arguments)
        assert [len(logs) for logs in ratios.values()] == kept
        assert refusals == []
        np.testing.assert_allclose(np.concatenate(list(ratios.values())), math.log(2.0))
    assert len(closed) % 2 == 0
    assert closed


@pytest.fixture
def commits(project: Any) -> tuple[str, str]:
    """Two commits without a change of any cost."""
    rng, names = np.random.default_rng(2), (project.commit("base"), project.commit("head"))
    for name in names:
        made = [
            gate_runs.record(name, each, seed, gate_runs.values(rng, each, gate_runs.nothing, rng))
            for each in gate_runs.CELLS
            for seed in range(3)
        ]
        record(project.root, [project.sweep(name[:8], made)])
    return names


def test_the_gate_judges_by_pairs_what_was_measured_so(
    project: Any, commits: tuple[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measure(pythons: object, cells: dict[Place, Any], seconds: float, report: Any) -> Any:
        assert seconds == 90.0
        assert set(cells) == set(PLACES)
        assert all(base["method"]["name"] == place.method for place, (base, _) in cells.items())
        report(SLOW_PLACE, [0.2])
        return {place: logs for place, logs in starts.items() if place in (SLOW_PLACE, PLACES[0])}, ["one was not"]

    starts = draw_starts(np.random.default_rng(3), 1.3)
    monkeypatch.setattr(builds, "build", lambda checkout, commit: builds.Build(commit, *HERE))
    monkeypatch.setattr(gate_module, "measure_pairs", measure)
    judgement = gate(project.root, *commits, pairs=90.0).judgement
    assert "grid gibbs numba: x1.22 in 1 start by pairs" in capsys.readouterr().err
    cells = {
        (finding.place, finding.metric.title): finding.verdict
        for finding in judgement.findings
        if finding.metric.judged == "cost" and finding.level == "cell"
    }
    assert cells[SLOW_PLACE, "CPU time of a step, by pairs"] == "worse"
    assert {title for place, title in cells if place == SLOW_PLACE} == {"CPU time of a step, by pairs"}
    assert "CPU time of a step, by pairs" not in {title for place, title in cells if place == PLACES[-1]}
    assert judgement.notes[-2:] == ("one was not", "9 cells not measured by pairs, for lack of time")


def test_what_cannot_be_built_is_judged_by_seeds(
    project: Any, commits: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(checkout: object, commit: str) -> None:
        raise HistoryError("it has no pyproject.toml")

    monkeypatch.setattr(builds, "build", build)
    judgement = gate(project.root, *commits, pairs=1.0).judgement
    assert judgement.notes[-1] == "costs were not measured by pairs: it has no pyproject.toml"
    assert judgement.findings == gate(project.root, *commits).judgement.findings
