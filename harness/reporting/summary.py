"""What a sweep ends with: the leaderboard or the experiment's own report, the picture, the word on asv's history."""

from __future__ import annotations

import json
import textwrap
from functools import partial
from typing import TYPE_CHECKING, cast

from rich import box, cells
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spinbench.errors import SpinbenchError
from spinbench.foundation import plugins
from spinbench.mathematics.statistics import TARGET_RMSE
from spinbench.measuring import environment
from spinbench.measuring.records import COMMAND_FILE
from spinbench.reporting import accuracy_plots, brackets, leaderboard, page_content
from spinbench.reporting.profiles import profile, rendering
from spinbench.reporting.progress_display import console, print_line, print_parts, short_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from rich.console import RenderableType

    from spinbench.measuring.record_types import Record
    from spinbench.reporting.leaderboard import Row

    CellText = Callable[[Row], str | Text]
    # A comparison of methods over many models of an experiment's own: a function of (records, folder), registered under
    # the entry point group `spinbench.reports` and named by the configuration (`report`). It returns what is printed
    # and may write files into the folder.
    Report = Callable[[Sequence[Record], Path], Sequence[RenderableType]]

ACCURACY_PICTURE = "accuracy.png"
PROFILES_PICTURE = "profiles.png"
# Largest number of reasons for missing results that are printed for many models.
MAX_REASONS = 8

# Columns that a narrow terminal omits, in this order.
OPTIONAL_COLUMNS = ("tier", "level", "compile\nseconds", "ESS/s", "seeds", "run\nseconds")
# Columns that may wrap, with their smallest widths.
FOLDED_MIN_WIDTHS = {"settings": 16, "status": 12}
SHARED_RANK_NOTE = "=: within noise (95 %) of others of this rank"


def find_report(name: str) -> Report:
    """The report of this name.

    Raises:
        UnknownNameError: there is none; the closest names are offered.
        BrokenPluginError: it raised on import or is no function, or two distributions claim the name.
    """
    return cast("Report", plugins.load("reports", name, lambda plugin: "" if callable(plugin) else "is no function"))


def report_name(folder: Path) -> str | None:
    """The name of the report that the sweep in this folder asked for."""
    try:
        name = json.loads((folder / COMMAND_FILE).read_text(encoding="utf-8")).get("report")
    except (OSError, ValueError, AttributeError):
        # The folder holds records but no sweep.
        return None
    return None if name is None else str(name)


def print_report(records: Sequence[Record], folder: Path, name: str | None = None) -> None:
    """Print a report and the cells without a result with their reasons.

    Args:
        records: of the sweep.
        folder: for pictures.
        name: of the experiment's report; None: the leaderboard, with the picture of accuracy over time, or where there
            are many models one page on all of them, with the picture of performance profiles.
    """
    if name is not None:
        print_parts(find_report(name)(records, folder))
        _print_problems(records)
    elif len({record.axes.model for record in records}) > rendering.MAX_MODEL_TABLES:
        _show_profile(records, folder)
    else:
        show_leaderboards(records)
        _print_problems(records)
        _draw_and_announce(
            lambda: accuracy_plots.draw_accuracy_over_time(records, folder / ACCURACY_PICTURE),
            "accuracy against wall-clock",
        )


def show_leaderboards(records: Sequence[Record]) -> None:
    """Print the leaderboard, a table for each model."""
    board = leaderboard.rows(records)
    print_parts(leaderboard_tables(board, console().width))
    if any("cached" in row.status or "warm" in row.status for row in board):
        print_line("warm, cached: compiled before, by the same process or read from disk", "dim")


def _show_profile(records: Sequence[Record], folder: Path) -> None:
    profiles = profile.profile(records)
    print_parts(rendering.render_profile(profiles))
    _print_oversubscribed(records)
    # Sorted, so that "failed: …" comes before "skipped: …".
    reasons = problem_lines(records)
    for line in reasons[:MAX_REASONS]:
        console().print(Text(line, style=_reason_style(line)), overflow="ellipsis", no_wrap=True)
    if len(reasons) > MAX_REASONS:
        print_line(f"{len(reasons) - MAX_REASONS} more reasons for cells without a result stand on the report's page")
    print_line(f"a model's table: spinbench report {short_path(folder)} --model NAME; all of them: --model '*'")
    _draw_and_announce(lambda: rendering.save_profiles(profiles, folder / PROFILES_PICTURE), "performance profiles")


def _draw_and_announce(draw: Callable[[], Sequence[Path]], subject: str) -> None:
    try:
        files = draw()
    except SpinbenchError as error:
        print_line(str(error), "red")
    else:
        if files:
            print_line(f"picture of {subject}: {', '.join(map(short_path, files))}")
        else:
            print_line("no picture: no cell has known errors")


def _print_oversubscribed(records: Sequence[Record]) -> None:
    shared = [record.oversubscribed for record in records if record.oversubscribed]
    if shared:
        text = f"{len(shared)} of {len(records)} cells oversubscribed, so that their seconds are too long"
        print_line(f"{text}; one of them: {shared[0]}", "yellow")


def _print_problems(records: Sequence[Record]) -> None:
    _print_oversubscribed(records)
    missing = sorted({record.no_reference for record in records if record.no_reference is not None})
    without = [f"no exact answer to compare with: {reason}" for reason in missing]
    for line in (*problem_lines(records), *leaderboard.collect_remarks(records), *without):
        print_line(line, _reason_style(line))


def problem_lines(records: Sequence[Record]) -> list[str]:
    """One line for each reason for which cells failed or were skipped."""
    lines = []
    for problem in page_content.group_failures(records):
        if problem["method"]:
            cells = f"{problem['method']} on {problem['backend']}, {', '.join(problem['models'])}"
            lines.append(f"{problem['status']}: {cells}: {problem['reason']}")
    return lines


def _reason_style(line: str) -> str:
    return {"failed": "red"}.get(line.partition(": ")[0], "yellow")


def enter_into_history(folders: Sequence[Path]) -> list[str]:
    """Enter records into asv's history, as far as they belong there; what came of it, in sentences."""
    try:
        root = environment.require_history_root()
        from spinbench.history.recorder import record

        return record(root, folders).sentences()
    except SpinbenchError as error:
        return [f"not in asv's history: {error}; the records are kept"]
    except Exception as error:
        # An error of asv's must not change the sweep's result.
        text = " ".join(str(error).split())
        return [f"not in asv's history: asv failed with {type(error).__name__}: {text}; the records are kept"]


def leaderboard_tables(board: Sequence[Row], width: int | None = None) -> list[Table]:
    """The leaderboard, a table for each model; below it, where log Z is not known, the bounds on it.

    Args:
        board: rows.
        width: columns of the terminal; where a table is wider, some of `LEFT_OUT` are, and it says so. None: any.
    """
    return [_fit_table(model, list(rows.values()), width) for model, rows in leaderboard.rows_by_model(board).items()]


def _fit_table(model: str, board: Sequence[Row], width: int | None) -> Table:
    """The table with as many columns as there is room for."""
    sentence = brackets.bracket_of_rows(board).sentence()
    notes = [sentence or "", *{SHARED_RANK_NOTE for row in board if row.shared}]
    columns = _leaderboard_columns(board, has_bounds=sentence is not None)
    dropped_columns: list[str] = []
    table = _leaderboard_table(model, board, columns, notes)
    for name in (*map(wrap_heading, leaderboard.metric_titles(board)), *OPTIONAL_COLUMNS):
        if width is None or Console(width=10_000, markup=False).measure(table).minimum <= width:
            break
        if columns.pop(name, None) is not None:
            dropped_columns.append(name.replace("\n", " "))
            note = f"no room for {', '.join(dropped_columns)}; `spinbench report` writes them"
            table = _leaderboard_table(model, board, columns, [*notes, note])
    return table


def _leaderboard_columns(board: Sequence[Row], *, has_bounds: bool) -> dict[str, CellText]:
    """What stands in the columns, by heading; those without anything to tell are none."""
    any_reached = any(row.time_to_error is not None for row in board)
    columns: list[tuple[str, CellText, bool]] = [
        ("#", leaderboard.rank_label, any(row.rank is not None for row in board)),
        ("method", lambda row: row.method, True),
        ("backend", lambda row: row.backend, True),
        ("settings", lambda row: row.variant, any(row.variant for row in board)),
        ("seeds", lambda row: str(row.replicates), any(row.replicates > 1 for row in board)),
        ("marginal\nRMSE", lambda row: leaderboard.format_with_error(row.rmse, row.rmse_se), True),
        ("log Z", lambda row: leaderboard.format_number(None) if row.log_z is None else f"{row.log_z:.6g}", has_bounds),
        ("|log Z\nerror|", lambda row: leaderboard.format_number(row.log_z_error), not has_bounds),
        (
            f"seconds to\n{100 * TARGET_RMSE:g} % RMSE",
            lambda row: leaderboard.format_number(row.time_to_error),
            any_reached,
        ),
        *((wrap_heading(title), partial(_format_metric, title), True) for title in leaderboard.metric_titles(board)),
        ("ESS/s", lambda row: leaderboard.format_number(row.ess_per_second), True),
        ("compile\nseconds", lambda row: leaderboard.format_number(row.compile_seconds), True),
        ("run\nseconds", lambda row: leaderboard.format_number(row.run_seconds), True),
        ("tier", lambda row: row.tier, True),
        ("level", lambda row: row.level, any(row.level for row in board)),
        ("status", _status_with_style, True),
    ]
    return {name: cell for name, cell, is_shown in columns if is_shown}


def _leaderboard_table(
    model: str, board: Sequence[Row], columns: Mapping[str, CellText], notes: Sequence[str]
) -> Table:
    table = Table(
        title=f"model {model}",
        title_justify="left",
        title_style="bold",
        caption="\n".join(filter(None, notes)) or None,
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 0),
    )
    for name, cell in columns.items():
        widest = max(map(cells.cell_len, [*name.split("\n"), *(str(cell(row)) for row in board)]))
        is_text = name in ("method", "backend", "settings", "tier", "level", "status")
        table.add_column(
            name,
            justify="left" if is_text else "right",
            no_wrap=name not in FOLDED_MIN_WIDTHS,
            min_width=min(FOLDED_MIN_WIDTHS.get(name, widest), widest),
            overflow="fold",
        )
    for row in board:
        table.add_row(*(cell(row) for cell in columns.values()))
    return table


def wrap_heading(title: str) -> str:
    """Of a metric's column, in lines."""
    return textwrap.fill(title, 10)


def _format_metric(title: str, row: Row) -> str:
    mean = row.metric_means.get(title)
    if mean is None:
        return leaderboard.format_number(None)
    return leaderboard.format_with_error(mean.value, mean.standard_error)


def _status_with_style(row: Row) -> Text:
    if leaderboard.is_disqualified(row):
        return Text(row.status, style="red")
    return Text(row.status, style={"ok": ""}.get(row.status, "dim"))
