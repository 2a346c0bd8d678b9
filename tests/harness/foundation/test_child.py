"""Work in a child process: its news come as it makes them, and it ends with its time, whatever it does."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from spinbench.errors import ModelError
from spinbench.foundation import deadline
from spinbench.foundation.atomic import alive
from spinbench.foundation.child import DiedError, OverdueError, run_in_child


def count(most: int) -> Iterator[int]:
    yield from range(most)


def go_on_for_ever(first: int) -> Iterator[int]:
    yield first
    while True:
        time.sleep(1000)


def fail(word: str) -> Iterator[int]:
    yield 1
    raise ModelError(word)


def die(status: int) -> Iterator[int]:
    yield 2
    os._exit(status)


def test_news_come_in_their_order_from_another_process() -> None:
    assert [news for news in run_in_child(count, 5, 60.0) if news is not None] == [0, 1, 2, 3, 4]
    assert len({os.getpid(), *(news for news in run_in_child(_process, None, 60.0) if news is not None)}) == 2


def _process(_: None) -> Iterator[int]:
    yield os.getpid()


def test_who_does_not_end_is_ended() -> None:
    news = run_in_child(go_on_for_ever, 7, 2.0, tick=0.1)
    assert next(each for each in news if each is not None) == 7
    assert next(news) is None
    with pytest.raises(OverdueError):
        list(news)


def _compile_slowly(file: str) -> Iterator[int]:
    yield os.getpid()
    deadline.compilers += 1  # as the clock of Numba's compilations says
    time.sleep(5.0)
    Path(file).write_text("compiled")
    deadline.compilers -= 1
    time.sleep(60.0)
    Path(file).write_text("went on")


def test_who_compiles_is_left_to_end_that(tmp_path: Path) -> None:
    file, since = tmp_path / "kernel", time.perf_counter()
    news = run_in_child(_compile_slowly, str(file), 2.0)  # a busy machine takes long to begin a process
    child = next(each for each in news if each is not None)
    with pytest.raises(OverdueError):
        list(news)
    assert time.perf_counter() - since < 4.5
    until = time.perf_counter() + 20
    while alive(child) and time.perf_counter() < until:
        multiprocessing.active_children()  # which takes its exit status
        time.sleep(0.05)
    assert not alive(child)
    assert file.read_text() == "compiled"


def test_what_it_raises_is_raised_here() -> None:
    news = (each for each in run_in_child(fail, "no state", 60.0) if each is not None)
    assert next(news) == 1
    with pytest.raises(ModelError, match="no state"):
        next(news)


def test_a_process_that_dies_is_told() -> None:
    news = (each for each in run_in_child(die, 9, 60.0) if each is not None)
    assert next(news) == 2
    with pytest.raises(DiedError):
        next(news)


def _nested(seconds: float) -> Iterator[int]:
    yield from (news for news in run_in_child(_tell_and_wait, seconds, 60.0) if news is not None)


def _tell_and_wait(seconds: float) -> Iterator[int]:
    yield os.getpid()
    time.sleep(seconds)


def test_children_have_children_which_end_with_them() -> None:
    """Also where the child is killed, and can end nobody."""
    news = run_in_child(_nested, 1000.0, 60.0)
    grandchild = next(each for each in news if each is not None)
    os.kill(multiprocessing.active_children()[0].pid or 0, signal.SIGKILL)
    with pytest.raises(DiedError):
        list(news)
    until = time.perf_counter() + 10
    while _runs(grandchild) and time.perf_counter() < until:
        time.sleep(0.05)
    assert not _runs(grandchild)


def _runs(process: int) -> bool:
    """A dead process that nobody has buried runs no more."""
    if sys.platform != "linux":
        return alive(process)
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
