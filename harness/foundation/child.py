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
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from types import FrameType
from typing import Any, Generic, TypeVar

from spinbench.foundation import deadline

Given = TypeVar("Given")
Answer = TypeVar("Answer")

# Seconds between a child's checks whether its parent was killed.
_WATCH = 0.25
# Longest wait in seconds for a killed process to end.
_JOIN = 5.0
# Longest wait in seconds for the end of a process that may be compiling.
_GRACE = 0.2
# Seconds without a compilation after which compiling counts as finished: results are written within milliseconds.
_IDLE = 0.3
# Longest time in seconds that a terminated process may go on compiling; the slowest kernel takes 10 on a busy machine.
_MAX_COMPILATION = 60.0
# Seconds between readings of the children's CPU time, which systems report in hundredths.
_LOOK = 0.02
# Children are abandoned after this many seconds of wall time, plus this many for each CPU second they may use: one of
# 20 programs on a core still gets its share, and a child that waits for a lock does not block its parent for ever.
_STALLED, _STALLED_PER_SECOND = 30.0, 20.0
# Names in `psutil` of the CPU times of a process and of its ended children.
_CPU_TIMES = "user", "system", "children_user", "children_system"
# Constant of <linux/prctl.h>.
_PR_SET_PDEATHSIG = 1


class OverdueError(Exception):
    """The time was over; the answers until then have been handed out."""


class EndedError(Exception):
    """There are no more answers."""


class DiedError(Exception):
    """The process ended without a word, as it does where memory runs out; the message says how it ended."""


def last_words(status: int | None) -> str:
    """A sentence on a process that ended with that exit status, which is negative where a signal killed it."""
    if status == -signal.SIGKILL:
        return "its process was killed by SIGKILL, perhaps by the system for want of memory"
    if status is not None and status < 0:
        return f"its process crashed with {signal.Signals(-status).name}"
    return f"its process ended with exit status {status} before it gave an answer"


class Child(Generic[Answer]):
    """A process that gives answers.

    On Linux it is a fork, which has at once whatever is loaded and compiled here. Elsewhere forks are not safe, and
    work and what it is given are sent to a fresh interpreter.

    Args:
        work: yields answers, which can be pickled.
        given: its argument.
        fork: whether it is a fork in any case.

    Attributes:
        pipe: has something to read when there is an answer.
    """

    def __init__(
        self, work: Callable[[Given], Iterator[Answer]], argument: Given, *, fork: bool = sys.platform == "linux"
    ) -> None:
        here_process = multiprocessing.current_process()
        # Daemonic processes may not have children, which could outlive them; these children watch their parent and end
        # with it.
        if here_process.daemon:
            here_process.daemon = False
        context = multiprocessing.get_context("fork" if fork else "spawn")
        self.pipe, sender = context.Pipe(duplex=False)
        arguments = sender, work, argument, deadline.on_cpu()
        self._process = context.Process(target=_serve, args=arguments, daemon=True)  # type: ignore[attr-defined]
        self._begun, self._cpu_seconds = time.perf_counter(), 0.0
        # Python warns when a process with threads forks; the child does not use the threads of libraries.
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r".*fork\(\)")
            self._process.start()
        sender.close()

    @property
    def alive(self) -> bool:
        """Whether nobody has closed it."""
        return not self.pipe.closed

    def poll(self, seconds: float) -> bool:
        """Whether there is something for `answer` within so many seconds of wall-clock."""
        return self.pipe.poll(max(seconds, 0.0))

    def cpu_seconds(self) -> float:
        """CPU seconds so far of the process, and of its children that have ended; the last that could be read."""
        import psutil

        with contextlib.suppress(psutil.Error):
            times = psutil.Process(self._process.pid).cpu_times()
            self._cpu_seconds = sum(getattr(times, name, 0.0) for name in _CPU_TIMES)
        return self._cpu_seconds

    def spent_seconds(self) -> float:
        """Seconds since it began on the clock of budgets: those that it used of the CPU, or of wall-clock."""
        return self.cpu_seconds() if deadline.on_cpu() else time.perf_counter() - self._begun

    def answer(self) -> Answer:
        """The next answer, as soon as there is one.

        Raises:
            EndedError: there are no more.
            DiedError: the process ended without a word.
            Exception: what `work` raised.
        """
        try:
            kind, content = self.pipe.recv()
        except EOFError:
            self._process.join(_JOIN)
            raise DiedError(last_words(self._process.exitcode)) from None
        if kind == "raised":
            raise content
        if kind == "end":
            raise EndedError
        return content  # type: ignore[no-any-return]

    def close(self, *, once_compiled: bool = False) -> None:
        """Kill it; `once_compiled`, only when what it compiles is done, so that the next one finds it."""
        if self._process.is_alive():
            if once_compiled:
                self._process.terminate()
            else:
                self._process.kill()
        self._process.join(_GRACE if once_compiled else _JOIN)
        self.pipe.close()


def run_in_child(
    work: Callable[[Given], Iterator[Answer]], argument: Given, seconds: float, tick: float = 0.25
) -> Iterator[Answer | None]:
    """What `work(given)` yields in a `Child`, as it comes; None after each `tick` of waiting.

    Args:
        work: a function of a module, whose results can be pickled.
        argument: its argument.
        seconds: after which the child is ended, on the clock of budgets (`deadline.now`).
        tick: seconds of wall-clock.

    Raises:
        OverdueError, DiedError: it did not come to its end.
        Exception: what `work` raised.
    """
    child, overdue = Child(work, argument), False
    try:
        while not overdue:
            left = seconds - child.spent_seconds()
            if child.poll(min(left, tick)):
                yield child.answer()
            elif left > 0:
                yield None
            else:
                overdue = True
        raise OverdueError
    except EndedError:
        return
    finally:
        child.close(once_compiled=overdue)


def first_ready(children: Sequence[Child[Any]], seconds: float) -> list[int]:
    """Which children have something to read, as soon as one has, or none after so many seconds on the clock of budgets.

    By the CPU's that is what the busiest of them uses.
    """
    pipes = [child.pipe for child in children]
    ready = _wait_on_cpu(children, seconds) if deadline.on_cpu() else wait(pipes, max(seconds, 0.0))
    return [number for number, pipe in enumerate(pipes) if pipe in ready]


def _wait_on_cpu(children: Sequence[Child[Any]], seconds: float) -> list[Any]:
    ends = [child.cpu_seconds() + seconds for child in children]
    give_up = time.perf_counter() + _STALLED + _STALLED_PER_SECOND * max(seconds, 0.0)
    while not (ready := wait([child.pipe for child in children], _LOOK)):
        is_over = any(child.cpu_seconds() >= end for child, end in zip(children, ends, strict=True))
        if is_over or time.perf_counter() > give_up:
            break
    return ready


def _serve(sender: Connection, work: Callable[[Given], Iterator[object]], argument: Given, on_cpu: bool) -> None:
    # Interruptions are handled by the parent.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end_once_compiled)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with contextlib.suppress(BrokenPipeError), deadline.budgets_on(cpu=on_cpu):
        try:
            for answer in work(argument):
                sender.send(("answer", answer))
        except Exception as error:
            sender.send(("raised", error))
        else:
            sender.send(("end", None))


def _end_once_compiled(number: int, frame: FrameType | None) -> None:
    if not deadline.compilers:
        os._exit(128 + number)
    # A separate thread waits, so that the main thread can finish its compilation after the handler returns.
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
