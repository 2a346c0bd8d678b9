"""Texts of others as cells of tables, in which nothing is obeyed by a spreadsheet or a terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Characters that begin a formula in spreadsheets, and the quote that marks a cell as text.
_FORMULA_STARTS = ("=", "+", "-", "@", "'")
_NUMBER = re.compile(r"[+-]\d+(?:\.\d*)?(?:e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


def escape_cell(text: str) -> str:
    """A text of others, as a cell in which no spreadsheet sees a formula; different texts are different cells."""
    escaped = escape_unprintable(text)
    if escaped.startswith(_FORMULA_STARTS) and not _NUMBER.fullmatch(escaped):
        return f"'{escaped}"
    return escaped


def escape_unprintable(text: str) -> str:
    """A text of others on one line, with escapes in place of characters that a terminal obeys or that are none."""
    return "".join(c if c.isprintable() and c != "\\" else c.encode("unicode_escape").decode() for c in text)


def escape_row(values: Sequence[object]) -> list[object]:
    """The cells of a line of a table: texts are escaped, other values stay."""
    return [escape_cell(value) if isinstance(value, str) else value for value in values]
