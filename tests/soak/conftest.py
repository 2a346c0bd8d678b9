"""The soak: hours of a user's bad luck in one, out of the gate. `pytest -m soak` prints what it counted.

SPINBENCH_SOAK=.01 makes it a hundredth as long.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

SCALE = float(os.environ.get("SPINBENCH_SOAK", "1"))


@pytest.fixture
def scaled() -> Callable[[int], int]:
    """So many, or the share of them that was asked for."""
    return lambda count: max(1, round(count * SCALE))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The counts of all tests that have some, added up by name; "most ..." are the largest."""
    counts: dict[str, float] = defaultdict(float)
    for status in ("passed", "failed"):
        for report in terminalreporter.getreports(status):
            for name, value in report.user_properties if report.when == "call" else ():
                counts[name] = max(counts[name], value) if name.startswith("most ") else counts[name] + value
    if counts:
        terminalreporter.section("soak")
        for name, value in counts.items():
            terminalreporter.write_line(f"{value:10,.6g}  {name}")
