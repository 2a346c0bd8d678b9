"""The page of records names each column that a sweep's tables have."""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path

from markdown_blocks import DOCS

import spinbench
from spinbench import cli


def test_each_column_is_on_the_page(tmp_path: Path) -> None:
    sys.path.insert(0, str(DOCS / "hooks"))
    try:
        import records_page
    finally:
        sys.path.pop(0)
    patterns = [
        re.compile(re.escape(name).replace("NAME", r".+"))
        for name in re.findall(r"^\| `([^`]+)`", records_page.text(), re.MULTILINE)
    ]
    words = ["model=grid", "model.rows=3", "method=gibbs", "backend=numpy", "budget=samples", "budget.samples=20"]
    folder = spinbench.sweep(*words, f"sweep_dir={tmp_path}")
    columns = set(spinbench.read(folder, kind="arrow").column_names)
    assert cli.main(["report", "--tables", str(folder)]) == 0
    for name in ("cells", "leaderboard", "trajectories"):
        with (tmp_path / "report" / f"{name}.csv").open(encoding="utf-8") as file:
            columns |= set(next(csv.reader(file)))
    columns -= {"model", "method", "backend", "seed"}  # labels, which the page has in words
    assert [name for name in columns if not any(pattern.fullmatch(name) for pattern in patterns)] == []
