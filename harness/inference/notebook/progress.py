"""How far an answer is, in one line below a notebook's cell."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from spinbench.inference.budget import Budget
from spinbench.inference.notebook import cell_output

# Seconds of which nothing is shown: a loop over short runs says nothing of them.
PATIENCE = 0.5
THREAD = "spinbench-progress"


@contextmanager
def show_progress(who: str, budget: Budget, counted: Callable[[], int], chains: int) -> Iterator[None]:
    """Follow a run in the output of a notebook's cell; anywhere else, nothing is said.

    Args:
        who: method and backend.
        budget: that is spent.
        counted: samples of each chain so far.
        chains: of the run.
    """
    output = cell_output.of_this_cell()
    if output is None or output.is_taken:
        yield
        return
    line = _Line(who, budget, counted, chains)
    ended = threading.Event()
    watching = threading.Thread(target=_watch, args=(line, output, ended), name=THREAD, daemon=True)
    watching.start()
    try:
        yield
    finally:
        ended.set()
        watching.join()
    if line.seconds >= PATIENCE:
        output.follow(line.at_the_end(), at_once=True)


@contextmanager
def whole(who: str) -> Iterator[Callable[[str], None]]:
    """The same of an answer that takes several runs, of which nothing is said.

    Args:
        who: finds it.

    Yields:
        Takes what is to be said of it.
    """
    output = cell_output.of_this_cell()
    if output is None or output.is_taken:
        yield lambda text: None
        return
    since = time.perf_counter()
    output.is_taken = True
    try:
        yield lambda text: output.follow(f"{who}: {text}")
    finally:
        output.is_taken = False
    output.follow(f"{who}: done after {time.perf_counter() - since:.1f} s", at_once=True)


def _watch(line: _Line, output: cell_output.CellOutput, ended: threading.Event) -> None:
    """A thread, so that there is something to see while a kernel compiles, and no batch waits for a notebook."""
    wait = PATIENCE
    while not ended.wait(wait):
        output.follow(line.now())
        wait = cell_output.EVERY


class _Line:
    """What is said of a run; the arguments are those of `show_progress`."""

    def __init__(self, who: str, budget: Budget, counted: Callable[[], int], chains: int) -> None:
        self._who, self._budget, self._counted, self._chains = who, budget, counted, chains
        self._since = time.perf_counter()
        self._sampling: float | None = None

    @property
    def seconds(self) -> float:
        """Since the run began to be followed."""
        return time.perf_counter() - self._since

    def now(self) -> str:
        """Seconds of a budget begin with the first samples: compiling is none of it."""
        if not self._counted():
            return f"{self._who}: getting ready, {self.seconds:.1f} s"
        if self._sampling is None:
            self._sampling = time.perf_counter()
        spent = f"{time.perf_counter() - self._sampling:.1f} s"
        if self._budget.seconds is None:
            return f"{self._who}: {self._samples()} of {self._budget.samples:,}, {spent}"
        return f"{self._who}: {self._samples()}, {spent} of {self._budget.seconds:g} s"

    def at_the_end(self) -> str:
        """What stays."""
        return f"{self._who}: {self._samples()}, done after {self.seconds:.1f} s"

    def _samples(self) -> str:
        return f"{self._counted():,} samples x {self._chains} chains"
