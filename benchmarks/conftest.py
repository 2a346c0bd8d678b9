"""Options of what measures our kernels against themselves, and the notes at the end.

    pytest benchmarks                                     on one core
    pytest benchmarks/test_scaling.py --cores 2

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

NOTES: list[str] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("benchmarks of spinbench")
    group.addoption("--cores", type=int, default=1, help="run on so many cores (1); rates are CPU time on one")
    group.addoption("--memory", type=float, default=12.0, help="GiB of address space that this process may take (12)")
    group.addoption("--lock", type=Path, help="a file that is locked while a row is timed (shared machines)")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Timing wants one process, and the benchmarks that pyproject.toml skips for the tests."""
    for option, value in (("numprocesses", 0), ("dist", "no"), ("benchmark_skip", False), ("benchmark_quiet", True)):
        if hasattr(config.option, option):
            setattr(config.option, option, value)


def pytest_configure(config: pytest.Config) -> None:
    """Threads are chosen when libraries are first imported."""
    machine.pin(config.getoption("--cores"))
    machine.limit_memory(config.getoption("--memory"))


@pytest.fixture
def note() -> Callable[[str], None]:
    """Keeps a line to be printed with the table."""
    return NOTES.append


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The notes, and the machine."""
    if NOTES:
        terminalreporter.section("measured")
        for line in (machine.description(), *NOTES):
            terminalreporter.write_line(line)
