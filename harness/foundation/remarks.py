"""What is said beside the output of a command."""

from __future__ import annotations

import sys
from functools import cache


@cache
def left_out(sentence: str) -> None:
    """Say, once in a process, that something is left out, and why: on standard error, as Hydra turns logging off."""
    print(f"spinbench: left out: {sentence}", file=sys.stderr)
