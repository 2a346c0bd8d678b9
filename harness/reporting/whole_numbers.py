"""A console on which no table cuts a number: one whose columns have not enough room is wider than the terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

_WIDE = 10_000
_WORD = 8
"""Columns that a text keeps at least."""
_OF_A_NUMBER = re.compile(r"[\d.,eE+\-−–±×%()\[\]<>=≤≥~:;/]+")


class WholeNumbers(Console):
    """Prints tables whose numbers stay whole; all else as rich's console does."""

    def print(self, *objects: Any, **options: Any) -> None:
        """As `Console.print`."""
        needed = max((_fitted(self, table) for one in objects for table in _tables(one)), default=0)
        if needed <= self.width:
            super().print(*objects, **options)
            return
        before = self._width  # rich prints nothing wider than its console
        self.width = needed
        try:
            super().print(*objects, **{"crop": False, **options})
        finally:
            self._width = before


def _tables(found: Any) -> Iterator[Table]:
    if isinstance(found, Table):
        yield found
    elif isinstance(found, Group):
        for inner in found.renderables:
            yield from _tables(inner)


def _fitted(console: Console, table: Table) -> int:
    """How wide a table gets; where it does not fit, the widest columns are narrowed, but not below their numbers."""
    wide = console.options.update_width(_WIDE)
    if (natural := Measurement.get(console, wide, table).maximum) <= console.width or not table.columns:
        return natural
    widths = [_natural(column) for column in table.columns]
    least = [min(width, _least(column)) for width, column in zip(widths, table.columns, strict=True)]
    for column in table.columns:
        column.width = 1
    lines = Measurement.get(console, wide, table).minimum - len(widths)  # and what is between columns
    while sum(widths) + lines > console.width and widths != least:
        room = [(width, -place) for place, width in enumerate(widths) if width > least[place]]
        widths[-max(room)[1]] -= 1
    for column, width in zip(table.columns, widths, strict=True):
        column.width = width
    return sum(widths) + lines


def _natural(column: Column) -> int:
    """Of a column: its longest line."""
    lines = [line for cell in (column.header, *column.cells) for line in _plain(cell).splitlines()]
    return max(map(cell_len, lines), default=1)


def _least(column: Column) -> int:
    """Of a column: of numbers, and where lines are not folded, the longest line; else the longest number."""
    lines = [line for cell in column.cells for line in _plain(cell).splitlines()]
    if column.no_wrap:
        return _natural(column)
    if column.justify != "right":
        lines = [word for line in lines for word in line.split() if _is_number(word)]
    words = [word for cell in (column.header, *column.cells) for word in _plain(cell).split()]
    of_text = min(max(map(cell_len, words), default=1), _WORD)
    return max(column.min_width or 0, of_text, *map(cell_len, lines))


def _is_number(word: str) -> bool:
    return any(map(str.isdigit, word)) and _OF_A_NUMBER.fullmatch(word) is not None


def _plain(cell: RenderableType) -> str:
    return cell.plain if isinstance(cell, Text) else str(cell)
