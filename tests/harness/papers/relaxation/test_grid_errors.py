"""Figures 2 and 3 of the DHMC paper: from records to mean square errors of single runs; the experiments themselves."""

from __future__ import annotations

import csv
import io
import json
import statistics
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from rich.table import Table
from small_records import typed

import spinbench
from spinbench import cli
from spinbench.inference.budget import Budget
from spinbench.measuring import cells, records
from spinbench.models import specs
from spinbench.papers.relaxation import grid_errors
from spinbench.reporting import leaderboard
from spinbench.sweeping import composition

C = [0.5, 1, 1.5, 2, 2.5, 3]


def record(
    method: str = "dhmc",
    c1: float = 0.5,
    c2: float = 0.5,
    seed: int = 0,
    rmse: float | None = 0.1,
    error: float | None = 1.0,
    status: str = "ok",
    model: dict[str, Any] | None = None,
    budget: dict[str, Any] | None = None,
    **settings: Any,
) -> dict[str, Any]:
    metrics = {"marginal_rmse": rmse, "log_z_error": error}
    config = {
        "model": {
            "name": "grid",
            "rows": 10,
            "cols": 10,
            "c1": c1,
            "c2": c2,
            "kind": "standard",
            "seed": 7,
            **(model or {}),
        },
        "method": {"name": method, **settings},
        "backend": {"name": "numba"},
        "budget": budget or {"samples": 10_000, "burn_in": 2000, "seconds": None},
        "chains": 1,
        "seed": seed,
    }
    return {
        "status": status,
        "config": config,
        "axes": {"model": "grid", "method": method, "backend": "numba"},
        "protocol": cells.protocol_digest(config),
        "metrics": {k: {"failed": "none"} if v is None else {"value": v} for k, v in metrics.items()},
        "result": None,
    }


def only(sets: list[grid_errors.GraphSet]) -> grid_errors.GraphSet:
    (graphs,) = sets
    return graphs


def test_an_estimate_that_nothing_vouches_for_is_still_the_papers() -> None:
    """Records make no number of an unresolved log Z; a figure of the estimator's error needs it all the same."""
    unresolved = record(error=None, log_z="mirrored_in_sample")
    unresolved["result"] = {"log_z_estimates": {"bridge": [7.0, 0.1], "mirrored_in_sample": [5.0, None]}}
    unresolved["reference"] = {"log_z": 7.5}
    cells = only(grid_errors.group_by_graph_set(typed([unresolved]))).columns[0].cells
    assert cells["log_z"][0.5, 0.5].mse == pytest.approx(2.5**2)


def test_methods_are_columns_and_readings_are_told_apart() -> None:
    gibbs: dict[str, Any] = {"scan": "random", "log_z": "chib"}
    runs = [
        record("gibbs", sample="update", **gibbs),
        record("gibbs", sample="sweep", **{**gibbs, "scan": "chromatic"}),
        record("dhmc", slack=0.5, draws=10_000),
        record("block_gibbs", slack=0.1),
        record("block_gibbs", slack=0.5),
    ]
    labels = [column.label for column in only(grid_errors.group_by_graph_set(typed(runs))).columns]
    assert labels == [
        "Gibbs (1 update a sample)",
        "Gibbs (1 sweep a sample)",
        "DHMC",
        "block Gibbs (slack=0.1)",
        "block Gibbs (slack=0.5)",
    ]
    timed = only(
        grid_errors.group_by_graph_set(typed([record("gibbs", sample="sweep", budget={"seconds": 0.2}, **gibbs)]))
    )
    assert timed.columns[0].label == "Gibbs"
    assert timed.title == "10 × 10 grid, kind=standard: 1 run of 0.2 s"


def test_report_of_a_whole_figure(tmp_path: Path) -> None:
    """36 graphs; the figure has each value in its place, and the tables say what it shows."""
    runs = [
        record(
            method,
            c1,
            c2,
            seed,
            rmse=0.01 * (1 + i) * c1,
            error=c2 / (1 + i),
            **({"sample": "update"} if i == 0 else {}),
        )
        for i, method in enumerate(("gibbs", "dhmc", "block_gibbs"))
        for c1 in C
        for c2 in C
        for seed in (0, 1)
    ]
    *tables, line = grid_errors.report(typed(runs), tmp_path)
    assert isinstance(line, str)
    assert line.endswith("mse.png, .svg and .csv beside it")
    console = Console(width=120, file=io.StringIO())
    for table in tables:
        assert isinstance(table, Table)
        console.print(table)
    text = " ".join(console.file.getvalue().split())
    mean = statistics.fmean(c**2 for c in C)
    assert f"Gibbs (1 update a sample) 36 {leaderboard.format_number(1e-4 * mean)}" in text
    assert "DHMC than Gibbs (1 update a sample) 0 of 36 36 of 36" in text

    with (tmp_path / "mse.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 2 * 3 * 36
    row = next(x for x in lines if (x["measure"], x["method"], x["c1"], x["c2"]) == ("log_z", "dhmc", "0.5", "3.0"))
    assert float(row["mse"]) == pytest.approx(2.25)
    assert (row["runs"], row["missing"]) == ("2", "0")

    texts = [node.text for node in ET.parse(tmp_path / "mse.svg").iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("DHMC") == 2  # above each row of panels
    assert texts.count(leaderboard.format_number((0.02 * 2.5) ** 2)) >= 6  # DHMC's marginals at c1 = 2.5, for every c2
    assert {"MSE of node marginals", "MSE of log Z (nats²)"} <= set(texts)
    assert (tmp_path / "mse.png").stat().st_size < 300_000


@pytest.mark.parametrize("name", ["dhmc_fig2", "dhmc_fig3"])
def test_experiments_are_the_papers(name: str) -> None:
    plan = composition.plan([f"experiment={name}"], multirun=False)
    assert (plan.multirun, plan.cells) == (True, 3 * 36 * 10)
    assert Budget(**plan.config.budget) == Budget(samples=10_000, burn_in=2000)
    assert (plan.config.chains, plan.config.report, plan.config.model.scale) == (1, "grid_mse", 2.0)
    assert plan.config.model.kind == {"dhmc_fig2": "standard", "dhmc_fig3": "frustrated_minus"}[name]
    timed = composition.plan([f"experiment={name}_time"], multirun=False)
    assert timed.cells == plan.cells
    assert Budget(**timed.config.budget) == Budget(seconds=0.2)
    smoke = composition.plan([f"experiment={name}", "size=smoke"], multirun=False)
    assert smoke.cells == 3 * 4 * 2


def test_readings_are_config_values() -> None:
    """Variance or standard deviation, the sign of the shift, what a sample is, D and its slack."""
    chosen = [
        "experiment=dhmc_fig3",
        "model.scale=4",
        "model.kind=frustrated",
        "reading.slack=1",
        "reading.diagonal=sdp",
    ]
    for method in ("dhmc", "block_gibbs"):
        config = composition.plan([*chosen, f"method=paper/{method}"], multirun=False).config
        assert (config.model.scale, config.model.kind) == (4, "frustrated")
        assert (config.method.slack, config.method.diagonal, config.method.draws) == (1, "sdp", 10_000)
    plan = composition.plan([*chosen, "reading.sample=update,sweep", "method=paper/gibbs"], multirun=False)
    assert plan.cells == 2 * 36 * 10
    assert (plan.config.method.sample, plan.config.method.marginals) == ("update", "empirical")


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("dhmc_fig3", "dhmc_fig2_time")]


@pytest.mark.parametrize("name", ["dhmc_fig2", "dhmc_fig3_time", *SLOW])
def test_smoke(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """From the command line to the figure, on NumPy, which has nothing to compile."""
    monkeypatch.chdir(tmp_path)
    assert cli.main(["sweep", f"experiment={name}", "size=smoke", "backend=numpy", "sweep_dir=out"]) == 0
    output = capsys.readouterr().out
    assert "heat maps: out/mse.png" in output
    assert "block Gibbs than DHMC" in output
    assert all((tmp_path / "out" / f"mse.{suffix}").stat().st_size for suffix in ("png", "svg", "csv"))
    stored = records.read_records(tmp_path / "out")
    assert len(stored) == 24
    assert {entry["status"] for entry in stored} == {"ok"}
    if name == "dhmc_fig2":
        _check_against_a_run_by_hand(stored, tmp_path / "out" / "mse.csv")


def _check_against_a_run_by_hand(stored: list[dict[str, Any]], path: Path) -> None:
    """The MSE of a graph in the CSV is that of the same runs made one by one."""
    with path.open(encoding="utf-8", newline="") as file:
        expected = {
            x["measure"]: float(x["mse"])
            for x in csv.DictReader(file)
            if (x["method"], x["c1"], x["c2"]) == ("dhmc", "3.0", "0.5")
        }
    cells = [
        entry["config"] for entry in stored if (entry["axes"]["method"], entry["config"]["model"]["c1"]) == ("dhmc", 3)
    ]
    squares: dict[str, list[float]] = {"marginal": [], "log_z": []}
    for cell in (cell for cell in cells if cell["model"]["c2"] == 0.5):
        model = specs.build(cell["model"])
        settings = {key: value for key, value in cell["method"].items() if key != "name"}
        result = spinbench.run(
            model, "dhmc", "numpy", Budget(**cell["budget"]), chains=1, seed=cell["seed"], **settings
        )
        exact = spinbench.exact(model)
        squares["marginal"].append(float(np.mean((result.marginals - exact.marginals) ** 2)))
        squares["log_z"].append((result.log_z - exact.log_z) ** 2)
    assert len(squares["marginal"]) == 2
    for measure, values in squares.items():
        assert expected[measure] == pytest.approx(statistics.fmean(values), rel=1e-6), json.dumps(values)
