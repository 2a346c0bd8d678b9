"""What a sweep shows while it runs: a live bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from spinbench.records import Record

PLAIN_WIDTH = 140
"""Columns of output that no terminal bounds."""


def console() -> Console:
    """On standard output."""
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=PLAIN_WIDTH)


class Display:
    """Tells of each cell of a sweep.

    Args:
        output: where to.
        total: how many cells there are.
    """

    def __init__(self, output: Console, total: int) -> None:
        self._output = output
        self._total = total
        self._done = 0
        self._bar = Progress(
            SpinnerColumn(),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
            console=output,
            disable=not output.is_terminal,
        )
        self._task = self._bar.add_task("starting", total=total)

    def __enter__(self) -> Display:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def begin(self, cell: str) -> None:
        """A cell starts."""
        self._bar.update(self._task, description=cell)

    def end(self, cell: str, record: Record | None) -> None:
        """A cell has its record; None: it had a good one from before."""
        self._done += 1
        width = len(str(self._total))
        line = Text(f"[{self._done:>{width}}/{self._total}] {cell}: ")
        line.append(*outcome(record))
        self._output.print(line, soft_wrap=True)
        self._bar.update(self._task, advance=1)


def shown(path: Path) -> str:
    """A path as short as it can be typed here."""
    absolute, here = path.absolute(), Path.cwd()
    return str(absolute.relative_to(here)) if absolute.is_relative_to(here) and absolute != here else str(absolute)


def cell_name(axes: Mapping[str, Any], varied: Mapping[str, Any]) -> str:
    """A cell for people: its axes, and the other settings that vary in the sweep."""
    return ", ".join(
        [f"{axes['method']} on {axes['backend']}", axes["model"], *(f"{key}={value}" for key, value in varied.items())]
    )


def outcome(record: Record | None) -> tuple[str, str]:
    """A record in one line, and its style."""
    if record is None:
        return "measured before", "dim"
    if record["status"] != "ok":
        return f"{record['status']}: {record['error']}", "red" if record["status"] == "failed" else "yellow"
    parts = []
    with contextlib.suppress(KeyError):  # without an exact answer there is no error
        parts.append(f"RMSE {record['metrics']['marginal_rmse']['value']:.2g}")
    result = record["result"]
    parts.append(f"{result['samples']} samples x {result['chains']} chains in {result['seconds']['run']:.3g} s")
    if result["compilation"] == "fresh":
        parts.append(f"compiled in {result['seconds']['compile']:.2g} s")
    return ", ".join(parts), "green"
