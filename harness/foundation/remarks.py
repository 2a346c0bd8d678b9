"""What is said beside the output of a command."""

from __future__ import annotations

import re
import sys
from functools import cache

# Characters that a terminal obeys, or that turn what stands beside them round; within brackets of an expression.
OBEYED = "\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069"
_OBEYED = re.compile(f"[{OBEYED}]")


def printable(text: str) -> str:
    """A text in which nothing is obeyed: names of files, too, come from others."""
    return _OBEYED.sub("\N{REPLACEMENT CHARACTER}", text)


def format_count(number: int, noun: str) -> str:
    """A number with its noun, "1 cell" or "3 cells"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


@cache
def remark(sentence: str) -> None:
    """Say something once in a process: on standard error, as Hydra turns logging off."""
    print(f"spinbench: {printable(sentence)}", file=sys.stderr)


def left_out(sentence: str) -> None:
    """Say, once in a process, that something is left out, and why."""
    remark(f"left out: {sentence}")
