"""No table cuts a number, however narrow the terminal is."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text
from small_records import BOUNDED, RECORDS, make, typed, whole

from spinbench.reporting import leaderboard, replay, summary
from spinbench.reporting.profiles import tables
from spinbench.reporting.profiles.profile import profile
from spinbench.reporting.whole_numbers import WholeNumbers

_NUMBER = re.compile(r"\d[\d.]*(?:e[-+]?\d+)?")
MANY = [make(method, rmse=0.0123 * (1 + n), seed=s) for n, method in enumerate(("gibbs", "pt", "bp")) for s in (0, 1)]


def printed(console: type[Console], parts: list[RenderableType], width: int) -> str:
    file = io.StringIO()
    output = console(file=file, width=width, highlight=False, markup=False, color_system=None)
    for part in parts:
        output.print(part)
    assert output.width == width, "and the next one is folded as before"
    return file.getvalue()


def board(width: int) -> list[RenderableType]:
    return [*summary.board_tables(leaderboard.rows(typed([*RECORDS, *BOUNDED])), width)]


PARTS = {
    "leaderboard": board,
    "record": lambda width: [*replay.describe(whole(RECORDS[0]))],
    "profile": lambda width: [*tables.page(profile(typed(MANY)))],
    "group": lambda width: [Group(Text("above"), *board(width))],
}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("width", [20, 40, 57, 79])
def test_numbers_are_whole(name: str, width: int) -> None:
    parts = [part for part in PARTS[name](width) if isinstance(part, Table | Group)]
    assert parts
    known = set(_NUMBER.findall(printed(Console, parts, 10_000)))
    shown = printed(WholeNumbers, parts, width)
    whole = {number for number in known if "." in number}
    assert whole <= set(_NUMBER.findall(shown))


def test_texts_are_folded_and_what_has_room_is_left_alone() -> None:
    table = Table("name", "value")
    table.add_row("x" * 50, "0.12345678901234567")
    lines = printed(WholeNumbers, [table], 40).splitlines()
    assert max(map(len, lines)) <= 40
    assert any("0.12345678901234567" in line for line in lines)
    assert printed(WholeNumbers, board(200), 200) == printed(Console, board(200), 200)
