"""`spinbench report`: the leaderboard of sweeps, or an experiment's table, and the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from spinbench.errors import SpinbenchError
from spinbench.measuring import environment, records
from spinbench.measuring.record_types import Record
from spinbench.reporting import comparison, export, leaderboard, page, summary
from spinbench.reporting.display import console, shown


def write(folders: Sequence[Path], output: Path | None, *, panels: bool) -> int:
    """Print the report of sweeps, and write its page.

    Args:
        folders: of the sweeps.
        output: for the page; None: `report` in the first folder.
        panels: whether each model's pictures are files of their own, too.

    Returns:
        The exit status: 1 if a cell failed.

    Raises:
        SpinbenchError: no folder, no records, or nowhere to write.
    """
    found = _latest(folders)
    names = {summary.chosen(folder) for folder in folders}
    summary.show(found, folders[0], names.pop() if len(names) == 1 else None)
    checkout = environment.root()
    site = None if checkout is None else checkout / ".asv" / "html" / "index.html"
    written = page.write(found, output or folders[0] / "report", sources=folders, site=site, panels=panels)
    print(f"page: {shown(written.page)}, with {len(written.files)} pictures and tables beside it")
    for note in written.notes:
        print(note)
    return _status(found)


def tables(folders: Sequence[Path], output: Path | None) -> int:
    """Write the tables of sweeps as files, without a page and pictures.

    Args:
        folders: of the sweeps.
        output: for the files; None: `report` in the first folder.

    Returns:
        The exit status: 1 if a cell failed.

    Raises:
        SpinbenchError: no folder, no records, or nowhere to write.
    """
    found = _latest(folders)
    place = output or folders[0] / "report"
    try:
        place.mkdir(parents=True, exist_ok=True)
        files = export.write(export.tables(found, leaderboard.rows(found)), place)
    except OSError as error:
        raise SpinbenchError(f"the tables in {place} cannot be written: {error.strerror or error}") from error
    print(f"tables: {', '.join(shown(file) for file in files)}")
    if not export.has_parquet():
        print(export.NO_PARQUET)
    return _status(found)


def compare(names: Sequence[str], output: Path | None) -> int:
    """Print what differs between two sweeps' folders or two commits, and write a page of it; 0, the exit status."""
    first, second = names
    found = comparison.compare(first, second)
    if found.beyond_noise() or found.failures:
        console().print(comparison.table(found))
    for line in comparison.sentences(found):
        print(line)
    print(f"page: {shown(comparison.write(found, (first, second), output or Path()))}")
    return 0


def _latest(folders: Sequence[Path]) -> list[Record]:
    if not folders:
        raise SpinbenchError("no folder was given; name folders that `spinbench sweep` wrote, or --compare A B")
    return records.latest(record for folder in folders for record in records.read_records(folder))


def _status(found: Sequence[Record]) -> int:
    return int(any(record.status == "failed" for record in found))
