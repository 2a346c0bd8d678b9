"""Work in a child process: its news come as it makes them, and it ends with its time, whatever it does."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from spinbench.errors import ModelError
from spinbench.foundation import deadline
from spinbench.foundation.atomic import alive
from spinbench.foundation.child import DiedError, OverdueError, run_in_child


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
