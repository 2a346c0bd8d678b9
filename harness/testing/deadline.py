"""Work that is ended when it has taken too many CPU seconds."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from typing import TypeVar
from unittest import SkipTest

AGAIN = 0.01
"""CPU seconds after which what was ended and goes on is ended again."""
Value = TypeVar("Value")


class Over(SkipTest):
    """Something took too long."""


def at_most(seconds: float, what: str, work: Callable[[], Value]) -> Value:
    """What `work` returns, unless it takes more CPU seconds, where the system can tell and Python gets to run between.

    Python drops what is raised while it destroys an object, and anybody may: it is raised again until it gets through.

    Raises:
        Over: it was ended.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        return work()
    done, dropped = False, sys.unraisablehook

    def end(*_: object) -> None:
        if not done:
            raise Over(f"{what} takes more than {seconds:.3g} CPU s")

    def drop(unraisable: sys.UnraisableHookArgs) -> None:
        if not isinstance(unraisable.exc_value, Over):
            dropped(unraisable)

    before = signal.signal(signal.SIGVTALRM, end)
    sys.unraisablehook = drop
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, AGAIN)
    try:
        return work()
    finally:
        done = True
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        sys.unraisablehook = dropped
