"""Work that is ended when it has taken too many CPU seconds."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from typing import TypeVar
from unittest import SkipTest

# CPU seconds after which what was ended and goes on is ended again.
REPEAT_SECONDS = 0.01
Value = TypeVar("Value")


class DeadlineExceeded(SkipTest):
    """Something took too long."""


def run_with_deadline(seconds: float, task: str, work: Callable[[], Value]) -> Value:
    """What `work` returns, unless it takes more CPU seconds, where the system can tell and Python gets to run between.

    Python drops what is raised while it destroys an object, and anybody may: it is raised again until it gets through.

    Raises:
        Over: it was ended.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        return work()
    done, previous_hook = False, sys.unraisablehook

    def raise_deadline(*_: object) -> None:
        if not done:
            raise DeadlineExceeded(f"{task} takes more than {seconds:.3g} CPU s")

    def ignore_deadline(unraisable: sys.UnraisableHookArgs) -> None:
        if not isinstance(unraisable.exc_value, DeadlineExceeded):
            previous_hook(unraisable)

    before = signal.signal(signal.SIGVTALRM, raise_deadline)
    sys.unraisablehook = ignore_deadline
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, REPEAT_SECONDS)
    try:
        return work()
    finally:
        done = True
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        sys.unraisablehook = previous_hook
