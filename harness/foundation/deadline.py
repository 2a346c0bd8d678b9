"""A time by which loops in Python end: what they do for longer than they may is not finished.

It is the CPU's time of this thread, which stands still while the machine is with others, less what it has compiled.
Clocks of runs take that off, too.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_END: ContextVar[float] = ContextVar("deadline", default=math.inf)
_COMPILED = ContextVar[tuple[float, float]]("compiled", default=(0.0, 0.0))


class OverdueError(Exception):
    """A loop was still running at its deadline."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Inside, `check` fails after so many seconds, or at the deadline outside if earlier."""
    token = _END.set(min(_now() + seconds, _END.get()))
    try:
        yield
    finally:
        _END.reset(token)


def left() -> float:
    """Seconds until the deadline, 0 beyond it; infinite where there is none."""
    return max(_END.get() - _now(), 0.0)


def check() -> None:
    """Raises OverdueError beyond the deadline."""
    if (end := _END.get()) < math.inf and _now() > end:
        raise OverdueError


compilers = 0
"""Compilations that this process has begun and not ended: whoever would end it lets them end, so that what they made is
kept for the next one."""


def compiled(seconds: float, busy: float) -> None:
    """So much of this thread's time, on the wall and on the CPU, was compilation, which deadlines do not count."""
    wall, before = _COMPILED.get()
    _COMPILED.set((wall + seconds, before + busy))


def compilation() -> tuple[float, float]:
    """Seconds that this thread has compiled so far, on the wall and on the CPU."""
    return _COMPILED.get()


@contextmanager
def compiling() -> Iterator[None]:
    """All that is done inside is compilation, or loading of what was compiled."""
    (wall, busy), since, busy_since = _COMPILED.get(), time.perf_counter(), time.thread_time()
    try:
        yield
    finally:  # in place of what compilers themselves have told meanwhile
        _COMPILED.set((wall + time.perf_counter() - since, busy + time.thread_time() - busy_since))


def _now() -> float:
    return time.thread_time() - _COMPILED.get()[1]
