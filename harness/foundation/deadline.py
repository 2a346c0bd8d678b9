"""A time by which loops in Python end: what they do for longer than they may is not finished.

It is the CPU's time of this thread, which stands still while the machine is with others, less what it has compiled.
Stopwatches take that off, too.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_END: ContextVar[float] = ContextVar("deadline", default=math.inf)
_ROOM: ContextVar[float] = ContextVar("room", default=math.inf)
# Seconds that this thread has spent compiling, in wall time and in CPU time.
_COMPILED = ContextVar[tuple[float, float]]("compiled", default=(0.0, 0.0))
_ON_CPU = ContextVar[bool]("on_cpu", default=False)


class OverdueError(Exception):
    """A loop was still running at its deadline, or work of `args[0]` seconds would have been."""


@contextmanager
def within(seconds: float, loading: float = 0.0) -> Iterator[None]:
    """Inside, `check` fails after so many seconds, or at the deadline outside if earlier.

    Args:
        seconds: that work may take.
        loading: seconds that are given in any case, to work that nobody has predicted to take longer than `seconds`.
    """
    end = _END.set(min(_busy_seconds() + max(seconds, loading), _END.get()))
    room = _ROOM.set(min(seconds, _ROOM.get()))
    try:
        yield
    finally:
        _END.reset(end)
        _ROOM.reset(room)


def require(seconds: float) -> None:
    """Raises OverdueError before work that is predicted to take so long, if it may not."""
    if seconds > _ROOM.get():
        raise OverdueError(seconds)


def left() -> float:
    """Seconds until the deadline, 0 beyond it; infinite where there is none."""
    return max(_END.get() - _busy_seconds(), 0.0)


def check() -> None:
    """Raises OverdueError beyond the deadline."""
    if (end := _END.get()) < math.inf and _busy_seconds() > end:
        raise OverdueError


# Number of compilations in progress in this process: whoever terminates it waits for them, so that their results are
# saved.
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
        # Set, not added: times that compilers reported inside this block are already contained in it.
        _COMPILED.set((wall + time.perf_counter() - since, busy + time.thread_time() - busy_since))


def cpu_seconds() -> float:
    """CPU seconds of all threads of this process so far, and of its child processes that have ended."""
    if sys.platform == "win32":  # where os.times() excludes child processes
        return time.process_time()
    import resource

    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


@contextmanager
def budgets_on(*, cpu: bool) -> Iterator[None]:
    """Inside, budgets in seconds are spent by the clock of the CPU, or by the wall's."""
    token = _ON_CPU.set(cpu)
    try:
        yield
    finally:
        _ON_CPU.reset(token)


def on_cpu() -> bool:
    """Whether budgets are spent by the clock of the CPU here."""
    return _ON_CPU.get()


def now() -> float:
    """Seconds on the clock that budgets are spent by, since no particular time."""
    return cpu_seconds() if _ON_CPU.get() else time.perf_counter()


class Stopwatch:
    """Adds up the time that is spent inside it.

    with watch:
        engine.advance(state, steps)

    Attributes:
        seconds: of the wall's clock.
        cpu: of the CPUs, on which all threads of the process, and child processes that end inside, add up.
        spent: those of both that budgets count.
        last, last_cpu, last_spent: of the last call.
        compiled: seconds of the wall that compiling took, which are left out of all others.
    """

    def __init__(self, seconds: float = 0.0, cpu: float = 0.0, *, counts_compilation: bool = False) -> None:
        """From what has been counted already.

        Args:
            seconds, cpu: so far.
            counts_compilation: whether what is compiled or loaded inside (`deadline.compilation`) is time like other.
        """
        self.seconds, self.cpu, self.compiled = seconds, cpu, 0.0
        self.spent = cpu if _ON_CPU.get() else seconds
        self.last = self.last_cpu = self.last_spent = 0.0
        self._counts_compilation = counts_compilation

    def __enter__(self) -> None:
        self._start = self._read()

    def __exit__(self, *_: object) -> None:
        wall, cpu, compiled = self._read()
        self.last, self.last_cpu = wall - self._start[0], cpu - self._start[1]
        self.last_spent = self.last_cpu if _ON_CPU.get() else self.last
        self.seconds += self.last
        self.cpu += self.last_cpu
        self.spent += self.last_spent
        self.compiled += compiled - self._start[2]

    def _read(self) -> tuple[float, float, float]:
        wall, cpu = (0.0, 0.0) if self._counts_compilation else _COMPILED.get()
        return time.perf_counter() - wall, cpu_seconds() - cpu, wall

    @property
    def idle_seconds(self) -> float:
        """Seconds on the clock of budgets in which nothing was computed: others had the machine, or a device was waited
        for."""
        return max(0.0, self.spent - self.cpu)


def _busy_seconds() -> float:
    return time.thread_time() - _COMPILED.get()[1]
