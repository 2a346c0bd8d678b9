"""Signals that interrupt, and what libraries make of them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading

import pytest

from spinbench import cli
from spinbench.foundation import deadline
from spinbench.foundation.interruptions import interruptible, run_interruptibly


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
