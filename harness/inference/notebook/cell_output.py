"""The one output that spinbench has below a cell of a notebook: lines that stay, and what goes on now, in place."""

from __future__ import annotations

import io
import multiprocessing
import sys
import time
import uuid
from typing import Any

# Seconds between two updates with what goes on: notebooks drop what comes faster than they can show.
EVERY = 0.25

_PAGE = '<pre style="white-space:pre;overflow-x:auto;line-height:normal">{code}</pre>'


class CellOutput(io.TextIOBase):
    """Of one execution of a cell; a file, on which what is written stays.

    Args:
        shell: IPython's, which runs in a notebook's kernel.

    Attributes:
        execution: the number of the cell's execution.
        is_taken: whether somebody follows an answer who is not to be interrupted by the runs that it takes.
    """

    def __init__(self, shell: Any) -> None:
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


def of_this_cell() -> CellOutput | None:
    """Of the cell that a notebook is executing; None where this is no notebook's kernel, but a script, say."""
    global _latest
    shell = _shell()
    if shell is None:
        return None
    if _latest is None or _latest.execution != shell.execution_count:
        _latest = CellOutput(shell)
    return _latest


def _shell() -> Any:
    """Whoever runs a notebook has loaded IPython; the shell of a terminal has no kernel, a forked child no reader."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None or multiprocessing.parent_process() else ipython.get_ipython()
    return shell if getattr(shell, "kernel", None) is not None else None
