"""The list of tests that the gate leaves out: what a line means, and that each still names tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import thorough

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("test", "expected"),
    [("a.py::test_b[jax-one]", True), ("a.py::test_b[jax-two]", False), ("a.py::test_c[jax]", False)],
)
def test_all_words_must_be_there_and_no_other(test: str, expected: bool) -> None:
    assert thorough.left_out(test, (("zzz",), ("test_b", "jax", "!two"))) is expected


def test_each_line_names_a_file_or_a_function() -> None:
    files = [
        (file.name, re.findall(r"def (test_\w+)", file.read_text(encoding="utf-8")))
        for file in TESTS.rglob("test_*.py")
    ]

    def holds(file: str, functions: list[str], names: list[str]) -> bool:
        return all(name == file or any(function.startswith(name) for function in functions) for name in names)

    for names in map(thorough.names, thorough.lines()):
        assert names
        assert any(holds(*file, names) for file in files), f"no file has all of {names}"
