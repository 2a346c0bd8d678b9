"""Work in a child process, which is ended when its time is over, whatever it is doing."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any, TypeVar

from spinbench.foundation import deadline

Given = TypeVar("Given")
News = TypeVar("News")

_WATCH = 0.25
"""Seconds after which a child looks whether its parent was killed."""
_JOIN = 5.0
"""Seconds that a killed process is waited for."""
_GRACE = 0.2
"""Seconds that one is waited for which may be compiling."""
_IDLE = 0.3
"""Seconds without a compilation after which it is over: what was compiled is written within milliseconds."""
_MAX_COMPILATION = 60.0
"""Seconds after which such a process ends in any case; the slowest kernel takes 10 on a busy machine."""
_PR_SET_PDEATHSIG = 1


class OverdueError(Exception):
    """The time was over; what had been told until then has been handed out."""


class DiedError(Exception):
    """The process ended without a word, as it does where memory runs out; the message says how it ended."""


def last_words(status: int | None) -> str:
    """A sentence on a process that ended with that exit status, which is negative where a signal killed it."""
    if status == -signal.SIGKILL:
        return "its process was killed by SIGKILL, perhaps by the system for want of memory"
    if status is not None and status < 0:
        return f"its process crashed with {signal.Signals(-status).name}"
    return f"its process ended with exit status {status} before it gave an answer"


def aside(
    work: Callable[[Given], Iterator[News]], given: Given, seconds: float, tick: float = 0.25
) -> Iterator[News | None]:
    """What `work(given)` yields, as it comes; None after each `tick` of waiting.

    On Linux the child is a fork, which has at once whatever is loaded and compiled here. Elsewhere forks are not safe,
    and work and what it is given are sent to a fresh interpreter.

    Args:
        work: a function of a module, whose results can be pickled.
        given: its argument.
        seconds: after which the child is killed; one that compiles is left alone until that is done, so that the next
            one finds what it made.
        tick: seconds.

    Raises:
        OverdueError, DiedError: it did not come to its end.
        Exception: what `work` raised.
    """
    here_process = multiprocessing.current_process()
    if here_process.daemon:  # whose children might outlive it, and are forbidden; this one watches its parent
        here_process.daemon = False
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=_serve, args=(there, work, given), daemon=True)  # type: ignore[attr-defined]
    until = time.perf_counter() + seconds
    with warnings.catch_warnings():  # threads of libraries, none of which the child goes on with
        warnings.simplefilter("ignore")
        child.start()
    there.close()
    end, patience = child.kill, _JOIN
    try:
        yield from _told(here, until, tick)
    except OverdueError:
        end, patience = child.terminate, _GRACE
        raise
    except DiedError:
        child.join(_JOIN)
        raise DiedError(last_words(child.exitcode)) from None
    finally:
        if child.is_alive():
            end()
        child.join(patience)
        here.close()


def _told(here: Connection, until: float, tick: float) -> Iterator[Any]:
    while True:
        left = until - time.perf_counter()
        if not here.poll(max(min(left, tick), 0.0)):
            if left <= 0:
                raise OverdueError
            yield None
            continue
        try:
            kind, what = here.recv()
        except EOFError:
            raise DiedError from None
        if kind == "raised":
            raise what
        if kind == "done":
            return
        yield what


def _serve(there: Connection, work: Callable[[Any], Iterator[Any]], given: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interruption is the parent's
    signal.signal(signal.SIGTERM, _end_once_compiled)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with contextlib.suppress(BrokenPipeError):
        try:
            for news in work(given):
                there.send(("news", news))
        except Exception as error:
            there.send(("raised", error))
            return
        there.send(("done", None))


def _end_once_compiled(number: int, frame: FrameType | None) -> None:
    if not deadline.compilers:
        os._exit(128 + number)
    threading.Thread(target=_wait_for_compilers, daemon=True).start()


def _wait_for_compilers() -> None:
    until = time.perf_counter() + _MAX_COMPILATION
    idle_since = time.perf_counter()
    while time.perf_counter() < min(until, idle_since + _IDLE):
        time.sleep(_IDLE / 3)
        if deadline.compilers:
            idle_since = time.perf_counter()
    os._exit(128 + signal.SIGTERM)


def yield_memory_first() -> None:
    """For children: of a machine without memory, this process goes first, not its parent."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def die_with_parent() -> None:
    """For children: on Linux the system kills this process with its parent, also while compiled code runs."""
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    while parent is not None and os.getppid() == parent.pid:
        time.sleep(_WATCH)
    os._exit(1)
