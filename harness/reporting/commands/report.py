"""`spinbench report`, `profile`, `show`, `rerun` and `publish`: what people see of records and of their history."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from spinbench.errors import SpinbenchError
from spinbench.history import publish
from spinbench.measuring import environment, record_types, records
from spinbench.reporting import board_page, comparison, export, leaderboard, page, replay, summary
from spinbench.reporting.profiles import rendering
from spinbench.reporting.profiles.profile import profile
from spinbench.reporting.progress_display import console, print_parts, short_path


def run_report(arguments: Namespace) -> int:
    """Print the report of sweeps and write its page, or only the tables as files, the tables of some models, or what
    differs between two sweeps' folders or two commits.

    Returns:
        The exit status: 1 if a cell failed.

    Raises:
        SpinbenchError: options that exclude each other, no folder, no records, or nowhere to write.
    """
    sweep_options = [name for name in ("panels", "tables") if getattr(arguments, name)]
    if sweep_options and (arguments.compare or arguments.model):
        raise SpinbenchError(f"--{sweep_options[0]} belongs to the report of sweeps, without --compare and --model")
    if arguments.compare:
        return _print_comparison(arguments.compare, arguments.output)
    sweep_records = _read_latest_records(
        arguments.folders, "; name folders that `spinbench sweep` wrote, or --compare A B"
    )
    if arguments.model:
        return _print_model_tables(sweep_records, arguments.model)
    output = arguments.output or arguments.folders[0] / "report"
    if arguments.tables:
        _write_tables(sweep_records, output)
    else:
        _write_page(sweep_records, arguments.folders, output, panels=arguments.panels)
    if not export.has_parquet():
        print(export.NO_PARQUET)
    return int(any(record.status == "failed" for record in sweep_records))


def _write_page(
    sweep_records: Sequence[record_types.Record], folders: Sequence[Path], output: Path, *, panels: bool
) -> None:
    names = {summary.report_name(folder) for folder in folders}
    summary.print_report(sweep_records, folders[0], names.pop() if len(names) == 1 else None)
    checkout = environment.history_root()
    site = None
    if checkout is not None:
        site = checkout / ".asv" / "html" / "index.html"
    report = page.write_report(sweep_records, output, sources=folders, site=site, panels=panels)
    print(f"page: {short_path(report.page)}, with {len(report.files)} pictures and tables beside it")


def _write_tables(sweep_records: Sequence[record_types.Record], output: Path) -> None:
    files = export.write_tables(export.report_tables(sweep_records, leaderboard.rows(sweep_records)), output)
    print(f"tables: {', '.join(map(short_path, files))}")


def _print_model_tables(sweep_records: Sequence[record_types.Record], patterns: Sequence[str]) -> int:
    """The tables of the models whose labels match any of the patterns."""
    matching_records = [
        record for record in sweep_records if any(fnmatchcase(record.axes.model, pattern) for pattern in patterns)
    ]
    if not matching_records:
        labels = ", ".join(sorted({record.axes.model for record in sweep_records}))
        raise SpinbenchError(f"no model is called {' or '.join(patterns)} here; there are {labels}")
    summary.show_leaderboards(matching_records)
    return 0


def _print_comparison(names: tuple[str, str], output: Path | None) -> int:
    differences = comparison.compare_sweeps_or_commits(*names)
    if differences.significant or differences.changes:
        console().print(comparison.differences_table(differences))
    for line in comparison.summary_sentences(differences):
        print(line)
    print(f"page: {short_path(comparison.write_comparison_page(differences, names, output or Path()))}")
    return 0


def run_profile(arguments: Namespace) -> int:
    """Print what is best across the models of some sweeps, and write it into pages; 0, the exit status."""
    sweep_records = _read_latest_records(arguments.folders)
    profiles = profile(sweep_records)
    print_parts(profiles.recommendations)
    print_parts(rendering.render_profile(profiles, all_solvers=arguments.all))
    if arguments.page is not None:
        pictures = page.write_profile(profiles, sweep_records, arguments.page)
        print(f"page: {', '.join(map(short_path, [arguments.page, *pictures]))}")
    if arguments.html is not None:
        title = ", ".join(dict.fromkeys(folder.resolve().name for folder in arguments.folders))
        print(f"page: {short_path(board_page.write_board_page(sweep_records, arguments.html, title))}")
    return 0


def run_show(arguments: Namespace) -> int:
    """Print all that a record holds; 0, the exit status."""
    for part in replay.render_record(_read_record(arguments.record)):
        console().print(part)
    return 0


def run_rerun(arguments: Namespace) -> int:
    """Measure the cell of a record again; the exit status is 1 if its figures differ."""
    repetition = replay.rerun(_read_record(arguments.record), time_limit=arguments.time_limit)
    if repetition.figures:
        console().print(replay.figures_table(repetition))
    for change in repetition.changes:
        print(f"not as it was: {change}")
    print(repetition.verdict())
    return repetition.exit_status


def _read_record(name: str) -> record_types.Record:
    """A record that lies here or in the checkout."""
    roots = filter(None, [Path.cwd(), environment.history_root()])
    return records.read_record(replay.find_record_file(name, roots))


def _read_latest_records(
    folders: Sequence[Path], hint: str = "; name folders that `spinbench sweep` wrote"
) -> list[record_types.Record]:
    if not folders:
        raise SpinbenchError(f"no folder was given{hint}")
    return records.latest_per_cell(record for folder in folders for record in records.read_records(folder))


def run_publish(arguments: Namespace) -> int:
    """Write the site, and print where it is; 0, the exit status."""
    index = publish.publish(environment.require_history_root(), offline=arguments.offline)
    server = f"{Path(sys.executable).name} -m http.server -d {short_path(index.parent)}"
    print(f"site: {short_path(index)}; see it with: {server}")
    return 0
