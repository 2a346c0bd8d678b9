"""`spinbench report`, `spinbench profile`, `spinbench show` and `spinbench rerun`: what people see of records."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from spinbench.errors import SpinbenchError
from spinbench.measuring import environment, records
from spinbench.measuring.record_types import Record
from spinbench.reporting import comparison, export, leaderboard, page, replay, summary
from spinbench.reporting.display import console, print_parts, shown
from spinbench.reporting.profiles import tables
from spinbench.reporting.profiles.profile import profile


def run_report(arguments: Namespace) -> int:
    """Print the report of sweeps and write its page, or only the tables as files, the tables of some models, or what
    differs between two sweeps' folders or two commits.

    Returns:
        The exit status: 1 if a cell failed.

    Raises:
        SpinbenchError: options that exclude each other, no folder, no records, or nowhere to write.
    """
    of_sweeps = [name for name in ("panels", "tables") if getattr(arguments, name)]
    if of_sweeps and (arguments.compare or arguments.model):
        raise SpinbenchError(f"--{of_sweeps[0]} belongs to the report of sweeps, without --compare and --model")
    if arguments.compare:
        return _compare(arguments.compare, arguments.output)
    found = _latest(arguments.folders, "; name folders that `spinbench sweep` wrote, or --compare A B")
    if arguments.model:
        return _print_models(found, arguments.model)
    output = arguments.output or arguments.folders[0] / "report"
    if arguments.tables:
        _write_tables(found, output)
    else:
        _write_page(found, arguments.folders, output, panels=arguments.panels)
    if not export.has_parquet():
        print(export.NO_PARQUET)
    return int(any(record.status == "failed" for record in found))


def _write_page(found: Sequence[Record], folders: Sequence[Path], output: Path, *, panels: bool) -> None:
    names = {summary.chosen(folder) for folder in folders}
    summary.show(found, folders[0], names.pop() if len(names) == 1 else None)
    checkout = environment.root()
    site = None if checkout is None else checkout / ".asv" / "html" / "index.html"
    written = page.write(found, output, sources=folders, site=site, panels=panels)
    print(f"page: {shown(written.page)}, with {len(written.files)} pictures and tables beside it")


def _write_tables(found: Sequence[Record], output: Path) -> None:
    try:
        output.mkdir(parents=True, exist_ok=True)
        files = export.write(export.tables(found, leaderboard.rows(found)), output)
    except OSError as error:
        raise SpinbenchError(f"the tables in {output} cannot be written: {error.strerror or error}") from error
    print(f"tables: {', '.join(map(shown, files))}")


def _print_models(found: Sequence[Record], patterns: Sequence[str]) -> int:
    """The tables of the models whose labels match any of the patterns."""
    chosen = [record for record in found if any(fnmatchcase(record.axes.model, pattern) for pattern in patterns)]
    if not chosen:
        labels = ", ".join(sorted({record.axes.model for record in found}))
        raise SpinbenchError(f"no model is called {' or '.join(patterns)} here; there are {labels}")
    summary.show_tables(chosen)
    return 0


def _compare(names: tuple[str, str], output: Path | None) -> int:
    found = comparison.compare(*names)
    if found.beyond_noise() or found.failures:
        console().print(comparison.table(found))
    for line in comparison.sentences(found):
        print(line)
    print(f"page: {shown(comparison.write(found, names, output or Path()))}")
    return 0


def run_profile(arguments: Namespace) -> int:
    """Print what is best across the models of some sweeps, and write it into a page; 0, the exit status."""
    found = _latest(arguments.folders)
    known = profile(found)
    print_parts(tables.page(known, whole=arguments.all))
    if arguments.page is not None:
        drawn = page.write_profile(known, found, arguments.page)
        print(f"page: {', '.join(map(shown, [arguments.page, *drawn]))}")
    return 0


def run_show(arguments: Namespace) -> int:
    """Print all that a record holds; 0, the exit status."""
    for part in replay.describe(_find(arguments.record)):
        console().print(part)
    return 0


def run_rerun(arguments: Namespace) -> int:
    """Measure the cell of a record again; the exit status is 1 if its figures differ."""
    done = replay.rerun(_find(arguments.record), time_limit=arguments.time_limit)
    if done.figures:
        console().print(replay.table(done))
    for change in done.changes:
        print(f"not as it was: {change}")
    print(done.verdict())
    return done.exit_status


def _find(name: str) -> Record:
    """A record that lies here or in the checkout."""
    checkout = environment.root()
    return records.read_record(replay.find(name, [Path.cwd(), *([] if checkout is None else [checkout])]))


def _latest(folders: Sequence[Path], hint: str = "; name folders that `spinbench sweep` wrote") -> list[Record]:
    if not folders:
        raise SpinbenchError(f"no folder was given{hint}")
    return records.latest(record for folder in folders for record in records.read_records(folder))
