"""Python's garbage collector, which looks at all new objects again and again while many are made and none is thrown
away: a third of the time in which a large model file is read."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Inside, it does not run, unless somebody starts it."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()
