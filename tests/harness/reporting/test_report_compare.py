"""Differences between two sweeps: planted ones are found, noise is not, and who has no counterpart is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spinbench import cli
from spinbench.errors import SpinbenchError
from spinbench.measuring import records
from spinbench.reporting import paired

MODELS, METHODS, SEEDS = ("m", "n", "o"), ("gibbs", "dhmc"), 3


def side(
    rng: np.random.Generator,
    factor: Callable[[str, str, str], float] = lambda metric, model, method: 1.0,
    seeds: int = SEEDS,
    **changes: Any,
) -> list[dict[str, Any]]:
    """Records whose metrics scatter by a tenth around model-dependent values."""
    found = []
    for i, model in enumerate(MODELS):
        for method in METHODS:
            for seed in range(seeds):
                value = {
                    name: {"value": 0.1 * 10**i * factor(name, model, method) * float(np.exp(0.1 * rng.normal()))}
                    for name in records.METRICS
                }
                found.append(
                    {
                        "schema": 1,
                        "id": f"{model}{method}{seed}",
                        "key": f"{model}{method}{seed}",
                        "axes": {"model": model, "method": method, "backend": "numpy"},
                        "config": {"model": {"name": model}, "method": {"name": method}, "chains": 4, "seed": seed},
                        "protocol": "p",
                        "status": "ok",
                        "error": None,
                        "metrics": value,
                        "started_at": 0,
                        **changes,
                    }
                )
    return found


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def test_planted_differences_are_found_and_noise_is_not(rng: np.random.Generator) -> None:
    def factor(metric: str, model: str, method: str) -> float:
        return 3.0 if (metric, model, method) == ("run_seconds", "n", "gibbs") else 1.0

    found = paired.compare(side(rng), side(rng, factor))
    assert len(found.differences) == len(records.METRICS) * len(METHODS) * (len(MODELS) + 1)
    (cell,) = [one for one in found.beyond_noise() if one.model != paired.ALL_MODELS]
    assert (cell.metric.name, cell.model, cell.method, cell.verdict) == ("run_seconds", "n", "gibbs", "worse")
    assert cell.ratio == pytest.approx(3.0, rel=0.3)  # e^(4 * 0.1 * sqrt(2 / 3)) = 1.39
    assert cell.pairs == SEEDS
    assert {(one.metric.name, one.method) for one in found.beyond_noise()} == {("run_seconds", "gibbs")}
    backwards = paired.compare(side(rng, factor), side(rng))
    assert backwards.beyond_noise()[0].verdict == "better"


def test_small_differences_of_all_models_show_together(rng: np.random.Generator) -> None:
    """30 % in each of three models: too little for one of them, at this noise, plenty for all three."""
    found = paired.compare(side(rng), side(rng, lambda metric, model, method: 1.3 if method == "dhmc" else 1.0))
    together = {(one.metric.name, one.method) for one in found.beyond_noise() if one.model == paired.ALL_MODELS}
    assert together == {(name, "dhmc") for name in records.METRICS}


def test_false_alarms_are_rarer_than_promised(rng: np.random.Generator) -> None:
    alarms = sum(bool(paired.compare(side(rng), side(rng), alpha=0.2).beyond_noise()) for _ in range(20))
    assert alarms <= 10  # binomial (20, 0.2) exceeds 10 with probability 6e-4; Holm's bound is not even reached


def test_the_same_records_differ_in_nothing(rng: np.random.Generator) -> None:
    one = side(rng)
    found = paired.compare(one, one)
    assert not found.beyond_noise()
    assert {difference.p for difference in found.differences} == {1.0}


def test_single_seeds_are_judged_by_the_usual_noise(rng: np.random.Generator) -> None:
    found = paired.compare(side(rng, seeds=1), side(rng, lambda *_: 1.2, seeds=1))
    assert not found.beyond_noise()
    assert paired.compare(side(rng, seeds=1), side(rng, lambda *_: 100.0, seeds=1)).beyond_noise()


def test_a_value_on_one_side_only_is_a_difference(rng: np.random.Generator) -> None:
    lacking = side(rng)
    for record in lacking:
        if record["axes"] == {"model": "m", "method": "gibbs", "backend": "numpy"}:
            record["metrics"] = {**record["metrics"], "time_to_error": {"failed": "not reached"}}
    (one,) = paired.compare(side(rng), lacking).beyond_noise()
    assert (one.verdict, one.metric.name, one.b) == ("only A", "time_to_error", None)
    (one,) = paired.compare(lacking, side(rng)).beyond_noise()
    assert (one.verdict, one.a) == ("only B", None)


def test_settings_and_cells_without_a_counterpart_are_told(rng: np.random.Generator) -> None:
    other = side(rng, protocol="q")
    for record in other:
        record["config"] = {**record["config"], "chains": 8}
    found = paired.compare(side(rng), other)
    assert {one.settings for one in found.differences} == {"chains=8 (A has 4)"}
    assert found.left_out == ()
    assert paired.compare(side(rng), other[:3]).left_out == ("cells of A without a counterpart in B: 5",)
    with pytest.raises(SpinbenchError, match="no cell in common"):
        paired.compare(side(rng), [])


def test_command_prints_and_writes_a_page(
    rng: np.random.Generator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, factor in (("a", 1.0), ("b", 3.0)):
        for record in side(rng, lambda metric, *_, f=factor: f if metric == "log_z_error" else 1.0):
            records.write_record(tmp_path / name, record)
    words = ["report", "--compare", str(tmp_path / "a"), str(tmp_path / "b"), "--output", str(tmp_path / "out")]
    assert cli.main(words) == 0
    text = capsys.readouterr().out
    assert "absolute error of log Z" in text
    assert "48 comparisons: B is better in 0 and worse in 8, 40 are within noise" in text
    page = (tmp_path / "out" / "compare.html").read_text()
    assert page.count("<tr data-number") == 48
    assert cli.main(["report", "--compare", "nowhere", "b"]) == 2
    assert cli.main(["report"]) == 2
    assert "no folder was given" in capsys.readouterr().err


def test_commits_are_read_from_the_journal(rng: np.random.Generator, tmp_path: Path, monkeypatch: Any) -> None:
    from spinbench.reporting import comparison

    monkeypatch.setattr(comparison.environment, "root", lambda: None)
    with pytest.raises(SpinbenchError, match="main is no folder, and spinbench runs from no git checkout"):
        comparison.load("main")
