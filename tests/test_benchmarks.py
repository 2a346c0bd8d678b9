"""What measures our kernels against themselves is collected; running it takes `pytest benchmarks`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_all_are_collected() -> None:
    command = [sys.executable, "-m", "pytest", "benchmarks", "-p", "no:cacheprovider", "--collect-only", "-q"]
    # pytest-benchmark does not time in what looks like a worker of pytest-xdist
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "test_scaling.py::test_slope[chains]" in done.stdout
    assert "test_scaling.py::test_gauged" in done.stdout
