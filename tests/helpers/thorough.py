"""Which tests the gate leaves to `pytest -m thorough`, by the lines of thorough.txt."""

from __future__ import annotations

from pathlib import Path

FILE = Path(__file__).parent.with_name("thorough.txt")
Line = list[str]


def lines() -> list[Line]:
    """The words of each line, comments left out."""
    given = FILE.read_text(encoding="utf-8").splitlines()
    return [line.split() for line in given if line and not line.startswith("#")]


def left_out(test: str, among: list[Line]) -> bool:
    """Whether a test's id has all words of a line, and none that ! precedes."""
    return any(all(word[1:] not in test if word[0] == "!" else word in test for word in line) for line in among)
