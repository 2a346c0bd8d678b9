"""Work in a child process, which ends with its time whatever it does, and signals that interrupt."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from spinbench import cli
from spinbench.errors import ModelError
from spinbench.foundation import deadline
from spinbench.foundation.atomic import alive
from spinbench.foundation.child import DiedError, OverdueError, run_in_child
from spinbench.foundation.interruptions import interruptible, run_interruptibly


def count(most: int) -> Iterator[int]:
    yield from range(most)


def act(how: str) -> Iterator[int]:
    """Say who it is, and then do what is asked."""
    yield os.getpid()
    if how == "fail":
        raise ModelError("no state")
    if how == "die":
        os._exit(9)
    if how == "wait":
        time.sleep(1000)
    if how == "sleep":
        time.sleep(1.0)
    while how == "compute":
        pass


def nest(how: str) -> Iterator[int]:
    yield from (news for news in run_in_child(act, how, 60.0) if news is not None)


def begin(work: Any, how: Any, seconds: float, **options: Any) -> tuple[int, Iterator[Any]]:
    """The process that does it, and the rest of its news."""
    news = run_in_child(work, how, seconds, **options)
    return next(each for each in news if each is not None), news


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.perf_counter() + 20
    while not condition():
        assert time.perf_counter() < until
        multiprocessing.active_children()  # which takes exit statuses
        time.sleep(0.05)


def test_news_come_in_their_order_from_another_process() -> None:
    assert [news for news in run_in_child(count, 5, 60.0) if news is not None] == [0, 1, 2, 3, 4]
    assert begin(act, "well", 60.0)[0] != os.getpid()


@pytest.mark.parametrize(
    ("how", "seconds", "error"),
    [("wait", 1.0, OverdueError), ("fail", 60.0, ModelError), ("die", 60.0, DiedError)],
)
def test_how_it_ends_is_told(how: str, seconds: float, error: type[Exception]) -> None:
    child, news = begin(act, how, seconds, tick=0.1)
    with pytest.raises(error, match="no state" if how == "fail" else None):
        list(news)
    wait_until(lambda: not alive(child))


def test_seconds_of_the_cpu_are_those_that_the_child_computes() -> None:
    with deadline.budgets_on(cpu=True):
        assert len([news for news in run_in_child(act, "sleep", 0.5) if news is not None]) == 1
        child, news = begin(act, "compute", 0.5, tick=0.05)
        before = deadline.cpu_seconds()
        with pytest.raises(OverdueError):
            list(news)
    wait_until(lambda: not alive(child))
    assert deadline.cpu_seconds() - before >= 0.45  # a child that has ended counts


def test_children_have_children_which_end_with_them() -> None:
    """Also where the child is killed, and can end nobody."""
    grandchild, news = begin(nest, "wait", 60.0)
    os.kill(multiprocessing.active_children()[0].pid or 0, signal.SIGKILL)
    with pytest.raises(DiedError):
        list(news)
    wait_until(lambda: not _runs(grandchild))


def _runs(process: int) -> bool:
    """A dead process that nobody has buried runs no more."""
    if sys.platform != "linux":
        return alive(process)
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def interrupt(number: int = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)
    for _ in range(1000):  # handlers run between instructions
        pass


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_is_inside_ends(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), interruptible() as received:
        interrupt(number)
    assert received.is_set()
    assert signal.getsignal(number) is before


def test_what_ends_soon_is_interrupted_by_a_second_signal() -> None:
    with interruptible(late=True) as received:
        assert not received.is_set()
        interrupt()
        assert received.is_set()
        with pytest.raises(KeyboardInterrupt):
            interrupt(signal.SIGTERM)


def test_an_interrupt_does_not_wait_for_a_long_call() -> None:
    stopped, ended = threading.Event(), threading.Event()

    def action() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        ended.set() if stopped.wait(20.0) else None

    with pytest.raises(KeyboardInterrupt), interruptible():  # a process of a pool may ignore the signal
        run_interruptibly(action, stopped.set)
    assert ended.wait(20.0)


def test_results_errors_and_what_was_compiled_come_back() -> None:
    def compile_and_answer() -> int:
        deadline.add_compilation(2.0, 1.0)
        return 7

    wall, busy = deadline.compilation()
    assert run_interruptibly(compile_and_answer) == 7
    assert deadline.compilation() == (wall + 2.0, busy + 1.0)
    with pytest.raises(ZeroDivisionError):
        run_interruptibly(lambda: 1 // 0)


def test_threads_leave_signals_alone() -> None:
    found = []

    def run() -> None:
        with interruptible() as received:
            found.append(received.is_set())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [False]


@pytest.mark.parametrize("interrupted", [True, False])
def test_an_import_that_was_interrupted_is_no_error(interrupted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of modules in C, which turn the KeyboardInterrupt into an ImportError; other errors are defects."""

    def importing(words: list[str]) -> int:
        with contextlib.suppress(KeyboardInterrupt):
            if interrupted:
                interrupt()
        raise ImportError("initialization failed")

    monkeypatch.setattr(cli, "_dispatch", importing)
    with contextlib.nullcontext() if interrupted else pytest.raises(ImportError):
        assert cli.main(["list"]) == 130


INTERRUPT = "os.kill(os.getpid(), signal.SIGINT)"
WHILE_IMPORTED = f"sys.meta_path.insert(0, type('', (), dict(find_spec=lambda *words: {INTERRUPT})))"
WHILE_SHUT_DOWN = f"atexit.register(lambda: {INTERRUPT})"


@pytest.mark.parametrize(
    ("moment", "status", "error"),
    [(WHILE_IMPORTED, 130, "spinbench: interrupted\n"), (WHILE_SHUT_DOWN, -signal.SIGINT, "")],
    ids=["imported", "shut down"],
)
def test_a_command_is_interrupted_without_a_traceback(moment: str, status: int, error: str) -> None:
    """Before the command itself runs, and after."""
    program = f"import atexit, os, signal, sys\nfrom spinbench.__main__ import main\n{moment}\nsys.exit(main())"
    done = subprocess.run([sys.executable, "-c", program, "list"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (status, error)
