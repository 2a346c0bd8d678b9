"""How long Numba has compiled in this process, as Numba's own events tell; deadlines do not count it.

Meanwhile Python's garbage collector rests.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from functools import cache

from numba.core import event

from spinbench.foundation import deadline
from spinbench.models.files.garbage import uncollected


class _Clock(event.Listener):
    """Adds up compilations, of which Numba makes one at a time; one that another asks for lies within it."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0
        self._since = self._busy_since = 0.0
        self._around = ExitStack()

    def on_start(self, event: event.Event) -> None:
        if not self._depth:
            self._around.enter_context(uncollected())
            self._since, self._busy_since = time.perf_counter(), time.thread_time()
        self._depth += 1

    def on_end(self, event: event.Event) -> None:
        self._depth -= 1
        if not self._depth:
            took = time.perf_counter() - self._since
            self.seconds += took
            deadline.compiled(took, time.thread_time() - self._busy_since)
            self._around.close()


_CLOCK = _Clock()


@cache
def count_compilation() -> None:
    """From now on."""
    event.register("numba:compile", _CLOCK)


def compile_seconds() -> float:
    """Since it is counted."""
    return _CLOCK.seconds
