"""Which tests the gate leaves to `pytest -m thorough`, by the lines of thorough.txt."""

from __future__ import annotations

from functools import cache
from pathlib import Path

FILE = Path(__file__).parent.with_name("thorough.txt")
Line = tuple[str, ...]


def lines() -> tuple[Line, ...]:
    """The words of each line, comments left out."""
    text = FILE.read_text(encoding="utf-8").splitlines()
    return tuple(tuple(line.split()) for line in text if line and not line.startswith("#"))


@cache
def names(line: Line) -> list[str]:
    """The words of a line that name a file or a function."""
    return [word for word in line if word.endswith(".py") or word.startswith("test_")]


def left_out(test: str, among: tuple[Line, ...]) -> bool:
    """Whether a test's id has all words of a line, and none that ! precedes."""
    rivals = _lines_of_function(test.partition("[")[0], among)
    return any(all(word[1:] not in test if word[0] == "!" else word in test for word in line) for line in rivals)


@cache
def _lines_of_function(function: str, among: tuple[Line, ...]) -> list[Line]:
    """Those with names that the function has; asking each of 16,000 tests for each line takes seconds."""
    return [line for line in among if all(name in function for name in names(line))]
