"""A time by which loops in Python end: what they do for longer than they may is not finished.

It is the CPU's time of this thread, which stands still while the machine is with others, less what it has compiled.
Stopwatches take that off, too.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_END: ContextVar[float] = ContextVar("deadline", default=math.inf)
# Seconds of this thread, on the wall and on the CPU.
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


# Compilations that this process has begun and not ended: whoever would end it lets them end, so that what they made is
# kept for the next one.
compilers = 0


def add_compilation(seconds: float, busy: float) -> None:
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
    finally:
        # In place of what compilers themselves have told meanwhile.
        _COMPILED.set((wall + time.perf_counter() - since, busy + time.thread_time() - busy_since))


class Stopwatch:
    """Adds up the time that is spent inside it.

    with watch:
        engine.advance(state, steps)

    Attributes:
        seconds: of the wall's clock.
        cpu: of the CPUs, on which all threads of the process add up.
        last, last_cpu: of the last call.
        compiled: seconds of the wall that compiling took, which are left out of all others.
    """

    def __init__(self, seconds: float = 0.0, cpu: float = 0.0, *, counts_compilation: bool = False) -> None:
        """From what has been counted already.

        Args:
            seconds, cpu: so far.
            counts_compilation: whether what is compiled or loaded inside (`deadline.compilation`) is time like other.
        """
        self.seconds, self.cpu, self.last, self.last_cpu, self.compiled = seconds, cpu, 0.0, 0.0, 0.0
        self._counts_compilation = counts_compilation

    def __enter__(self) -> None:
        self._start = self._read()

    def __exit__(self, *_: object) -> None:
        self.last, self.last_cpu, compiled = (now - then for now, then in zip(self._read(), self._start, strict=True))
        self.seconds += self.last
        self.cpu += self.last_cpu
        self.compiled += compiled

    def _read(self) -> tuple[float, float, float]:
        wall, cpu = (0.0, 0.0) if self._counts_compilation else compilation()
        return time.perf_counter() - wall, time.process_time() - cpu, wall

    @property
    def idle_seconds(self) -> float:
        """Seconds in which nothing was computed: others had the machine, or a device was waited for."""
        return max(0.0, self.seconds - self.cpu)


def _now() -> float:
    return time.thread_time() - _COMPILED.get()[1]
