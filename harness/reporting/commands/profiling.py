"""`spinbench profile`: solvers across models, for people; and the tables of single models on demand."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from spinbench.errors import SpinbenchError
from spinbench.measuring import records
from spinbench.measuring.record_types import Record
from spinbench.reporting import summary
from spinbench.reporting.display import console, shown
from spinbench.reporting.profiles import markdown
from spinbench.reporting.profiles.profile import profile
from spinbench.reporting.profiles.tables import page as lines


def show(folders: Sequence[Path], *, whole: bool, page: Path | None) -> int:
    """Print what is best across the models of some sweeps, and write it into a page; 0, the exit status.

    Args:
        folders: that sweeps wrote.
        whole: whether to print all solvers after each budget.
        page: a Markdown file, or None.
    """
    found = _read(folders)
    known = profile(found)
    output = console()
    for part in lines(known, whole=whole):
        output.print()
        output.print(part, soft_wrap=isinstance(part, str))
    if page is not None:
        drawn = markdown.write(known, found, page)
        print(f"page: {', '.join(map(shown, [page, *drawn]))}")
    return 0


def tables(folders: Sequence[Path], patterns: Sequence[str]) -> int:
    """Print the tables of the models whose labels match any of the patterns; 0, the exit status.

    Raises:
        SpinbenchError: there is none.
    """
    found = _read(folders)
    chosen = [record for record in found if any(fnmatchcase(record.axes.model, pattern) for pattern in patterns)]
    if not chosen:
        labels = ", ".join(sorted({record.axes.model for record in found}))
        raise SpinbenchError(f"no model is called {' or '.join(patterns)} here; there are {labels}")
    summary.show_tables(chosen)
    return 0


def _read(folders: Sequence[Path]) -> list[Record]:
    if not folders:
        raise SpinbenchError("no folder was given; name folders that `spinbench sweep` wrote")
    return records.latest(record for folder in folders for record in records.read_records(folder))
