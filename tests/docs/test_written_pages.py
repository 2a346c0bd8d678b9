"""Pages of benchmarks, of UAI-2014 and of records are what scripts and records say."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest
from markdown_blocks import DOCS, ROOT, page_name_patterns

import spinbench
from spinbench import cli
from spinbench.models import generators


def test_the_page_is_written_by_its_command() -> None:
    command = [sys.executable, "-X", "utf8", ROOT / "benchmarks" / "page.py"]
    written = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    assert written == (DOCS / "benchmarks.md").read_text(encoding="utf-8")


def test_the_page_of_a_table(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    folder, table, published = tmp_path / "models", tmp_path / "answers.csv", tmp_path / "published.csv"
    folder.mkdir()
    for seed in range(3):
        spinbench.save(generators.grid(3, 3, seed=seed), folder / f"m{seed}.uai")
    (folder / "m3.uai").write_text("MARKOV 1")
    assert cli.main(["exact", str(folder), "--output", str(table)]) == 1
    log10 = [spinbench.exact(spinbench.load(folder / f"m{seed}.uai")).log_z / 2.302585093 for seed in range(3)]
    published.write_text(f"model,log10_partition\nm0,{log10[0]:.4f}\nm1,{log10[1] + 1:.4f}\nm9,1.5\n")
    script = ROOT / "benchmarks" / "uai14_exact.py"
    done = subprocess.run([sys.executable, script, table, published], capture_output=True, text=True, check=True)
    assert "| models in the table, of 3 published | 4 |\n| answered | 3 |\n" in done.stdout
    assert "| log10 Z equal to the published value, to its digits | 1 of 2 |" in done.stdout
    lines = [line for line in done.stdout.splitlines() if line.startswith(("| m0", "| m1", "| m2", "| m3"))]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    assert [len(row) for row in rows] == [12] * 4
    assert [row[3] for row in rows] == [f"{log10[0]:.4f}", f"{log10[1] + 1:.4f}", "–", "–"]
    assert rows[3][1] == "failed"
    assert float(rows[1][4]) < -0.99


def test_the_page_has_the_columns_that_the_script_writes() -> None:
    page = (DOCS / "uai14.md").read_text(encoding="utf-8")
    assert page.startswith("# UAI-2014 MAR, exactly\n")
    assert "| model | log Z | log10 Z | published log10 Z | difference | solver | width | log2 entries |" in page


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
