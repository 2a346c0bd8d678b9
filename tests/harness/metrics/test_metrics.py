"""Registered metrics: what they say of a result, in records, reports, the history and its gate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from small_records import typed, whole

import spinbench
from spinbench.errors import BrokenPluginError
from spinbench.history import axes
from spinbench.history.regression_test import measurements
from spinbench.history.regression_test.judge import Judgement, judge
from spinbench.history.regression_test.measurements import Place, Sides
from spinbench.history.suite.cells import value_for_asv
from spinbench.inference.result import replace_pairs
from spinbench.measuring import measure, records
from spinbench.measuring.in_process import measure_here
from spinbench.metrics import registry
from spinbench.metrics.joint import PairRMSE
from spinbench.models import FactorGraph, generators
from spinbench.reporting import export, leaderboard, page, summary

PLUGIN = '''
from spinbench.api import Measured, Metric


class Share(Metric):
    """Of the marginals those within 0.01 of the exact ones."""

    title = "share right"
    unit = "share"
    better = "higher"
    families = ("gate",)
    judged = "accuracy"

    def measure(self, model, result, reference):
        if reference is None:
            return "there is no exact answer"
        right = abs(result.marginals - reference.marginals) < 0.01
        return Measured(right.mean(), 0.125)


class Raises(Share):
    def measure(self, model, result, reference):
        raise ZeroDivisionError("by\\nnought")


class Odd(Share):
    def measure(self, model, result, reference):
        return 0.5


class Infinite(Share):
    def measure(self, model, result, reference):
        return Measured(float("inf"))


class Huge(Share):
    def measure(self, model, result, reference):
        return Measured(1e305, 1e305)


class Writes(Share):
    def measure(self, model, result, reference):
        result.marginals[:] = 0.5
        return Measured(1.0)


class Unsure(Share):
    def measure(self, model, result, reference):
        return Measured(1.0, float("nan"))


class Complex(Share):
    def measure(self, model, result, reference):
        return Measured(1.0, 1j)


class Leaves(Share):
    def measure(self, model, result, reference):
        raise SystemExit(3)


class Unmade(Share):
    def __init__(self):
        raise ZeroDivisionError("by nought")


class Judged(Share):
    judged = "perhaps"


class Family(Share):
    families = "gate"


class Floor(Share):
    floor = "low"


class Clocked(Share):
    timed = "yes"


class Sunken(Share):
    floor = 0.0


class Wild(Share):
    margin = -1.0


class Never(Share):
    alpha = 0


class Sideways(Share):
    better = "sideways"


class Untitled(Metric):
    def measure(self, model, result, reference):
        return Measured(1.0)


def function(model, result, reference):
    return 1.0
'''

Install = Callable[[dict[str, str]], None]
CELL: dict[str, Any] = {
    "model": {"name": "grid", "rows": 3, "cols": 3},
    "method": {"name": "bp"},
    "backend": {"name": "numpy"},
    "budget": {"samples": 200},
    "chains": 2,
    "seed": 0,
}


@pytest.fixture
def plugin(install_plugin: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    def install(names: dict[str, str]) -> None:
        folder = install_plugin("spinbench_share", PLUGIN, {"metrics": names})
        monkeypatch.setenv("PYTHONPATH", str(folder))  # for the processes that measure
        axes.default_families.cache_clear()

    yield install
    axes.default_families.cache_clear()


def test_the_error_of_pairs_of_edges() -> None:
    model = generators.grid(3, 3, seed=1)
    result, exact = spinbench.run(model, "bp", "numpy", 500), spinbench.exact(model, pairs=True)
    difference = result.pairs - exact.pairs
    found = PairRMSE().measure(model, result, exact)
    assert found == (pytest.approx(np.sqrt(np.mean(difference**2))), None)
    spread = np.full(12, 1e-5)
    noisy = replace_pairs(result, result.pairs, spread)
    draws = result.pairs + spread * np.random.default_rng(1).standard_normal((20_000, 12))
    spreads = np.sqrt(np.mean((draws - exact.pairs) ** 2, axis=1)).std()
    assert PairRMSE().measure(model, noisy, exact)[1] == pytest.approx(spreads, rel=0.03)
    assert PairRMSE().measure(model, exact, exact) == (0.0, None)


def test_the_error_of_factors_leaves_out_those_of_one_variable() -> None:
    model = FactorGraph.from_tables([2, 3], [((0,), [1, 2]), ((1, 0), np.ones((3, 2))), ((), 2.0)])
    exact = spinbench.exact(model, pairs=True, cache=False)
    wrong = [table.copy() for table in exact.pairs]
    wrong[0] += 0.5
    wrong[1] += 0.25
    found = PairRMSE().measure(model, replace_pairs(exact, wrong), exact)
    assert found == (pytest.approx(0.25), None)


def test_why_there_is_no_error_of_pairs() -> None:
    exact, lone = (spinbench.exact(generators.grid(n, n, seed=1), pairs=True) for n in (2, 1))
    without = replace_pairs(exact, None)
    for n, found, reference, why in (
        (2, without, exact, "exact gives no pairs"),
        (2, exact, None, "the exact pairs are out of reach"),
        (2, exact, without, "the exact pairs are out of reach"),
        (1, lone, lone, "the model has no pairs"),
    ):
        assert PairRMSE().measure(generators.grid(n, n, seed=1), found, reference) == why


def test_records_hold_the_numbers_of_all_metrics(plugin: Install) -> None:
    endings = {
        "raises": ("Raises", "failed: ZeroDivisionError: by nought"),
        "odd": ("Odd", "returned a float; Measured or a sentence is needed"),
        "complex": ("Complex", "measured a complex; real numbers are needed"),
        "leaves": ("Leaves", "failed: SystemExit: 3"),
        "infinite": ("Infinite", "spinbench_share 1.0) came out as inf"),
        "huge": ("Huge", "came out as 1e+305"),
        "awrites": ("Writes", "read-only"),
        "function": ("function", "a subclass of spinbench.api.Metric is needed"),
    }
    plugin({"share": "Share", "unsure": "Unsure", **{name: made for name, (made, _) in endings.items()}})
    assert {"pair_rmse", "share", "raises"} <= set(registry.metric_names())
    record = measure_here(CELL)
    found = record["metrics"]
    assert set(records.METRICS) - {"compile_seconds"} <= set(found)
    assert [name for name, (_, ending) in endings.items() if ending not in found[name]["failed"]] == []
    assert found["raises"]["failed"].startswith("metric 'raises' (spinbench_share:Raises, from spinbench_share 1.0)")
    assert registry.measurement_failures(found).keys() == endings.keys()
    assert (found["unsure"]["value"], "standard_error" in found["unsure"]) == (1.0, False)
    remark = found["unsure"]["remark"]
    assert remark.startswith("metric 'unsure' (spinbench_share:Unsure, from spinbench_share 1.0)")
    assert " gave a standard error of nan, which is left out" in remark
    axes = {"model": "grid", "method": "mf", "backend": "numpy"}
    assert leaderboard.collect_remarks(typed([{**record, "axes": axes}]))[-1] == f"mf on numpy: {remark}"
    assert {"title": "RMSE of pairs", "better": "lower"}.items() <= found["pair_rmse"].items()
    assert (found["pair_rmse"]["value"] > 0, found["share"]["standard_error"]) == (True, 0.125)
    assert 0 <= found["share"]["value"] <= 1
    gibbs = measure_here({**CELL, "method": {"name": "gibbs"}})["metrics"]
    assert gibbs["pair_rmse"] == {"failed": "gibbs gives no pairs"}


@pytest.mark.parametrize(
    ("name", "what", "words"),
    [
        ("marginal_rmse", "Share", "has the name of a number that records have"),
        ("mixing", "Share", "has the name of a number that records have"),
        ("my-share", "Share", "has a name that is none in Python, which asv asks for"),
        ("mine", "Sideways", "has better = 'sideways'; 'lower' or 'higher' is needed"),
        ("mine", "Untitled", "has no title"),
        ("mine", "Missing", "failed on import"),
        ("mine", "Unmade", "cannot be made: ZeroDivisionError: by nought"),
        ("mine", "Judged", "has judged = 'perhaps'; 'accuracy' or 'no' is needed"),
        ("mine", "Family", "has families = 'gate'; a tuple of names is needed"),
        ("mine", "Floor", "has floor = 'low'; a number is needed"),
        ("mine", "Clocked", "has timed = 'yes'; a bool is needed"),
        ("mine", "Sunken", "has floor = 0.0; a positive number is needed"),
        ("mine", "Wild", "has margin = -1.0; a positive number is needed"),
        ("mine", "Never", "has alpha = 0; a number between 0 and 1 is needed"),
    ],
)
def test_broken_metrics(plugin: Install, name: str, what: str, words: str) -> None:
    plugin({name: what})
    with pytest.raises(BrokenPluginError, match=words):
        registry.load_metric(name)
    assert list(registry.usable_metrics()) == ["hellinger", "pair_rmse"]


def test_a_name_of_spinbench_s_own_stays(plugin: Install) -> None:
    plugin({"pair_rmse": "Share"})
    assert isinstance(registry.load_metric("pair_rmse"), PairRMSE)
    (reason,) = registry.unusable_metrics().values()
    assert reason.startswith("metric 'pair_rmse' (spinbench_share:Share, from spinbench_share 1.0) has the name of")


def record(value: float, seed: int, answer: str, numbers: str = "") -> dict[str, Any]:
    """Of an accuracy `value` of which higher is better."""
    entry = {"value": value, "title": "share right", "better": "higher"}
    result = {"answer": answer, "numbers": numbers, "samples": 100, "status": "ok"}
    return {"status": "ok", "error": None, "metrics": {"share": entry}, "result": result, "config": {"seed": seed}}


def findings(*sides: tuple[float, float, str, str], slope: float = 0.0) -> Judgement:
    """What the gate finds in `share` of two sittings, each a value, its scatter, the answer and the numbers."""
    (metric,) = [each for each in axes.family("gate").metrics if each.name == "share"]
    assert (metric.title, metric.unit, metric.judged) == ("1 / share right", "1 / share", "accuracy")
    rng, place = np.random.default_rng(1), Place("m", "bp", "numpy")
    runs = []
    for value, scatter, answer, numbers in sides:
        drawn = [value * (1 + scatter * rng.uniform()) + slope * seed for seed in range(8)]
        found = [(place, whole(record(share, seed, answer, numbers))) for seed, share in enumerate(drawn)]
        runs.append(measurements.group_runs(found, [metric]))
    return judge(Sides(*runs))


@pytest.mark.parametrize(("factor", "verdict"), [(0.5, "worse"), (2.0, "better")])
def test_the_gate_knows_which_direction_is_better(plugin: Install, factor: float, verdict: str) -> None:
    plugin({"share": "Share"})
    assert "share" not in {each.name for each in axes.family("inference").metrics}
    found = findings((0.3, 0.03, "a", ""), (0.3 * factor, 0.03, "b", "")).findings
    assert {finding.verdict for finding in found} == {verdict}
    assert found[0].ratio == pytest.approx(1 / factor, rel=0.05)
    assert value_for_asv(record(0.25, 1, "a"), "share") == 4.0


@pytest.mark.parametrize("edited", [True, False])
def test_the_gate_knows_an_edited_metric_from_a_worse_answer(plugin: Install, edited: bool) -> None:
    plugin({"share": "Share"})
    found = findings((0.3, 0.0, "a", "same"), (0.1, 0.0, "a", "same" if edited else "other"), slope=1e-3)
    said = "1 / share right: 1 cell without a verdict: the results are identical, and so the metric has changed its "
    assert {finding.verdict for finding in found.findings} == {"undecided" if edited else "worse"}
    assert found.notes == ((said + "meaning: raise its version",) if edited else ())
    assert found.red != edited


def test_pairs_are_tracked_and_judged_like_marginals() -> None:
    for name in ("inference", "gate"):
        (metric,) = [each for each in axes.family(name).metrics if each.name == "pair_rmse"]
        assert (metric.judged, metric.margin, metric.falls) == ("accuracy", 0.1, 0.5)


def test_reports_show_them(plugin: Install, tmp_path: Path) -> None:
    plugin({"share": "Share"})
    found = [measure.measure_cell({**CELL, "seed": seed}) for seed in (0, 1)]
    found.append(measure.measure_cell({**CELL, "method": {"name": "gibbs"}}))
    board = leaderboard.rows(typed(found))
    assert leaderboard.metric_titles(board) == ["RMSE of pairs", "share right ↑"]
    bp = next(row for row in board if row.method == "bp")
    assert bp.metric_means["RMSE of pairs"].value == pytest.approx(found[0]["metrics"]["pair_rmse"]["value"])
    assert bp.metric_means["share right ↑"].standard_error == pytest.approx(0.125 / np.sqrt(2))
    console = Console(width=200, record=True, file=(tmp_path / "out").open("w"))
    for table in summary.leaderboard_tables(board, 200):
        console.print(table)
    text = console.export_text()
    assert "RMSE of" in text
    assert "right ↑" in text
    for narrow in summary.leaderboard_tables(board, 80):
        assert "no room for RMSE of pairs" in str(narrow.caption)
    line = export.leaderboard_table(board)[board.index(bp)]
    assert line["RMSE of pairs"] == bp.metric_means["RMSE of pairs"].value
    html = page.write_report(typed(found), tmp_path / "page", sources=[tmp_path]).page.read_text()
    assert html.count('<button type="button">RMSE of pairs</button>') == 1
    assert f'data-value="{bp.metric_means["RMSE of pairs"].value}"' in html
    assert found[0]["plugins"]["metrics.share"]["distribution"] == "spinbench_share"


def test_metrics_of_one_title_have_columns_of_their_own() -> None:
    cell: dict[str, Any] = measure.measure_cell(CELL)
    for name, value, title in (("mine", 1.0, "error"), ("yours", 3.0, "error"), ("odd", 5.0, "marginal RMSE")):
        cell["metrics"][name] = {"value": value, "title": title, "better": "lower"}
    (row,) = board = leaderboard.rows(typed([cell]))
    assert {heading: found.value for heading, found in row.metric_means.items() if heading != "RMSE of pairs"} == {
        "error (mine)": 1.0,
        "error (yours)": 3.0,
        "marginal RMSE (odd)": 5.0,
    }
    (line,) = export.leaderboard_table(board)
    assert (line["method"], line["marginal RMSE (odd)"]) == ("bp", 5.0)
    cell["metrics"]["mine"]["value"] = None
    (row,) = leaderboard.rows(typed([cell]))
    assert "error (mine)" not in row.metric_means
