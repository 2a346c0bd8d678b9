"""The page of records names each column that a sweep's tables have."""

from __future__ import annotations

import csv
from pathlib import Path

from markdown_blocks import page_name_patterns

import spinbench
from spinbench import cli


def test_each_column_is_on_the_page(tmp_path: Path) -> None:
    patterns = page_name_patterns("records_page")
    words = ["model=grid", "model.rows=3", "method=gibbs", "backend=numpy", "budget=samples", "budget.samples=20"]
    folder = spinbench.sweep(*words, f"sweep_dir={tmp_path}")
    columns = set(spinbench.read(folder, kind="arrow").column_names)
    assert cli.main(["report", "--tables", str(folder)]) == 0
    for name in ("cells", "leaderboard", "trajectories"):
        with (tmp_path / "report" / f"{name}.csv").open(encoding="utf-8") as file:
            columns |= set(next(csv.reader(file)))
    columns -= {"model", "method", "backend", "seed"}  # labels, which the page has in words
    assert [name for name in columns if not any(pattern.fullmatch(name) for pattern in patterns)] == []
