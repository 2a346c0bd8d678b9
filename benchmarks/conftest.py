"""Options of the comparison, its fixture, and the table at the end.

    pytest benchmarks                                     all rows, on one core
    pytest benchmarks -k gibbs --rounds 9                 some of them, more calls
    pytest benchmarks --cores 2 --results FOLDER --long

This folder is not collected by a plain `pytest`. Everything runs in this process, one test after another.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from comparison import machine

LINES: list[Any] = []
MISSING: list[str] = []
NOTES: list[str] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("comparison with other libraries")
    group.addoption("--cores", type=int, default=1, help="run on so many cores (1); rates are CPU time on one")
    group.addoption("--rounds", type=int, default=5, help="calls of each contender, in turns (5)")
    group.addoption("--results", type=Path, default=Path(".benchmarks"), help="folder for comparison.json and .csv")
    group.addoption("--long", action="store_true", help="also contenders that take more than a minute a call")
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
def long(request: pytest.FixtureRequest) -> bool:
    """Whether contenders that take minutes are wanted."""
    return bool(request.config.getoption("--long"))


@pytest.fixture
def note() -> Callable[[str], None]:
    """Keeps a line to be printed with the table."""
    return NOTES.append


@pytest.fixture
def race(benchmark: Any, request: pytest.FixtureRequest) -> Callable[[Any], None]:
    """`race(row)`: times the row's contenders in turns, judges them, and keeps the lines for the table.

    pytest-benchmark runs the rounds; its own figure is the time of a whole round, and the lines are its extra_info.
    """
    from comparison import results, timing

    config = request.config

    def run(row: Any) -> None:
        MISSING.extend(f"{row.name}: {sentence}" for sentence in row.missing)
        contenders = list(row.contenders)
        series = [timing.Series() for _ in contenders]
        numbers = iter(range(1, 10_000))
        MISSING.extend(f"{row.name}: {sentence}" for sentence in timing.first_turn(contenders, series))
        with timing.alone(config.getoption("--lock")):
            benchmark.pedantic(
                lambda: timing.turn(contenders, next(numbers), series),
                rounds=config.getoption("--rounds"),
                iterations=1,
            )
        checked = [
            one.outputs if contender.check is None else contender.check()
            for contender, one in zip(contenders, series, strict=True)
        ]
        found = results.lines(row, contenders, series, [row.judge(answers) for answers in checked])
        LINES.extend(found)
        results.save(LINES, MISSING, config.getoption("--results"))  # after each row: a run may be interrupted
        benchmark.extra_info["lines"] = [vars(line) for line in found]
        wrong = [f"{line.library}: {line.fault}" for line in found if line.fault]
        assert not wrong, f"{row.name}: {'; '.join(wrong)}"

    return run


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The table, what is missing, and where the files are."""
    if not LINES and not NOTES:
        return
    from comparison import results

    terminalreporter.section("comparison")
    for line in [*machine.description(), f"command: {' '.join(['pytest', *config.invocation_params.args])}", ""]:
        terminalreporter.write_line(line)
    terminalreporter.write_line(results.table(LINES))
    for title, sentences in (("Not here:", sorted(set(MISSING))), ("", NOTES)):
        if sentences:
            terminalreporter.write_line("\n".join(["", *filter(None, [title]), *sentences]))
    if LINES:
        written = results.save(LINES, MISSING, config.getoption("--results"))
        terminalreporter.write_line("\nwritten: " + ", ".join(map(str, written)))
