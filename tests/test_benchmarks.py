"""The comparison with other libraries is found, and its smallest row runs; all of it takes `pytest benchmarks`."""

from __future__ import annotations

import csv
import json
import math
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def _pytest(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "benchmarks", "-p", "no:cacheprovider", *arguments]
    # pytest-benchmark does not time in what looks like a worker of pytest-xdist
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    return subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=300, check=False)


def test_the_smallest_row(tmp_path: Path) -> None:
    """All files are collected, one test runs; peers that are not installed are named."""
    done = _pytest("-k", "smallest", "--rounds", "3", "--results", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
    found = json.loads((tmp_path / "comparison.json").read_text())
    line = next(line for line in found["lines"] if line["library"] == "spinbench numpy")
    assert line["rate"] > 0
    assert 0 < line["error"] < 0.1
    assert line["turns"] == 3
    assert line["calls"] * line["wall_seconds"] > 0.01
    assert line["cpu_seconds"] <= line["median_seconds"] * 1.01
    assert line["affinity"].startswith("{")
    peers = [line for line in found["lines"] if line["library"] == "pgmpy"]
    assert bool(peers) != any("pgmpy is not installed" in sentence for sentence in found["missing"])
    assert (line["ratio"] is None) == (not peers)
    rows = list(csv.DictReader((tmp_path / "comparison.csv").open()))
    assert math.isclose(float(rows[0]["rate"]), found["lines"][0]["rate"])
