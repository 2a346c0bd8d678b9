"""A plugin of pytest that records which tests run which lines, in processes that they start, too, and their durations.

It reads the folder from SPINBENCH_RECORD_DIR; benchmarks/frozen/README.md has the command.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

FOLDER = Path(os.environ["SPINBENCH_RECORD_DIR"])
SETTINGS = Path(__file__).parent / "frozen" / "coverage.ini"


@pytest.hookimpl(tryfirst=True, wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Let processes that the test starts record their lines under its name (`coverage.process_startup`)."""
    # only inside a test: a worker of pytest-xdist must not record itself a second time
    variables = {"COVERAGE_PROCESS_START": str(SETTINGS), "SPINBENCH_RECORD_TEST": item.nodeid}
    os.environ.update(variables)
    try:
        return (yield)
    finally:
        for name in variables:
            os.environ.pop(name, None)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """One line for each phase of each test."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        with (FOLDER / "durations.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps([report.nodeid, report.when, report.duration, report.outcome]) + "\n")
