"""How long Numba has compiled in this process, as its own events tell, since deadlines do not count that; and a search
for SciPy's BLAS of a sixth of a second, for which Numba looks when anything is compiled or loaded, and no kernel needs.

The search is put off by replacing a function of Numba's while a module is imported. A Numba without a function of that
name loses nothing but the time, and `tests/backends/numba/test_private_names.py` says so.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from numba.core import event
from numba.np import linalg

from spinbench.foundation import deadline


class _Clock(event.Listener):
    """Adds up compilations; one that another asks for lies within it."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0
        self._since = self._busy_since = 0.0

    def on_start(self, event: event.Event) -> None:
        deadline.compilers += 1
        self.start()

    def on_end(self, event: event.Event) -> None:
        deadline.compilers -= 1
        self.stop()

    def start(self) -> None:
        """From now on time counts."""
        if not self._depth:
            self._since, self._busy_since = time.perf_counter(), time.thread_time()
        self._depth += 1

    def stop(self) -> None:
        """It does no longer, unless it was started twice."""
        self._depth -= 1
        if not self._depth:
            took = time.perf_counter() - self._since
            self.seconds += took
            # Both clocks: a deadline is in seconds of wall time or of CPU time, and compilation is subtracted on the
            # same clock.
            deadline.add_compilation(took, time.thread_time() - self._busy_since)


_CLOCK = _Clock()


@contextmanager
def wait_as_compilation() -> Iterator[None]:
    """What is waited for inside is another process's compilation, and counts like one of this process."""
    _CLOCK.start()
    try:
        yield
    finally:
        _CLOCK.stop()


@cache
def count_compilation() -> None:
    """From now on."""
    event.register("numba:compile", _CLOCK)


def compile_seconds() -> float:
    """Since it is counted."""
    return _CLOCK.seconds


_LINALG: Any = linalg


@cache
def look_for_blas_late() -> None:
    """Import Numba's array functions without it. Numba looks again where it compiles a product of matrices."""
    # A Numba version without this function has no such check and is left as it is.
    look = getattr(_LINALG, "ensure_blas", None)
    _LINALG.ensure_blas = lambda: None
    try:
        from numba.np import arraymath  # noqa: F401  # asks when it is imported
    finally:
        _LINALG.ensure_blas = look
