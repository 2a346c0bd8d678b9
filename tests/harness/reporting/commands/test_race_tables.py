"""The table of a race is readable in 80 columns."""

from __future__ import annotations

import io

from rich.console import Console

from spinbench.inference.advising.advice import Entry
from spinbench.reporting.commands import advising

LATE = "the budget was over before its turn"


def entry(name: str, runs: int, seconds: float, status: str, error: float | None, fate: str) -> Entry:
    return Entry(name, "", runs, seconds, 0, status, error, error, fate, "", "", {}, 0, None, None, False)


RACE = [
    entry("wmb.numba", 1, 2.94, "marginals too short, log Z unresolved", 3.7e30, "fell behind"),
    entry("blocks(size=4096).numba", 2, 2.78, "ok", 0.122, "won"),
    entry("pt.numba", 0, 1.2, "", None, "not ready after 1.2 s"),
    entry("smc.numba", 0, 0.0, "", None, LATE),
    entry("swendsen_wang.numba", 0, 0.0, "", None, LATE),
]


def test_numbers_and_names_stay_whole():
    output = io.StringIO()
    Console(file=output, width=80).print(advising._raced(RACE))
    lines = output.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    whole = [line.split() for line in lines]
    assert ["blocks(size=4096).numba", "2", "2.78", "0.122", "0.122", "won"] in whole
    assert ["wmb.numba", "1", "2.94", "3.7e+30", "3.7e+30"] in [words[:5] for words in whole]
    assert any(words[:3] == ["pt.numba", "0", "1.20"] for words in whole)
    assert "smc" not in output.getvalue()


def test_who_had_no_turn_is_named_once():
    assert advising._others(RACE) == [f"smc.numba, swendsen_wang.numba: {LATE}"]
