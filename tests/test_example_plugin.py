"""A backend in a package of its own, installed by pip: discovery, coverage, a sweep and the conformance suite."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spinbench.foundation import plugins

SOURCE = Path(__file__).parent / "example_plugin"


@pytest.fixture(scope="module")
def strict(pip_install: Callable[[Path], Any]) -> Any:
    return pip_install(SOURCE)


def test_it_is_listed_with_every_generic_method(strict: Any) -> None:
    done = strict.spinbench("list")
    assert done.returncode == 0, done.stderr
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in done.stdout.splitlines() if "│" in line]
    heads = next(
        [cell.strip() for cell in line.split("┃")[1:-1]] for line in done.stdout.splitlines() if "strict" in line
    )
    tiers = {row[0]: row[heads.index("strict")] for row in rows if len(row) == len(heads)}  # that of peers is another
    for method in ("gibbs", "block_gibbs", "dhmc"):
        assert tiers[method] == "generic"
    assert tiers["exact"] == "unsupported"
    assert re.search(r"^exact\b.* on strict: there is no kernel$", done.stdout, re.MULTILINE)


SUITE = """
import sys
from unittest import SkipTest
from spinbench.testing import backend_checks, method_checks
names = set(sys.argv[1:])
of_gibbs = [check for check in method_checks("gibbs", "strict", chains=256) if check.name in names]
of_strict = [check for check in backend_checks("strict") if "float32" not in check.name]
for check in [*of_strict, *of_gibbs]:
    try:
        check()
        print(check.name)
    except SkipTest:
        pass
"""


@pytest.mark.slow
def test_it_passes_the_conformance_suite(strict: Any) -> None:
    """Its own checks in float64, and of those of a method what shows that its law is right."""
    of_gibbs = {"plan", "accuracy, dense", "stationarity, dense", "determinism", "calibration, three states"}
    done = strict.python("-c", SUITE, *of_gibbs)
    assert done.returncode == 0, done.stdout + done.stderr
    passed = set(done.stdout.splitlines())
    assert {"independence (float64)", "stationarity, dense", "calibration, three states"} <= passed
    assert len(passed) > 20


@pytest.mark.thorough
@pytest.mark.parametrize("method", plugins.entry_points("methods"))
def test_every_method_passes_the_conformance_suite_on_it(strict: Any, method: str) -> None:
    """What it runs, and what it refuses."""
    done = strict.spinbench("check", "--backend", "strict", "--method", method, timeout=3600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{method}.strict" in done.stdout
    assert "independence (float64)" in done.stdout
    assert done.stdout.splitlines()[-1].endswith("0 failed")


def test_it_runs_in_a_sweep(strict: Any) -> None:
    cell = ("model=grid", "model.rows=3", "model.cols=3", "budget=samples", "budget.samples=200", "chains=8")
    done = strict.spinbench("sweep", "-m", *cell, "method=gibbs", "backend=strict,numpy", "sweep_dir=out")
    assert done.returncode == 0, done.stdout + done.stderr
    found = [json.loads(path.read_text()) for path in (strict.work / "out").rglob("record-*.json")]
    assert {record["config"]["backend"]["name"] for record in found} == {"strict", "numpy"}
    assert {record["status"] for record in found} == {"ok"}
    assert "strict" in done.stdout


LEANING = {
    "x[0, :] = x[1, :]": "use Backend.update",
    "x += 1": "write x = x + y",
    "x = x if x[0, 0] > 0 else -x": "use xp.where",
    "backend.update(x, 0, x[1, :], donate=True); x = x + 1": "may not be used any more",
    "x = numpy.exp(x)": "does not support ufuncs",
    "x = x.sum()": "has no attribute 'sum'",
    "x = backend.xp.trace(x)": "has no attribute 'trace'",
    "x = backend.xp.max(x, initial=0.0)": "unexpected keyword argument 'initial'",
    "x = x[0]": "multi-axes index only specifies 1 dimensions",
    "x = [2 * row for row in x]": "no iteration over arrays",
    "x = backend.xp.where(x > 0, 1, 0)": "Two scalars not allowed",
}
LEAN = """
import json, sys
import numpy
from spinbench.inference import registry

backend = registry.backend_class("strict")()
messages = {}
for line in sys.argv[1:]:
    x = backend.to_device(numpy.ones((2, 2)))
    try:
        exec(line)
    except Exception as error:
        messages[line] = str(error)
print(json.dumps(messages))
"""


def test_programs_that_lean_on_numpy_fail_on_it(strict: Any) -> None:
    done = strict.python("-c", LEAN, *LEANING)
    assert done.returncode == 0, done.stderr
    messages = json.loads(done.stdout)
    assert {line: message for line, message in LEANING.items() if message not in messages.get(line, "")} == {}
