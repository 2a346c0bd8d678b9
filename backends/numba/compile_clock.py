"""How long Numba has compiled in this process, as Numba's own events tell; deadlines do not count it."""

from __future__ import annotations

import time
from functools import cache

from numba.core import event

from spinbench.foundation import deadline


class _Clock(event.Listener):
    """Adds up compilations; one that another asks for lies within it."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0
        self._since = self._busy_since = 0.0

    def on_start(self, event: event.Event) -> None:
        deadline.compilers += 1
        if not self._depth:
            self._since, self._busy_since = time.perf_counter(), time.thread_time()
        self._depth += 1

    def on_end(self, event: event.Event) -> None:
        deadline.compilers -= 1
        self._depth -= 1
        if not self._depth:
            took = time.perf_counter() - self._since
            self.seconds += took
            deadline.compiled(took, time.thread_time() - self._busy_since)


_CLOCK = _Clock()


@cache
def count_compilation() -> None:
    """From now on."""
    event.register("numba:compile", _CLOCK)


def compile_seconds() -> float:
    """Since it is counted."""
    return _CLOCK.seconds
