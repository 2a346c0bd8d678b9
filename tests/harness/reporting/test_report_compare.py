"""Differences between two sweeps: planted ones are found, noise is not, and who has no counterpart is told."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_records import RESULT, make, typed

from spinbench import cli
from spinbench.errors import SpinbenchError
from spinbench.history import axes
from spinbench.history.regression_test.judge import Judgement
from spinbench.measuring import records
from spinbench.measuring.record_types import Record
from spinbench.reporting import comparison
from spinbench.reporting.comparison import compare_records

MODELS, METHODS, SEEDS = ("m", "n", "o"), ("gibbs", "dhmc"), 3
LAPS = {"count": 256, "wall": [1e-3] * 3, "cpu": [1e-3] * 3, "mean_cpu": 1e-3}
# And not judged; errors of log Z are where seeds make no difference, and here they do.
SHOWN = [metric.name for metric in axes.metrics() if metric.judged in ("no", "certain")]


# By metric, model and method.
Factor = Callable[[str, str, str], float]


def side(
    rng: np.random.Generator,
    factor: Factor = lambda metric, model, method: 1.0,
    seeds: int = SEEDS,
    **changes: Any,
) -> list[Record]:
    """Records whose metrics scatter by five per cent around model-dependent values."""
    found = []
    for (i, model), method, seed in itertools.product(enumerate(MODELS), METHODS, range(seeds)):
        values = {
            name: {"value": 0.1 * 10**i * factor(name, model, method) * float(np.exp(0.05 * rng.normal()))}
            for name in records.METRICS
        }
        key = {"id": f"{model}{method}{seed}", "key": f"{model}{method}{seed}"}
        result = {**RESULT, "laps": LAPS, "samples": 1000, "answer": f"{values}"}
        record = {
            **make(method, model=model, seed=seed, settings={"name": model}),
            **key,
            "metrics": values,
            "result": result,
            "reference": None,
        }
        found.append({**record, **changes, "config": {**record["config"], **changes.get("config", {})}})
    return typed(found)


def failed(record: Record) -> dict[str, Any]:
    return {**record.content, "status": "failed", "error": "killed & gone", "metrics": {}, "result": None}


def places(found: Judgement, level: str = "cell") -> set[tuple[str, str, str]]:
    """Metric, model and method of what is beyond noise."""
    return {(one.metric.name, *one.place[:2]) for one in found.significant if one.level == level}


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def tripled(metric: str, model: str, method: str) -> float:
    return 3.0 if (metric, model, method) in (("step_seconds", "n", "gibbs"), ("marginal_rmse", "o", "dhmc")) else 1.0


def test_planted_differences_are_found_and_noise_is_not(rng: np.random.Generator) -> None:
    found = compare_records(side(rng), side(rng, tripled))
    assert places(found) == {("step_seconds", "n", "gibbs"), ("marginal_rmse", "o", "dhmc")}
    assert {one.verdict for one in found.significant} == {"worse"}
    (cell,) = [one for one in found.significant if one.metric.name == "step_seconds" and one.level == "cell"]
    assert cell.ratio == pytest.approx(3.0, rel=0.2)  # e^(4 * 0.05 * sqrt(2 / 3)) = 1.18
    assert cell.seeds == (SEEDS, SEEDS)
    backwards = compare_records(side(rng, tripled), side(rng))
    assert {one.verdict for one in backwards.significant} == {"better"}


def test_the_same_records_differ_in_nothing(rng: np.random.Generator) -> None:
    one = side(rng)
    found = compare_records(one, one)
    assert not found.significant
    assert (found.identical, found.common) == (len(one), len(one))
    assert [one.ratio for one in found.findings] == pytest.approx([1.0] * len(found.findings))


def test_a_value_on_one_side_only_is_shown(rng: np.random.Generator) -> None:
    """What is missing is no failure, and nothing is known of its probability."""
    known = side(rng)
    without = {"marginal_rmse": {"failed": "no marginals"}}
    lacking = typed(
        {**one.content, "metrics": {**one["metrics"], **(without if one.key.startswith("mgibbs") else {})}}
        for one in side(rng)
    )
    for a, b in ((known, lacking), (lacking, known)):
        found = compare_records(a, b)
        assert (found.significant, found.changes) == ([], ())
        (one,) = [
            one for one in found.findings if one.metric.name == "marginal_rmse" and one.place[:2] == ("m", "gibbs")
        ]
        assert (one.verdict, one.p, one.ratio) == ("undecided", None, None)
        assert one.reason == "there is no RMSE of the marginals"


def test_settings_and_cells_without_a_counterpart_are_told(rng: np.random.Generator) -> None:
    other = side(rng, protocol="q", config={"chains": 8})
    found = compare_records(side(rng), other)
    assert {one.place.settings for one in found.findings if one.level != "all"} == {"chains=8 (A has 2)"}
    assert found.exclusions == ()
    assert compare_records(side(rng), other[:3]).exclusions == ("cells of A without a counterpart in B: 5",)
    with pytest.raises(SpinbenchError, match="no cell in common"):
        compare_records(side(rng), [])


@pytest.fixture
def report(
    rng: np.random.Generator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[[Factor, str], tuple[str, str]]:
    """Compares two sweeps, of which one has a factor and a broken cell; what is printed, and the page."""

    def compare(factor: Factor, broken: str) -> tuple[str, str]:
        for name, sweep in (("a", side(rng)), ("b", side(rng, factor))):
            for record in sweep:
                is_broken = name == "b" and record.key.startswith(broken)
                records.write_record(tmp_path / name, failed(record) if is_broken else record.content)
        words = ["report", "--compare", str(tmp_path / "a"), str(tmp_path / "b"), "--output", str(tmp_path / "out")]
        assert cli.main(words) == 0
        return capsys.readouterr().out, (tmp_path / "out" / comparison.PAGE).read_text()

    return compare


def test_command_prints_and_writes_a_page(report: Any) -> None:
    text, page = report(lambda metric, *_: 3.0 if metric == "marginal_rmse" else 1.0, "mgibbs0")
    pieces = ("RMSE of the marginals", "8 worse, 0 better", "changes from x1.")
    assert [piece for piece in pieces if piece not in text] == []
    groups, alls = len(METHODS) * (len(records.METRICS) - len(SHOWN)), 2
    assert page.count("<tr data-number") == len(records.METRICS) * len(MODELS) * len(METHODS) + groups + alls
    assert page.count('data-value="worse"') == 8


def test_a_cell_that_fails_stands_on_the_page(report: Any) -> None:
    text, page = report(lambda *_: 1.0, "m")
    assert "killed & gone" in text
    assert "killed &amp; gone" in page


def test_cells_whose_numbers_rest_on_other_evidence_are_listed(rng: np.random.Generator, tmp_path: Path) -> None:
    sides = []
    for level in ("exact", "converged"):
        levels = {"marginals": "converged", "log_z": level}
        contents = [{**one.content, "result": {**one.content["result"], "levels": levels}} for one in side(rng)]
        sides.append(typed(contents))
    found = compare_records(*sides)
    assert {(one.verdict, one.title, one.base, one.head) for one in found.changes} == {
        ("weaker", "evidence of log Z", "exact", "converged")
    }
    assert len(found.changes) == comparison.differences_table(found).row_count == len(MODELS) * len(METHODS)
    assert "6 numbers rest on weaker evidence, 0 on stronger" in " ".join(comparison.summary_sentences(found))
    page = comparison.write_comparison_page(found, ("a", "b"), tmp_path).read_text()
    assert page.count(">weaker<") == len(MODELS) * len(METHODS)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--compare", "main", "b"), "main is no folder, and there is no history here"),
        ((), "no folder was given"),
        (("--panels", "--compare", "a", "b"), "--panels belongs to the report of sweeps"),
        (("--tables", "--compare", "a", "b"), "--tables belongs to the report of sweeps"),
        (("--tables",), "no folder was given"),
    ],
)
def test_what_cannot_be_reported_is_one_sentence(
    words: tuple[str, ...], sentence: str, monkeypatch: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(comparison.environment, "history_root", lambda: None)
    assert cli.main(["report", *words]) == 2
    assert sentence in capsys.readouterr().err
