"""`spinbench report --compare A B`: two sweeps or two commits, on a terminal and as a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from spinbench.errors import SpinbenchError
from spinbench.history.regression_test import formatting
from spinbench.history.regression_test.judge import judge
from spinbench.measuring import environment, records
from spinbench.measuring.record_types import Record
from spinbench.reporting import page, paired
from spinbench.reporting.leaderboard import short
from spinbench.reporting.paired import Comparison

if TYPE_CHECKING:
    from spinbench.history.recorder import History

PAGE = "compare.html"
STYLES = {"worse": "red", "better": "green", "fails": "red", "mended": "green"}


def compare(first: str, second: str) -> Comparison:
    """Compare two sweeps' folders, or two commits as `spinbench gate` does, with what the history says of noise.

    Raises:
        SpinbenchError: as `load`, or they have nothing in common.
    """
    checkout = environment.root()
    if checkout is None or Path(first).is_dir() or Path(second).is_dir():
        return paired.compare(load(first), load(second))
    from spinbench.history import commits

    history, base = _commit(checkout, first)
    sides, left_out = commits.compared(history, base, _commit(checkout, second)[1])
    if not sides.common:
        raise SpinbenchError(f"{first} and {second} have no cell in common: {'; '.join(left_out)}")
    return Comparison(judge(sides), left_out)


def load(name: str) -> list[Record]:
    """The records of a sweep's folder, or those that the history has of a commit.

    Raises:
        SpinbenchError: neither a folder with records nor a commit with any.
    """
    if Path(name).is_dir():
        return records.latest(records.read_records(Path(name)))
    checkout = environment.root()
    if checkout is None:
        raise SpinbenchError(f"{name} is no folder, and {environment.NO_HISTORY}")
    from spinbench.history import journal

    history, commit = _commit(checkout, name)
    return journal.sittings(history.journal.entries(commit))[-1]


def _commit(checkout: Path, name: str) -> tuple[History, str]:
    """The history, and the full hash of a commit with records in it."""
    from spinbench.history.recorder import History

    try:
        history = History.open(checkout)
        commit = history.checkout.resolve(name)
    except SpinbenchError as error:
        raise SpinbenchError(f"{name} is no folder, and no commit can be looked up by that name: {error}") from error
    if not history.journal.entries(commit):
        raise SpinbenchError(f"commit {name} has no records in the history of {history.machine}; give sweeps' folders")
    return history, commit


def table(found: Comparison) -> Table:
    """The differences beyond noise, for a terminal."""
    board = Table(box=SIMPLE_HEAD, show_edge=False)
    for heading in ("", "metric", "model", "method", "backend", "settings of B"):
        board.add_column(heading, overflow="fold")
    for heading in ("A", "B", "B / A", "95 % interval", "p"):
        board.add_column(heading, justify="right", no_wrap=True)
    for one in found.beyond_noise():
        board.add_row(
            Text(one.verdict, style=STYLES[one.verdict]),
            *map(Text, (one.metric.title, *one.place)),
            short(one.base),
            short(one.head),
            short(one.ratio),
            f"{short(one.low)} … {short(one.high)}",
            f"{one.p:.1g}",
        )
    for broken in found.failures:
        board.add_row(Text(broken.verdict, style=STYLES[broken.verdict]), Text(broken.error), *map(Text, broken.place))
    return board


def sentences(found: Comparison) -> list[str]:
    """What would have been found, what was not compared, and how many of what."""
    return [
        *formatting.remarks(found.judgement),
        *found.left_out,
        f"B against A: {formatting.summary(found.judgement)}",
    ]


def write(found: Comparison, names: tuple[str, str], folder: Path) -> Path:
    """The page with all comparisons.

    Raises:
        SpinbenchError: the folder cannot be written.
    """
    path = folder / PAGE
    choices = {
        axis: sorted({getattr(one.place, axis) for one in found.differences}) for axis in ("model", "method", "backend")
    }
    choices["metric"] = sorted({one.metric.title for one in found.differences})
    text = (
        page.environment()
        .get_template("compare.html")
        .render(names=names, found=found, sentences=sentences(found), choices=choices, settings=_any_settings(found))
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SpinbenchError(f"{path} cannot be written: {error.strerror or error}") from error
    return path


def _any_settings(found: Comparison) -> bool:
    return any(one.place.settings for one in found.differences)
