"""Ctrl-C, and signals that ask as politely."""

from __future__ import annotations

import contextvars
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

T = TypeVar("T")

# Exit status of an interrupted command, as in shells (128 + SIGINT).
STATUS = 130


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

    # Python delivers signals to the main thread only.
    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    before = {number: signal.signal(number, interrupt) for number in numbers or (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_interruptibly(action: Callable[[], T], stop: Callable[[], None] = lambda: None) -> T:
    """What the action returns, which runs in a thread so that an interrupt reaches the caller at once.

    Python handles signals between bytecodes of the main thread, so that within compiled code they would wait for its
    end; the action has to free Python's lock.

    Args:
        action: to run.
        stop: called when the caller is interrupted, so that the action ends soon.

    Raises:
        BaseException: what the action raised.
    """
    outcome: list[tuple[T | None, BaseException | None]] = []
    context = contextvars.copy_context()

    def run() -> None:
        try:
            outcome.append((context.run(action), None))
        except BaseException as error:
            outcome.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    try:
        thread.start()
        while thread.is_alive():
            thread.join(0.05)
    except BaseException:
        stop()
        raise
    # Context variables that the thread set, such as the seconds of compilation, are copied back.
    for variable, value in context.items():
        if variable.get(None) is not value:
            variable.set(value)
    result, error = outcome[0]
    if error is not None:
        raise error
    return result  # type: ignore[return-value]
