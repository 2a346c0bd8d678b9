"""Options of what measures how cost grows, and the lines at the end.

    pytest benchmarks                                     on one core
    pytest benchmarks -k parallel --cores 2

This folder is not collected by a plain `pytest`. Everything runs in this process, one test after another. Other
libraries are measured by `spinbench sweep -m experiment=peers`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import machine

LINES: list[str] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("benchmarks of spinbench")
    group.addoption("--figures", type=Path, help="a table for benchmarks/page.py")
    group.addoption("--cores", type=int, default=1, help="run on so many cores (1); rates are CPU time on one")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Timing wants one process, and the benchmarks that pyproject.toml skips for the tests."""
    for option, value in (("numprocesses", 0), ("dist", "no"), ("benchmark_skip", False), ("benchmark_quiet", True)):
        if hasattr(config.option, option):
            setattr(config.option, option, value)


def pytest_configure(config: pytest.Config) -> None:
    """Threads are chosen when libraries are first imported."""
    machine.pin(config.getoption("--cores"))


@pytest.fixture
def note() -> Callable[[str], None]:
    """Keeps a line to be printed with the table."""
    return LINES.append


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The lines, and the machine."""
    if path := config.getoption("--figures"):
        rows = [line.split(": ", 1) for line in LINES]
        machine.write_figures(path, "How cost grows", "pytest benchmarks/test_scaling.py", ("work", "cost"), rows)
    if LINES:
        terminalreporter.section("measured")
        for line in (machine.machine_description(), *LINES):
            terminalreporter.write_line(line)
