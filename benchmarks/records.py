"""What one run of all tests with `record_tests` left behind: which tests ran which lines, and how long they took."""

from __future__ import annotations

import json
import os
import sqlite3
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]


class Records(NamedTuple):
    tests: dict[str, dict[int, set[str]]]  # {file: {line: tests that run it}}
    seconds: dict[str, float]  # of each test that passed


def read_records(folder: Path) -> Records:
    """Which tests ran which lines, and how long they take; a line of a fixture counts for all tests of its file."""
    seconds, failed, by_file = defaultdict[str, float](float), set[str](), defaultdict[str, set[str]](set)
    for text in (folder / "durations.jsonl").read_text(encoding="utf-8").splitlines():
        test, _, duration, outcome = json.loads(text)
        test = test.rpartition("@")[0]  # pytest-xdist appends the group
        seconds[test] += duration
        if outcome != "passed":
            failed.add(test)
    passed = {test: duration for test, duration in seconds.items() if test not in failed}
    for test in passed:
        by_file[test.partition("::")[0]].add(test)
    tests = defaultdict[str, dict[int, set[str]]](lambda: defaultdict(set))
    query = "select path, context, numbits from line_bits join file on file.id = file_id join context"
    for path, context, bits in sqlite3.connect(folder / ".coverage").execute(f"{query} on context.id = context_id"):
        name, phase = context.removesuffix("|run").removesuffix("|setup"), context[-6:]
        test = name.rpartition("@")[0]
        ran_by = {"|setup": by_file[test.partition("::")[0]]}.get(phase, {test} & passed.keys())
        for line in (8 * i + bit for i, byte in enumerate(bits) for bit in range(8) if byte >> bit & 1):
            tests[os.path.relpath(path, ROOT)][line] |= ran_by
    return Records(tests, passed)
