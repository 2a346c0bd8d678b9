"""How far an answer is, in one line below a notebook's cell."""

from __future__ import annotations

import io
import multiprocessing
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from spinbench.inference.budget import Budget

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

# Seconds before a progress line appears: a loop over short runs shows none.
PATIENCE = 0.5
THREAD = "spinbench-progress"
# Seconds between updates: notebooks drop faster ones.
EVERY = 0.25

_PAGE = '<pre style="white-space:pre;overflow-x:auto;line-height:normal">{code}</pre>'


@contextmanager
def show_progress(who: str, budget: Budget, counted: Callable[[], int], chains: int) -> Iterator[None]:
    """Follow a run in the output of a notebook's cell; anywhere else, nothing is said.

    Args:
        who: method and backend.
        budget: that is spent.
        counted: samples of each chain so far.
        chains: of the run.
    """
    output = current_cell_output()
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
    output = current_cell_output()
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


def _watch(line: _Line, output: CellOutput, ended: threading.Event) -> None:
    """A thread, so that there is something to see while a kernel compiles, and no batch waits for a notebook."""
    wait = PATIENCE
    while not ended.wait(wait):
        output.follow(line.now())
        wait = EVERY


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


class CellOutput(io.TextIOBase):
    """Of one execution of a cell; a file, on which what is written stays.

    Args:
        shell: IPython's, which runs in a notebook's kernel.

    Attributes:
        execution: the number of the cell's execution.
        is_taken: whether somebody follows an answer who is not to be interrupted by the runs that it takes.
    """

    def __init__(self, shell: InteractiveShell) -> None:
        self.execution, self.is_taken = shell.execution_count, False
        self._shell = shell
        self._name = uuid.uuid4().hex
        self._told, self._following = "", ""
        self._shown, self._due = False, 0.0

    def write(self, text: str) -> int:
        """Add what stays; ANSI codes become colours."""
        self._told += text
        self._show()
        return len(text)

    def follow(self, text: str, *, at_once: bool = False) -> None:
        """Say what goes on, in place of what was said before; soon after that only if it has to be `at_once`."""
        self._following = text
        if at_once or time.monotonic() >= self._due:
            self._show()

    def _show(self) -> None:
        from rich.console import Console
        from rich.text import Text

        text = Text.from_ansi(f"{self._told}{self._following}".rstrip("\n"))
        paper = Console(file=io.StringIO(), record=True, force_jupyter=False, width=max(len(text.plain), 1))
        paper.print(text, soft_wrap=True)
        bundle = {"text/plain": text.plain, "text/html": paper.export_html(inline_styles=True, code_format=_PAGE)}
        place = {"display_id": self._name}
        self._shell.display_pub.publish(bundle, {}, transient=place, update=self._shown)
        self._shown, self._due = True, time.monotonic() + EVERY


_latest: CellOutput | None = None


def current_cell_output() -> CellOutput | None:
    """Of the cell that a notebook is executing; None where this is no notebook's kernel, but a script, say."""
    global _latest
    ipython = sys.modules.get("IPython")
    # Whoever runs a notebook has loaded IPython; a forked child has no reader.
    if ipython is None or multiprocessing.parent_process():
        return None
    shell = ipython.get_ipython()
    if getattr(shell, "kernel", None) is None:  # a terminal's
        return None
    if _latest is None or _latest.execution != shell.execution_count:
        _latest = CellOutput(shell)
    return _latest
