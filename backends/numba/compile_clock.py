"""How long Numba has compiled in this process, as Numba's own events tell."""

from __future__ import annotations

import time

from numba.core import event


class _Clock(event.Listener):
    """Adds up compilations; one that another asks for lies within it."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0
        self._since = 0.0

    def on_start(self, event: event.Event) -> None:
        if not self._depth:
            self._since = time.perf_counter()
        self._depth += 1

    def on_end(self, event: event.Event) -> None:
        self._depth -= 1
        if not self._depth:
            self.seconds += time.perf_counter() - self._since


_CLOCK = _Clock()
event.register("numba:compile", _CLOCK)


def compile_seconds() -> float:
    """Since this module was imported."""
    return _CLOCK.seconds
