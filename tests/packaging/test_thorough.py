"""The list of tests that the gate leaves out: what a line means, and that each still names tests."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
import thorough

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("test", "found"), [("a.py::test_b[jax-one]", True), ("a.py::test_b[jax-two]", False), ("a.py::test_c[jax]", False)]
)
def test_all_words_must_be_there_and_no_other(test: str, found: bool) -> None:
    assert thorough.left_out(test, [["zzz"], ["test_b", "jax", "!two"]]) is found


@pytest.mark.parametrize("line", thorough.lines(), ids=itertools.count())  # words would leave these tests out, too
def test_each_line_names_a_file_or_a_function(line: list[str]) -> None:
    names = [word for word in line if word.endswith(".py") or word.startswith("test_")]
    files = [(file.name, file.read_text(encoding="utf-8")) for file in TESTS.rglob("test_*.py")]
    there = [name for name, text in files if all(w == name or re.search(rf"def {w}", text) for w in names)]
    assert names
    assert there, f"no file has all of {names}"
