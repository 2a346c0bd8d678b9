"""The gate: planted regressions are found, noise is not, and what cannot be compared is said."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from spinbench.errors import HistoryError
from spinbench.history import axes
from spinbench.history.gate import ALPHA, gate
from spinbench.history.journal import Replicates
from spinbench.history.recorder import record
from spinbench.history.significance import Noise, compare, fit, holm, moderate

FAMILY = axes.family("inference")
METRICS = {metric.name: metric for metric in FAMILY.metrics}
CELLS = FAMILY.cells[::3]
SEEDS = 3


def noisy(rng: np.random.Generator, factor: Callable[[str, Any], float] = lambda metric, cell: 1.0) -> Any:
    """Values with a spread of 5 % around 0.1, times a factor."""

    def value(metric: str, cell: Any, seed: int) -> dict[str, float]:
        return {"value": 0.1 * factor(metric, cell) * math.exp(0.05 * rng.standard_normal())}

    return value


def enter(project: Any, commit: str, value: Any, cells: Any = CELLS, seeds: int = SEEDS, **changes: Any) -> None:
    records = [project.record(cell, commit, seed, value, **changes) for cell in cells for seed in range(seeds)]
    record(project.root, [project.sweep(commit[:8], records)])


def test_planted_regressions_and_improvements_are_found(project: Any, rng: np.random.Generator) -> None:
    slower = ("run_seconds", ("grid", "gibbs", "numpy"))
    wronger = ("marginal_rmse", ("boltzmann/neural15", "dhmc", "numpy"))
    faster = ("seconds_per_ess", ("grid", "block_gibbs", "numpy"))
    planted = {slower: 1.4, wronger: 1.6, faster: 0.5}
    base = project.commit("good")
    enter(project, base, noisy(rng))
    project.commit("never recorded")
    head = project.commit("bad")
    enter(project, head, noisy(rng, lambda metric, cell: planted.get((metric, cell), 1.0)))
    report = gate(project.root)
    assert (report.base, report.head) == (base, head)
    assert len(report.changes) == len(CELLS) * len(FAMILY.metrics)
    assert {(change.metric.name, change.cell) for change in report.regressions} == {slower, wronger}
    assert {(c.metric.name, c.cell) for c in report.changes if c.verdict == "better"} == {faster}
    assert report.exit_status == 1
    table = report.table().splitlines()
    assert len(table) == 4
    assert "sampling time [seconds]" in report.table()
    assert "grid gibbs numpy" in report.table()
    assert str(report).endswith("72 comparisons on testbox: 2 worse, 1 better, 69 within noise")
    backwards = gate(project.root, head, base)
    assert {(change.metric.name, change.cell) for change in backwards.regressions} == {faster}


def test_a_change_below_the_threshold_passes(project: Any, rng: np.random.Generator) -> None:
    one, other = project.commit("one"), project.commit("other")
    quiet = 0.001
    for commit, factor in ((one, 1.0), (other, 1.05)):
        noise = iter(quiet * rng.standard_normal(10_000))
        enter(project, commit, lambda *_, f=factor, n=noise: {"value": 0.2 * f * math.exp(next(n))}, project.cells)
    report = gate(project.root, one, other)
    certain = [change for change in report.changes if change.p < ALPHA]
    assert certain  # 5 % is far beyond this noise, and below every threshold
    assert report.exit_status == 0


def test_a_cell_that_fails_now_is_a_regression(project: Any) -> None:
    base, head = project.commit("base"), project.commit("head")
    first, second, third = project.cells
    enter(project, base, project.constant, project.cells)
    broken = {"status": "failed", "error": "killed", "metrics": {}}
    lacking = {name: {"value": 0.125} for name in METRICS} | {"log_z_error": {"failed": "it came out as nan"}}
    records = [
        project.record(first, head, **broken),
        project.record(second, head, metrics=lacking),
        project.record(third, head, status="skipped", metrics={}),
    ]
    record(project.root, [project.sweep("head", records)])
    report = gate(project.root)
    assert {(change.verdict, change.cell) for change in report.regressions} == {("fails", first), ("fails", second)}
    assert [change.metric.name for change in report.regressions if change.cell == second] == ["log_z_error"]
    assert "killed" in report.table()
    assert report.left_out == (f"{len(METRICS)} values of {base[:8]} have no counterpart at {head[:8]}",)
    assert gate(project.root, head, base).exit_status == 0
    assert "mended" in gate(project.root, head, base).table()


def test_an_error_that_was_not_reached_is_no_failure(project: Any) -> None:
    base, head = project.commit("base"), project.commit("head")
    enter(project, base, project.constant, project.cells[:1], 1)
    unreached = {name: {"value": 0.125} for name in METRICS} | {"time_to_error": {"failed": "not reached"}}
    record(project.root, [project.sweep("head", [project.record(project.cells[0], head, metrics=unreached)])])
    report = gate(project.root)
    assert report.exit_status == 0
    assert report.left_out == ("1 optional values were not reached at one of the commits, or at both",)
    assert "time_to_error" not in {change.metric.name for change in report.changes}


def test_sentences_where_there_is_nothing_to_compare(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    first = project.commit("first")
    with pytest.raises(HistoryError, match="no commit of the current branch has results in the history of testbox"):
        gate(project.root)
    enter(project, first, project.constant, project.cells[:1], 1)
    with pytest.raises(HistoryError, match=f"no commit before {first[:8]} has results"):
        gate(project.root)
    second = project.commit("second")
    with pytest.raises(HistoryError, match=f"commit {second} has no results .*; run `spinbench sweep`"):
        gate(project.root, first, second)
    with pytest.raises(HistoryError, match="'nothing' names no commit"):
        gate(project.root, "nothing")
    with pytest.raises(HistoryError, match="'--all' names no commit"):
        gate(project.root, "--all")
    with pytest.raises(HistoryError, match="base and head are both"):
        gate(project.root, first, "HEAD~1")
    with pytest.raises(HistoryError, match=r"alpha=2 was given"):
        gate(project.root, alpha=2)
    with pytest.raises(HistoryError, match="in the history of other"):
        gate(project.root, machine="other")
    enter(project, second, project.constant, project.cells[1:2], 1)
    with pytest.raises(HistoryError, match=f"nothing to compare .* 6 values of {first[:8]} have no counterpart"):
        gate(project.root)


def test_values_of_other_settings_are_not_compared(project: Any) -> None:
    base, head = project.commit("base"), project.commit("head")
    for commit in (base, head):
        enter(project, commit, project.constant, project.cells, 1)
    # As if the defaults had changed between the commits without a new version of the metrics.
    for path in (project.root / ".asv" / "journal").rglob(f"{base}/record-*.json"):
        path.write_text(path.read_text().replace('"chains": 16', '"chains": 8'))
    with pytest.raises(HistoryError, match=r"18 values were measured with other settings at"):
        gate(project.root)


def replicates(values: Any) -> Replicates:
    return Replicates(tuple(float(value) for value in values))


@pytest.mark.parametrize(
    ("scale", "sizes"), [("log", (1, 3)), ("log", (2, 2)), ("log", (3, 3)), ("log", (8, 8)), ("linear", (3, 4))]
)
def test_false_alarms_stay_below_alpha(scale: str, sizes: tuple[int, int]) -> None:
    """Over 60 cells whose noise differs by a factor of ten, with no threshold to help."""
    rng = np.random.default_rng(7)
    metric = replace(METRICS["run_seconds"], scale=scale, floor=1e-12)
    alpha, repeats, alarms = 0.1, 200, 0
    for _ in range(repeats):
        pairs = []
        for spread in 10 ** rng.uniform(-2.5, -1.5, size=60):
            drawn = rng.standard_normal(sum(sizes)) * spread
            values = np.exp(drawn) if scale == "log" else 1 + drawn
            pairs.append((replicates(values[: sizes[0]]), replicates(values[sizes[0] :])))
        alarms += min(holm([one.worse for one in compare(metric, pairs)])) < alpha
    # Holm's bound holds for known laws of variance; the fitted one may cost a little.
    assert alarms / repeats <= alpha + 4 * math.sqrt(alpha * (1 - alpha) / repeats)


def test_power_of_moderation() -> None:
    """A rise of eight standard deviations in one of 60 cells of 3 against 3 values: Welch's test alone misses it."""
    rng = np.random.default_rng(8)
    metric = METRICS["run_seconds"]
    found = alone = 0
    for _ in range(50):
        drawn = 0.05 * rng.standard_normal((60, 6))
        drawn[0, 3:] += 0.4
        values = np.exp(drawn)
        compared = compare(metric, [(replicates(row[:3]), replicates(row[3:])) for row in values])
        found += holm([one.worse for one in compared])[0] < ALPHA
        welch = stats.ttest_ind(drawn[:, 3:], drawn[:, :3], axis=1, equal_var=False, alternative="greater").pvalue
        alone += holm(list(welch))[0] < ALPHA
    assert found == 50
    assert alone < 25


def test_single_values_are_judged_by_the_usual_noise_or_greater_standard_errors() -> None:
    metric = METRICS["run_seconds"]
    usual = metric.noise * math.sqrt(2)
    single = compare(metric, [(replicates([1.0]), replicates([1.2]))])[0]
    assert single.worse == pytest.approx(stats.norm.sf(math.log(1.2) / usual))
    assert single.better == pytest.approx(1 - single.worse)
    small = compare(metric, [(Replicates((1.0,), errors=(0.01,)), Replicates((1.2,), errors=(0.01,)))])[0]
    assert small.worse == single.worse
    great = (Replicates((1.0,), errors=(0.6,)), Replicates((2.0,), errors=(1.6,)))
    assert compare(metric, [great])[0].worse == pytest.approx(stats.norm.sf(math.log(2)))
    linear = replace(metric, scale="linear")
    assert compare(linear, [(great[0], Replicates((2.0,), errors=(0.8,)))])[0].worse == pytest.approx(stats.norm.sf(1))


def test_few_cells_fall_back_on_students_test() -> None:
    metric = METRICS["run_seconds"]
    x, y = [1.0, 1.1, 1.05], [1.3, 1.2, 1.5, 1.25]
    ours = compare(metric, [(replicates(x), replicates(y))])[0]
    theirs = stats.ttest_ind(np.log(y), np.log(x), alternative="greater")
    assert ours.worse == pytest.approx(theirs.pvalue)


def test_values_without_noise_and_below_the_floor() -> None:
    metric = replace(METRICS["marginal_rmse"], floor=1e-6)
    equal = compare(metric, [(replicates([1e-17, 2e-17]), replicates([3e-9, 8e-9]))])[0]
    assert (equal.ratio, equal.worse, equal.better) == (1.0, 0.5, 0.5)
    risen = compare(metric, [(replicates([1e-17, 2e-17]), replicates([0.1, 0.1]))])[0]
    assert risen.worse == 0.0
    assert risen.ratio == pytest.approx(1e5)


def test_the_law_of_variances_is_recovered() -> None:
    rng = np.random.default_rng(9)
    scale, freedom, own = 0.04, 6.0, 4
    variances = scale * freedom / rng.chisquare(freedom, size=20_000)
    drawn = variances * rng.chisquare(own, size=variances.size) / own
    found = fit([Noise(float(variance), own) for variance in drawn])
    assert found is not None
    assert found.variance == pytest.approx(scale, rel=0.05)
    assert found.freedom == pytest.approx(freedom, rel=0.1)
    equal = fit([Noise(0.04, own)] * 10)
    assert equal is not None
    assert math.isinf(equal.freedom)
    assert moderate(Noise(9.0, own), equal) == equal
    assert fit([Noise(0.04, own)] * 5) is None


def test_holm() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
