"""Differences between two sweeps: planted ones are found, noise is not, and who has no counterpart is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_records import RESULT, typed

from spinbench import cli
from spinbench.errors import SpinbenchError
from spinbench.history import axes
from spinbench.measuring import records
from spinbench.reporting import comparison

MODELS, METHODS, SEEDS = ("m", "n", "o"), ("gibbs", "dhmc"), 3
LAPS = {"count": 256, "wall": [1e-3] * 3, "cpu": [1e-3] * 3, "mean_cpu": 1e-3}
SHOWN = [metric.name for metric in axes.metrics() if metric.judged in ("no", "certain")]
"""And not judged; errors of log Z are where seeds make no difference, and here they do."""


def side(
    rng: np.random.Generator,
    factor: Callable[[str, str, str], float] = lambda metric, model, method: 1.0,
    seeds: int = SEEDS,
    **changes: Any,
) -> list[dict[str, Any]]:
    """Records whose metrics scatter by five per cent around model-dependent values."""
    found = []
    for i, model in enumerate(MODELS):
        for method in METHODS:
            for seed in range(seeds):
                value = {
                    name: {"value": 0.1 * 10**i * factor(name, model, method) * float(np.exp(0.05 * rng.normal()))}
                    for name in records.METRICS
                }
                found.append(
                    {
                        "schema": 1,
                        "id": f"{model}{method}{seed}",
                        "key": f"{model}{method}{seed}",
                        "family": "inference",
                        "axes": {"model": model, "method": method, "backend": "numpy"},
                        "config": {
                            **{"model": {"name": model}, "method": {"name": method}, "backend": {"name": "numpy"}},
                            **{"budget": {"samples": 1000}, "chains": 4, "seed": seed},
                        },
                        "git": {},
                        "protocol": "p",
                        "status": "ok",
                        "error": None,
                        "traceback": None,
                        "reference": None,
                        "environment": {},
                        "metrics": value,
                        "result": {
                            **RESULT,
                            "laps": LAPS,
                            "samples": 1000,
                            "answer": f"{value}",
                        },
                        "started_at": 0,
                        "duration": 1.0,
                        **changes,
                    }
                )
    return found


def places(found: comparison.Comparison, level: str = "cell") -> set[tuple[str, str, str]]:
    """Metric, model and method of what is beyond noise."""
    return {(one.metric.name, *one.place[:2]) for one in found.beyond_noise() if one.level == level}


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def test_planted_differences_are_found_and_noise_is_not(rng: np.random.Generator) -> None:
    def factor(metric: str, model: str, method: str) -> float:
        return 3.0 if (metric, model, method) in (("step_seconds", "n", "gibbs"), ("marginal_rmse", "o", "dhmc")) else 1

    found = comparison.compare_records(typed(side(rng)), typed(side(rng, factor)))
    assert places(found) == {("step_seconds", "n", "gibbs"), ("marginal_rmse", "o", "dhmc")}
    assert {one.verdict for one in found.beyond_noise()} == {"worse"}
    (cell,) = [one for one in found.beyond_noise() if one.metric.name == "step_seconds" and one.level == "cell"]
    assert cell.ratio == pytest.approx(3.0, rel=0.2)  # e^(4 * 0.05 * sqrt(2 / 3)) = 1.18
    assert cell.seeds == (SEEDS, SEEDS)
    backwards = comparison.compare_records(typed(side(rng, factor)), typed(side(rng)))
    assert {one.verdict for one in backwards.beyond_noise()} == {"better"}


def test_errors_fifteen_times_as_large_are_worse_for_the_gate_and_the_report(rng: np.random.Generator) -> None:
    """The same numbers in, the same words out: there is one test."""
    found = comparison.compare_records(
        typed(side(rng)), typed(side(rng, lambda metric, *_: 15.0 if metric == "marginal_rmse" else 1.0))
    )
    assert {one.verdict for one in found.differences if one.metric.name == "marginal_rmse"} == {"worse"}
    assert found.judgement.red


def test_small_differences_of_all_models_show_together(rng: np.random.Generator) -> None:
    """35 % in each of three models: too little for one of them, at this noise, enough for all three."""

    def factor(metric: str, model: str, method: str) -> float:
        return 1.35 if (metric, method) == ("step_seconds", "dhmc") else 1.0

    found = comparison.compare_records(typed(side(rng)), typed(side(rng, factor)))
    assert places(found, "group") == {("step_seconds", "all", "dhmc")}
    assert not places(found)


def test_false_alarms_are_rarer_than_promised(rng: np.random.Generator) -> None:
    assert not sum(comparison.compare_records(typed(side(rng)), typed(side(rng))).judgement.red for _ in range(40))


def test_the_same_records_differ_in_nothing(rng: np.random.Generator) -> None:
    one = side(rng)
    found = comparison.compare_records(typed(one), typed(one))
    assert not found.beyond_noise()
    assert (found.judgement.identical, found.judgement.common) == (len(one), len(one))
    assert [one.ratio for one in found.differences] == pytest.approx([1.0] * len(found.differences))


def test_single_seeds_are_judged_on_cost_alone(rng: np.random.Generator) -> None:
    assert not comparison.compare_records(
        typed(side(rng, seeds=1)), typed(side(rng, lambda *_: 1.2, seeds=1))
    ).beyond_noise()
    found = comparison.compare_records(typed(side(rng, seeds=1)), typed(side(rng, lambda *_: 100.0, seeds=1)))
    assert {one.metric.name for one in found.beyond_noise()} == {"step_seconds"}


def test_a_value_on_one_side_only_is_shown(rng: np.random.Generator) -> None:
    """What is missing is no failure, and nothing is known of its probability."""
    lacking = side(rng)
    for record in lacking:
        if record["axes"] == {"model": "m", "method": "gibbs", "backend": "numpy"}:
            record["metrics"] = {**record["metrics"], "marginal_rmse": {"failed": "no marginals"}}
    for a, b in ((side(rng), lacking), (lacking, side(rng))):
        found = comparison.compare_records(typed(a), typed(b))
        assert not found.beyond_noise()
        assert not found.failures
        (one,) = [
            one for one in found.differences if one.metric.name == "marginal_rmse" and one.place[:2] == ("m", "gibbs")
        ]
        assert (one.verdict, one.p, one.ratio) == ("undecided", None, None)
        assert one.reason == "there is no RMSE of the marginals"


def test_settings_and_cells_without_a_counterpart_are_told(rng: np.random.Generator) -> None:
    other = side(rng, protocol="q")
    for record in other:
        record["config"] = {**record["config"], "chains": 8}
    found = comparison.compare_records(typed(side(rng)), typed(other))
    assert {one.place.settings for one in found.differences if one.level != "all"} == {"chains=8 (A has 4)"}
    assert found.left_out == ()
    assert comparison.compare_records(typed(side(rng)), typed(other[:3])).left_out == (
        "cells of A without a counterpart in B: 5",
    )
    with pytest.raises(SpinbenchError, match="no cell in common"):
        comparison.compare_records(typed(side(rng)), typed([]))


def test_command_prints_and_writes_a_page(
    rng: np.random.Generator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, factor in (("a", 1.0), ("b", 3.0)):
        for record in side(rng, lambda metric, *_, f=factor: f if metric == "marginal_rmse" else 1.0):
            if (name, record["key"]) == ("b", "mgibbs0"):
                record |= {"status": "failed", "error": "killed & gone", "metrics": {}}
            records.write_record(tmp_path / name, record)
    words = ["report", "--compare", str(tmp_path / "a"), str(tmp_path / "b"), "--output", str(tmp_path / "out")]
    assert cli.main(words) == 0
    text = capsys.readouterr().out
    assert "RMSE of the marginals" in text
    assert "8 worse, 0 better" in text
    assert "changes from x1." in text
    page = (tmp_path / "out" / comparison.PAGE).read_text()
    groups, alls = len(METHODS) * (len(records.METRICS) - len(SHOWN)), 2
    assert page.count("<tr data-number") == len(records.METRICS) * len(MODELS) * len(METHODS) + groups + alls
    assert page.count('data-value="worse"') == 8
    assert cli.main(["report", "--compare", "nowhere", "b"]) == 2
    assert cli.main(["report"]) == 2
    assert "no folder was given" in capsys.readouterr().err


def test_a_cell_that_fails_stands_on_the_page(
    rng: np.random.Generator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        for record in side(rng):
            if (name, record["axes"]["model"]) == ("b", "m"):
                record |= {"status": "failed", "error": "killed & gone", "metrics": {}}
            records.write_record(tmp_path / name, record)
    words = ["report", "--compare", str(tmp_path / "a"), str(tmp_path / "b"), "--output", str(tmp_path / "out")]
    assert cli.main(words) == 0
    assert "killed & gone" in capsys.readouterr().out
    assert "killed &amp; gone" in (tmp_path / "out" / comparison.PAGE).read_text()


def test_commits_are_read_from_the_journal(monkeypatch: Any) -> None:
    monkeypatch.setattr(comparison.environment, "root", lambda: None)
    with pytest.raises(SpinbenchError, match="main is no folder, and there is no history here"):
        comparison.load("main")
