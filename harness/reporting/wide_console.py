"""A console on which no table cuts a number: one whose columns have not enough room is wider than the terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.table import Column, Table

_UNBOUNDED_WIDTH = 10_000
# Smallest width of a text column.
_MIN_TEXT_WIDTH = 8
_NUMBER = re.compile(r"[\d.,eE+\-−–±×%()\[\]<>=≤≥~:;/]+")


class WideConsole(Console):
    """Prints tables whose numbers stay whole; all else as rich's console does."""

    def print(self, *objects: Any, **options: Any) -> None:
        """As `Console.print`."""
        width = max(
            (_fit_columns(self, table) for renderable in objects for table in _iterate_tables(renderable)), default=0
        )
        if width <= self.width:
            super().print(*objects, **options)
            return
        # rich crops output at its console's width.
        previous_width = self._width
        self.width = width
        try:
            super().print(*objects, **{"crop": False, **options})
        finally:
            self._width = previous_width


def _iterate_tables(renderable: RenderableType) -> Iterator[Table]:
    if isinstance(renderable, Table):
        yield renderable
    elif isinstance(renderable, Group):
        for inner in renderable.renderables:
            yield from _iterate_tables(inner)


def _fit_columns(console: Console, table: Table) -> int:
    """How wide a table gets; where it does not fit, the widest columns are narrowed, but not below their numbers."""
    unbounded = console.options.update_width(_UNBOUNDED_WIDTH)
    if (natural := Measurement.get(console, unbounded, table).maximum) <= console.width or not table.columns:
        return natural
    widths = [_natural_width(column) for column in table.columns]
    min_widths = [min(width, _min_width(column)) for width, column in zip(widths, table.columns, strict=True)]
    for column in table.columns:
        column.width = 1
    # Separators between columns take room, too.
    lines = Measurement.get(console, unbounded, table).minimum - len(widths)
    while sum(widths) + lines > console.width and widths != min_widths:
        room = [(width, -place) for place, width in enumerate(widths) if width > min_widths[place]]
        widths[-max(room)[1]] -= 1
    for column, width in zip(table.columns, widths, strict=True):
        column.width = width
    return sum(widths) + lines


def _natural_width(column: Column) -> int:
    """The length of a column's longest line."""
    lines = [line for cell in (column.header, *column.cells) for line in str(cell).splitlines()]
    return max(map(cell_len, lines), default=1)


def _min_width(column: Column) -> int:
    """The longest line of a column of numbers, or of lines that are not folded; else the longest number."""
    lines = [line for cell in column.cells for line in str(cell).splitlines()]
    if column.no_wrap:
        return _natural_width(column)
    if column.justify != "right":
        lines = [token for line in lines for token in line.split() if _is_number(token)]
    tokens = [token for cell in (column.header, *column.cells) for token in str(cell).split()]
    min_text_width = min(max(map(cell_len, tokens), default=1), _MIN_TEXT_WIDTH)
    return max(column.min_width or 0, min_text_width, *map(cell_len, lines))


def _is_number(token: str) -> bool:
    return any(map(str.isdigit, token)) and _NUMBER.fullmatch(token) is not None
