"""What is said beside the output of a command, and texts of others, in which nothing is obeyed."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from spinbench.errors import UnknownNameError

# Control characters and characters that change the direction of text; for use within brackets of a regular expression.
OBEYED = "\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069"
_OBEYED = re.compile(f"[{OBEYED}]")
# Characters that begin a formula in spreadsheets, and the quote that marks a cell as text.
_FORMULA_STARTS = ("=", "+", "-", "@", "'")
_NUMBER = re.compile(r"[+-]\d+(?:\.\d*)?(?:e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


def printable(text: str) -> str:
    """A text in which nothing is obeyed: names of files, too, come from others."""
    return _OBEYED.sub("\N{REPLACEMENT CHARACTER}", text)


def format_count(number: int, noun: str) -> str:
    """A number with its noun, "1 cell" or "3 cells"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def format_seconds(seconds: float) -> str:
    """A duration to two digits, "0.31 s", "151 s" or "3 h"."""
    if seconds >= 1e9:
        return "more than 30 years"
    if seconds >= 7200:
        return f"{seconds / 3600:.0f} h"
    return f"{seconds:.0f} s" if seconds >= 100 else f"{seconds:.2g} s"


@cache
def remark(sentence: str) -> None:
    """Say something once in a process: on standard error, as Hydra turns logging off."""
    print(f"spinbench: {printable(sentence)}", file=sys.stderr)


def left_out(sentence: str) -> None:
    """Say, once in a process, that something is left out, and why."""
    remark(f"left out: {sentence}")


def unknown_name(
    kind: str, name: str, allowed: Iterable[str], removed: Mapping[str, str] | None = None
) -> UnknownNameError:
    """The error for a name that does not exist, with the closest ones that do.

    Args:
        kind: says what it should name.
        name: that was given.
        allowed: those that there are.
        removed: those that there were, and what to do instead.
    """
    # Here and not above: only a misspelt command needs it.
    import difflib

    allowed, removed = list(allowed), removed or {}
    if name in removed:
        return UnknownNameError(f"no {kind} is named {name!r} any more; {removed[name]}")
    close = difflib.get_close_matches(name, allowed, n=3, cutoff=0.5)
    hint = f"known: {', '.join(allowed) or 'none'}"
    if close:
        hint = f"did you mean {' or '.join(close)}?"
    return UnknownNameError(f"no {kind} is named {name!r}; {hint}")


def plus_minus(error: float | None) -> str:
    """ " ± 0.01" behind a number; empty where its error is not known."""
    return "" if error is None else f" ± {error:.2g}"


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
