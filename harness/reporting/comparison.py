"""`spinbench report --compare A B`: two sweeps or two commits, on a terminal and as a page."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from spinbench.errors import SpinbenchError
from spinbench.measuring import environment, records
from spinbench.measuring.records import Record
from spinbench.reporting import page
from spinbench.reporting.leaderboard import short
from spinbench.reporting.paired import ALPHA, Comparison

PAGE = "compare.html"
STYLES = {"worse": "red", "better": "green", "only A": "red", "only B": "green"}


def load(name: str) -> list[Record]:
    """The records of a sweep's folder, or those that the history has of a commit.

    Raises:
        SpinbenchError: neither a folder with records nor a commit with any.
    """
    if Path(name).is_dir():
        return records.latest(records.read_records(Path(name)))
    checkout = environment.root()
    if checkout is None:
        raise SpinbenchError(f"{name} is no folder, and spinbench runs from no git checkout that could have a commit")
    from spinbench.history.recorder import History

    try:
        history = History.open(checkout)
        commit = history.checkout.resolve(name)
    except SpinbenchError as error:
        raise SpinbenchError(f"{name} is no folder, and no commit can be looked up by that name: {error}") from error
    found = history.journal.entries(commit)
    if not found:
        raise SpinbenchError(f"commit {name} has no records in the history of {history.machine}; give sweeps' folders")
    return [dict(entry) for entry in found]


def table(found: Comparison) -> Table:
    """The differences beyond noise, for a terminal."""
    board = Table(box=SIMPLE_HEAD, show_edge=False)
    for heading in ("", "metric", "model", "method", "backend", "settings of B"):
        board.add_column(heading, overflow="fold")
    for heading in ("A", "B", "B / A", "p"):
        board.add_column(heading, justify="right", no_wrap=True)
    for one in found.beyond_noise():
        board.add_row(
            Text(one.verdict, style=STYLES[one.verdict]),
            *map(Text, (one.metric.title, one.model, one.method, one.backend, one.settings)),
            short(one.a),
            short(one.b),
            short(one.ratio),
            f"{one.p:.1g}" if one.pairs else "",
        )
    return board


def summary(found: Comparison) -> str:
    """One sentence."""
    count = Counter(one.verdict for one in found.differences)
    return (
        f"{len(found.differences)} comparisons: B is better in {count['better'] + count['only B']} and worse in "
        f"{count['worse'] + count['only A']}, {count['within noise']} are within noise (paired over seeds and models, "
        f"probability of any false alarm {ALPHA:g})"
    )


def write(found: Comparison, names: tuple[str, str], folder: Path) -> Path:
    """The page with all comparisons.

    Raises:
        SpinbenchError: the folder cannot be written.
    """
    path = folder / PAGE
    choices = {
        axis: sorted({getattr(one, axis) for one in found.differences}) for axis in ("model", "method", "backend")
    }
    choices["metric"] = sorted({one.metric.title for one in found.differences})
    text = (
        page.environment()
        .get_template("compare.html")
        .render(names=names, found=found, summary=summary(found), choices=choices, settings=_any_settings(found))
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SpinbenchError(f"{path} cannot be written: {error.strerror or error}") from error
    return path


def _any_settings(found: Comparison) -> bool:
    return any(one.settings for one in found.differences)
