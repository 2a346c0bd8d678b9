"""Ctrl-C, and signals that ask as politely."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STATUS = 130
"""What a command exits with that was interrupted, as shells have it."""


@contextmanager
def interruptible(*numbers: signal.Signals, late: bool = False) -> Iterator[threading.Event]:
    """Inside, these signals raise KeyboardInterrupt, wherever the main thread is.

    Args:
        numbers: SIGINT and SIGTERM if none are given.
        late: the first one is noted only, as what is inside ends soon; a second one raises.

    Yields:
        Set by the signal itself: libraries that it lands in may turn the KeyboardInterrupt into an error of theirs.
    """
    received = threading.Event()

    def interrupt(number: int, frame: FrameType | None) -> None:
        first = not received.is_set()
        received.set()
        if not (late and first):
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():  # others cannot handle signals, and get none
        yield received
        return
    before = {number: signal.signal(number, interrupt) for number in numbers or (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
