"""A time by which loops in Python end: what they do for longer than they may is not finished."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_END: ContextVar[float] = ContextVar("deadline", default=math.inf)


class OverdueError(Exception):
    """A loop was still running at its deadline."""


@contextmanager
def at(end: float) -> Iterator[None]:
    """Inside, `check` fails when the clock `perf_counter` stands at `end`, or at the deadline outside if earlier."""
    token = _END.set(min(end, _END.get()))
    try:
        yield
    finally:
        _END.reset(token)


def check() -> None:
    """Raises OverdueError beyond the deadline."""
    if (end := _END.get()) < math.inf and time.perf_counter() > end:
        raise OverdueError
