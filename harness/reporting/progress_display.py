"""What a sweep shows while it runs: a live bar on a terminal and in a notebook, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from spinbench.foundation.remarks import format_seconds
from spinbench.foundation.trees import flatten
from spinbench.inference.notebook.progress import CellOutput, current_cell_output
from spinbench.measuring.records import RecordError, read_record
from spinbench.reporting.wide_console import WideConsole

if TYPE_CHECKING:
    from spinbench.measuring import record_parts, record_types

# Width of output that does not go to a terminal.
PLAIN_WIDTH = 140
# Seconds between checks for records that a launcher's processes have written.
POLL_SECONDS = 0.5
# Number of the newest cells that a notebook lists above the bar.
LAST_LINES = 8


def console() -> Console:
    """On standard output, in a notebook the one output of its cell; brackets, of paths say, are no markup."""
    # rich's own notebook support turns each line into an output of its own.
    if (notebook_output := current_cell_output()) is not None:
        plain: dict[str, object] = {"force_terminal": False, "force_jupyter": False, "color_system": "standard"}
        return WideConsole(file=notebook_output, highlight=False, markup=False, width=PLAIN_WIDTH, **plain)  # type: ignore[arg-type]
    terminal = WideConsole(highlight=False, markup=False)
    if terminal.is_terminal:
        return terminal
    return WideConsole(highlight=False, markup=False, width=PLAIN_WIDTH)


def print_line(text: str, style: str = "") -> None:
    """Print a line, however long; it may be copied from the terminal."""
    console().print(Text(text, style=style), soft_wrap=True)


def print_parts(parts: Iterable[RenderableType]) -> None:
    """Print tables and texts with an empty line before each."""
    output = console()
    for part in parts:
        output.print()
        output.print(part, soft_wrap=isinstance(part, str | Text))


def new_table(
    title: str | None,
    columns: Iterable[str],
    rows: Iterable[Iterable[str | Text]] = (),
    *,
    number_columns: Collection[str] = (),
    unfolded_columns: Collection[str] = (),
    **options: Any,
) -> Table:
    """A table.

    Args:
        title: above it, on the left.
        columns: their headings.
        rows: their cells; more can be added.
        number_columns: columns on the right, which are never folded.
        unfolded_columns: others that are not folded.
        options: further arguments of `rich.table.Table`.
    """
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, **options)
    for name in columns:
        no_wrap = name in number_columns or name in unfolded_columns
        table.add_column(name, justify="right" if name in number_columns else "left", no_wrap=no_wrap, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


class Display:
    """Tells of each cell of a sweep.

    Args:
        output: where to.
        total: how many cells there are.
        auto_refresh: whether a thread draws the bar; else `start_cell` does, so that processes can be forked meanwhile.
    """

    def __init__(self, output: Console, total: int, *, auto_refresh: bool = True) -> None:
        self._output = output
        self._total = total
        self._done = 0
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        self._bar = Progress(
            SpinnerColumn(),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False),
            console=output,
            auto_refresh=auto_refresh,
            disable=not output.is_terminal,
        )
        self._task = self._bar.add_task("starting", total=total)
        self._auto_refresh = auto_refresh
        self._notebook_output = output.file if isinstance(output.file, CellOutput) else None
        self._recent_lines: deque[Text] = deque(maxlen=LAST_LINES)

    def __enter__(self) -> Display:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()
        if self._notebook_output is not None:
            self._notebook_output.follow("", at_once=True)

    def start_cell(self, cell: str) -> None:
        """A cell starts."""
        self._bar.update(self._task, description=cell, refresh=not self._auto_refresh)
        self._refresh_notebook()

    @property
    def remaining(self) -> int:
        """Cells that nothing was told of yet."""
        return self._total - self._done

    def finish_cell(self, cell: str, record: record_types.Record | None) -> None:
        """A cell has its record; None: it had a good one from before."""
        self.finish_cell_with(cell, *describe_outcome(record))

    def finish_cell_with(self, cell: str, text: str, style: str) -> None:
        """A cell has ended so, in a line of its own."""
        self._done += 1
        width = len(str(self._total))
        line = Text(f"[{self._done:>{width}}/{self._total}] {cell}: ")
        line.append(text, style)
        self._bar.update(self._task, advance=1)
        if self._notebook_output is None:
            self._output.print(line, soft_wrap=True)
        self._recent_lines.append(line)
        self._refresh_notebook()

    def _refresh_notebook(self) -> None:
        """In a notebook, the newest cells and the bar."""
        if self._notebook_output is not None:
            with self._output.capture() as captured:
                self._output.print(Group(*self._recent_lines, self._bar.get_renderable()), soft_wrap=True)
            self._notebook_output.follow(captured.get())


class RecordWatcher:
    """Tells of the records that other processes write into a sweep's folder.

    Jobs that a launcher runs side by side show nothing themselves; this thread of the sweep's own process looks for
    what they have written.

    Args:
        shown: where to.
        folder: of the sweep.
        varied: keys of the sweep with more than one value.
    """

    def __init__(self, display: Display, folder: Path, varied: Sequence[str]) -> None:
        self._display = display
        self._folder = folder / "records"
        self._varied = varied
        self._known_states = self._file_states()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)

    def __enter__(self) -> RecordWatcher:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        self._show_new_records()

    def _poll(self) -> None:
        while not self._ended.wait(POLL_SECONDS):
            self._show_new_records()

    def _show_new_records(self) -> None:
        states = self._file_states()
        for name in sorted(states, key=lambda name: states[name]):
            if self._known_states.get(name) != states[name]:
                # Another process has replaced or removed the record meanwhile.
                with contextlib.suppress(RecordError):
                    record = read_record(self._folder / name)
                    self._display.finish_cell(cell_name(record.axes, self._sweep_settings(record)), record)
        self._known_states = states

    def _sweep_settings(self, record: record_types.Record) -> dict[str, object]:
        """A record knows what its cell is made of; names that an experiment sets others by are left out."""
        settings = flatten(record.config)
        return {key: settings[key] for key in self._varied if settings.get(key) is not None}

    def _file_states(self) -> dict[str, tuple[int, int]]:
        """Time of the last change and number of each record's file; files are replaced, never changed."""
        states = {}
        with contextlib.suppress(OSError), os.scandir(self._folder) as entries:
            for entry in entries:
                if entry.name.startswith("record-") and entry.name.endswith(".json"):
                    with contextlib.suppress(OSError):
                        stat = entry.stat()
                        states[entry.name] = stat.st_mtime_ns, stat.st_ino
        return states


def short_path(path: Path) -> str:
    """A path as short as it can be typed here."""
    absolute, working_folder = path.absolute(), Path.cwd()
    if absolute.is_relative_to(working_folder) and absolute != working_folder:
        return str(absolute.relative_to(working_folder))
    return str(absolute)


def cell_name(axes: record_parts.Axes, varied: Mapping[str, object]) -> str:
    """A cell for people: its axes, and the other settings that vary in the sweep."""
    return ", ".join(
        [f"{axes.method} on {axes.backend}", axes.model, *(f"{key}={value}" for key, value in varied.items())]
    )


def describe_outcome(record: record_types.Record | None) -> tuple[str, str]:
    """A record in one line, and its style."""
    if record is None:
        return "measured before", "dim"
    if record.status != "ok":
        return f"{record.status}: {record.error}", {"failed": "red"}.get(record.status, "yellow")
    parts = []
    if (rmse := record.metric("marginal_rmse").value) is not None:
        parts.append(f"RMSE {rmse:.2g}")
    result = record.result
    parts.append(f"{result.samples} samples x {result.chains} chains in {format_seconds(result.timing.run)}")
    if result.compilation == "fresh":
        parts.append(f"compiled in {format_seconds(result.timing.compile)}")
    return ", ".join(parts), "green"
