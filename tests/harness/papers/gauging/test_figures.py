"""The gauging paper's figures: from records made by hand to means, tables and pictures; the experiments themselves."""

from __future__ import annotations

import csv
import io
import math
import statistics
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table
from small_records import typed

from spinbench import cli
from spinbench.errors import SpinbenchError
from spinbench.measuring import records
from spinbench.papers.gauging import figures, points
from spinbench.sweeping import composition

REGULAR = {"name": "gauge_regular", "degree": 3, "kind": "generic"}


def record(
    method: str, log_z: float | None, exact: float | None = 10.0, *, seed: int = 0, ended: bool = True, **model: Any
) -> dict[str, Any]:
    spec = {"name": "gauge_complete", "nodes": 4, "beta": 0.5, "kind": "generic", "seed": seed, **model}
    return {
        "status": "ok",
        "config": {
            "model": spec,
            "method": {"name": method},
            "backend": {"name": "numpy"},
            "budget": {"seconds": 60},
            "chains": 1,
            "seed": 0,
        },
        "reference": {"reason": "it is too wide"} if exact is None else {"log_z": exact},
        "result": {"log_z": log_z, "status": "ok" if ended else "not converged"},
    }


def place(all_points: list[points.Point], method: str, x: float) -> points.Point:
    (point,) = (point for point in all_points if (point.method, point.x) == (method, x))
    return point


def test_errors_are_relative_to_the_size_of_log_z_and_averaged_over_models() -> None:
    runs = [record("g_mf", 9.0), record("g_mf", -5.0, -4.0, seed=1), record("bp", 10.5), record("g_mf", 1.0, beta=1.0)]
    averages = points.average_points(typed(runs), "error")
    point = place(averages, "G-MF", 0.5)
    values = [0.1, 0.25]
    assert point.value == pytest.approx(statistics.fmean(values))
    assert point.value_se == pytest.approx(statistics.stdev(values) / math.sqrt(2))
    assert (point.gap, point.gap_se) == (1.0, 0.0)
    assert (point.panel, point.axis, point.models) == ("complete graph, 4 factors, generic", "β", 2)
    assert place(averages, "BP", 0.5).gap == -0.5, "an estimate above log Z has a negative gap"
    assert place(averages, "BP", 0.5).value == pytest.approx(0.05)
    assert place(averages, "G-MF", 1.0).value_se is None


def test_gains_are_over_the_best_mean_field_of_the_same_model() -> None:
    runs = [
        *(record("forney_mf", 8.0 + seed, seed=seed, **{**REGULAR, "nodes": 20}) for seed in (0, 1)),
        {**record("forney_mf", 8.5, **REGULAR, nodes=20), "started_at": 1},
        record("g_bp", 9.5, **REGULAR, nodes=20),
        record("g_bp", 9.5, seed=1, ended=False, **REGULAR, nodes=20),
        record("g_bp", 30.0, None, **REGULAR, nodes=200),
    ]
    averages = points.average_points(typed(runs), "gain")
    point = place(averages, "G-BP", 20)
    assert (point.panel, point.axis) == ("3-regular graph, β = 0.5, generic", "factors")
    assert point.value == pytest.approx(statistics.fmean([9.5 - 8.5, 9.5 - 9.0]))
    assert (point.models, point.not_converged, point.gap) == (2, 1, pytest.approx(0.5))
    without_baseline = place(averages, "G-BP", 200)
    assert (without_baseline.value, without_baseline.models, without_baseline.missing) == (None, 0, 1)
    assert place(averages, "exact", 20).value == pytest.approx(statistics.fmean([1.5, 1.0]))
    assert place(averages, "exact", 20).models == 2
    one_unknown = [*runs, record("g_bp", 9.5, None, seed=2, **REGULAR, nodes=20)]
    assert "exact" not in {point.method for point in points.average_points(typed(one_unknown), "gain")}


def config(beta: float, model: dict[str, Any]) -> dict[str, Any]:
    return {**record("forney_mf", 1.0)["config"], "model": {**model, "beta": beta, "seed": 0}}


def test_report_has_tables_a_csv_and_a_picture_with_the_papers_axes(tmp_path: Path) -> None:
    runs = [
        record(method, 10.0 - (1 + i) * beta - 0.1 * seed, seed=seed, beta=beta, nodes=nodes)
        for i, method in enumerate(points.NAMES)
        for beta in (0.25, 1.0)
        for nodes in (4, 5)
        for seed in (0, 1)
    ]
    runs.append({**record("g_mf", None, beta=1.0, seed=2), "status": "failed", "result": None, "reference": None})
    parts = figures.report_errors(typed(runs), tmp_path)
    assert sum(isinstance(part, Table) for part in parts) == 4  # error and gap of two kinds of graphs
    assert "G-MF: 1 without a value, of 9" in parts
    console = Console(width=120, file=io.StringIO())
    console.print(parts[0])
    assert "G-BP-sequential 0.1800 ± 0.0050" in " ".join(console.file.getvalue().split())

    with (tmp_path / "gauge_error.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 7 * 2 * 2
    (row,) = (x for x in lines if (x["panel"][:17], x["method"], x["x"]) == ("complete graph, 5", "MF", "1.0"))
    assert (float(row["value"]), float(row["gap"])) == (pytest.approx(0.105), pytest.approx(1.05))
    texts = {node.text for node in ET.parse(tmp_path / "gauge_error.svg").iter("{http://www.w3.org/2000/svg}text")}
    assert {"β", figures.TITLES["error"], *points.NAMES.values()} <= texts
    assert any("means over 2 to 3 models; error bars: ± standard error" in (text or "") for text in texts)
    assert (tmp_path / "gauge_error.png").stat().st_size > 0


@pytest.mark.parametrize(
    ("number", "cells", "kind", "report"),
    [
        (1, 7 * 3 * 4 * 20, "generic", "gauge_error"),
        (2, 7 * 3 * 4 * 20, "supermodular", "gauge_error"),
        (3, 7 * 2 * 5 * 20, "generic", "gauge_gain"),
        (4, 7 * 2 * 4 * 20, "supermodular", "gauge_gain"),
    ],
)
def test_experiments_are_the_papers(number: int, cells: int, kind: str, report: str) -> None:
    plan = composition.plan([f"experiment=gauge_fig{number}"], multirun=False)
    assert (plan.multirun, plan.cells, plan.config.report) == (True, cells, report)
    assert plan.config.model.kind == kind
    if number > 2:
        rows, cols = {3: (10, 20), 4: (10, 10)}[number]
        grid = composition.plan(
            [f"experiment=gauge_fig{number}", "model=paper/gauge_grid", "factors=200"], multirun=True
        )
        assert (grid.config.model.rows, grid.config.model.cols) == (rows, cols)


def test_sizes_that_are_not_listed_are_refused() -> None:
    with pytest.raises(SpinbenchError) as caught:
        composition.plan(["experiment=gauge_fig3", "factors=20,30"], multirun=True)
    assert str(caught.value) == "factors=30 was given; graphs has 6, 20, 60, 100, 140, 200"


@pytest.mark.slow
def test_smoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """From the command line to the figure."""
    monkeypatch.chdir(tmp_path)
    assert cli.main(["sweep", "experiment=gauge_fig1", "size=smoke", "method=forney_mf,g_bp", "sweep_dir=out"]) == 0
    assert "figure: out/gauge_error.png" in capsys.readouterr().out
    averages = points.average_points(typed(records.read_records(tmp_path / "out")), "error")
    assert [point.method for point in averages] == ["MF", "G-BP"]
    field, gauged = (point.gap for point in averages)
    assert field is not None
    assert gauged is not None
    assert -1e-9 <= gauged < field
