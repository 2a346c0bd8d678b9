"""The columns of benchopt: of a sweep's records, and of what ships beside the pages on experiments."""

from __future__ import annotations

import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from small_records import make, typed

from spinbench import cli
from spinbench.measuring import records as stored
from spinbench.papers.gauging import points
from spinbench.reporting import export

EXPERIMENTS = Path(__file__).parents[3] / "docs" / "experiments"
# By which `benchopt merge` knows a line.
IDENTITY = ("dataset_name", "objective_name", "solver_name", "idx_rep", "stop_val")


def test_a_line_is_a_checkpoint_and_the_last_has_the_metrics_of_the_run() -> None:
    records = [make(seed=seed) for seed in range(2)] + [make(status="failed")]
    lines = export.benchopt_table(typed(records))
    assert len(lines) == sum(len(record["result"]["trajectory"]) for record in records[:2])
    assert len({tuple(line[name] for name in IDENTITY) for line in lines}) == len(lines)
    first = records[0]["result"]["trajectory"]
    own = [line for line in lines if line["idx_rep"] == 0]
    assert [line["time"] for line in own] == [point["seconds"] for point in first]
    assert [line["objective_value"] for line in own] == [point["marginal_rmse"] for point in first]
    assert "status" not in own[0]
    assert own[-1]["status"] == "ok"
    assert own[-1]["p_solver_backend"] == records[0]["config"]["backend"]["name"]
    assert own[0]["solver_name"].startswith(f"{records[0]['config']['method']['name']}[backend=")


def test_benchopt_reads_and_draws_it(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    results = pytest.importorskip("benchopt.results", reason="benchopt is not installed: pip install benchopt")
    from benchopt.plotting.default_plots import ObjectiveCurvePlot

    export.write_tables({"benchopt": export.benchopt_table(typed([make(seed=seed) for seed in range(2)]))}, tmp_path)
    found = results.read_results(tmp_path / "benchopt.parquet")
    assert not found.duplicated(list(IDENTITY)).any()
    line = found.iloc[0]
    where = line["dataset_name"], line["objective_name"]
    (curve,) = ObjectiveCurvePlot().plot(found, *where, "objective_value", "Time")
    assert len(curve["x"]) == found["stop_val"].nunique()


def means(path: Path) -> dict[tuple[str, int, float], float]:
    """Of |log Z - answer| / |log Z| over models, by method, factors and β."""
    import pyarrow.parquet

    errors: dict[tuple[str, int, float], list[float]] = defaultdict(list)
    for line in pyarrow.parquet.read_table(path).to_pylist():
        if line["status"] is not None:
            exact = line["objective_exact_log_z"]
            name = points.NAMES[line["solver_name"].partition("[")[0]]
            place = name, line["p_dataset_nodes"], line["p_dataset_beta"]
            errors[place].append(abs(line["objective_log_z"] - exact) / abs(exact))
    assert {len(values) for values in errors.values()} == {20}
    return {place: statistics.fmean(values) for place, values in errors.items()}


def tabled(figure: int) -> dict[tuple[str, int, float], str]:
    """The same of the page, as written."""
    text = (EXPERIMENTS / "gauge-figures.md").read_text(encoding="utf-8")
    part = text.split(f"### Figure {figure}\n")[1].split("### Figure")[0]
    found: dict[tuple[str, int, float], str] = {}
    across: list[float] = []
    nodes = 0
    for line in part.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("**complete graph, "):
            nodes = int(line.split()[2])
        elif cells[0] == "β":
            across = [float(cell) for cell in cells[1:]]
        elif cells[0] in points.NAMES.values():
            found |= {
                (cells[0], nodes, beta): cell.split(" ± ")[0] for beta, cell in zip(across, cells[1:], strict=True)
            }
    return found


@pytest.mark.parametrize("figure", [1, 2])
def test_raw_numbers_that_ship_are_those_of_the_page(figure: int) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install pyarrow")
    found: Any = means(EXPERIMENTS / f"gauge-fig{figure}.parquet")
    told = tabled(figure)
    assert found.keys() == told.keys()
    assert len(told) == 7 * 3 * 4
    assert {place: f"{value:.3g}" for place, value in found.items()} == told


def test_raw_numbers_of_table_1_are_those_that_the_page_tells_of_them() -> None:
    pyarrow = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: pip install pyarrow")
    squares: dict[str, list[float]] = defaultdict(list)
    for line in pyarrow.read_table(EXPERIMENTS / "table1.parquet").to_pylist():
        if line["status"] is not None:
            squares[line["solver_name"]].append(line["objective_marginal_rmse"] ** 2)
    assert [len(values) for values in squares.values()] == [75] * 5
    told = (EXPERIMENTS / "table1.md").read_text(encoding="utf-8").rpartition("Its marginal RMSE")[2].replace("\n", " ")
    for values in squares.values():
        assert f"{statistics.fmean(values) ** 0.5:.4f}"[1:] + " ±" in told


def test_tables_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(stored, "read_records", lambda folder: typed([make(seed=0), make(seed=1)]))
    assert cli.main(["report", "--tables", "sweep", "--output", str(tmp_path / "out")]) == 0
    assert "benchopt.csv" in capsys.readouterr().out
    stems = {path.stem for path in (tmp_path / "out").iterdir()}
    assert stems == {"leaderboard", "cells", "trajectories", "benchopt"}
