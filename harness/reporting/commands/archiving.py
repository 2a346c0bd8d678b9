"""`spinbench archive`: boards' records as files that others join."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from spinbench.errors import SpinbenchError
from spinbench.foundation.remarks import format_count
from spinbench.measuring import archive, environment, records
from spinbench.measuring.record_types import Record
from spinbench.reporting.archives import check, comparison, store
from spinbench.reporting.progress_display import cell_name, console, new_table, short_path


def run(arguments: Namespace) -> int:
    """Print what an action came to; the exit status, 1 where something is damaged or not reproduced.

    Raises:
        SpinbenchError: the action lacks an argument, or fails.
    """
    needs = {"list": (), "fetch": ("ARCHIVE",), "check": ("ARCHIVE",)}.get(arguments.action, ("ARCHIVE", "FOLDER"))
    given = {"ARCHIVE": arguments.archive, "FOLDER": arguments.folders}
    if missing := [name for name in needs if not given[name]]:
        raise SpinbenchError(f"spinbench archive {arguments.action} needs {' and '.join(missing)}")
    return int(ACTIONS[arguments.action](arguments))


def _list(arguments: Namespace) -> int:
    """Those here, with their coverage and whether they are whole."""
    lines, status = [], 0
    for name, folder in store.find_archives(_roots()).items():
        try:
            manifest = archive.read_manifest(folder)
            store.verify(folder)
        except archive.ArchiveError as error:
            lines.append([name, "", "", "", str(error)])
            status = 1
        else:
            coverage = f"{100 * manifest.rows / manifest.planned:.0f} %" if manifest.planned else "–"
            commit = (manifest.commit or "–")[:8]
            lines.append([name, str(manifest.rows), coverage, commit, f"{manifest.title} ({short_path(folder)})"])
    if not lines:
        print("no archives below boards/, docs/boards/ and in the cache; spinbench archive fetch SOURCE brings one")
        return 0
    console().print(
        new_table(None, ("archive", "cells", "coverage", "commit", "what"), lines, number_columns=("cells",))
    )
    return status


def _fetch(arguments: Namespace) -> int:
    folder = store.fetch(arguments.archive)
    print(f"{folder.name}: {format_count(archive.read_manifest(folder).rows, 'cell')} in {short_path(folder)}")
    return 0


def _add(arguments: Namespace) -> int:
    about = {name: getattr(arguments, name) for name in ("title", "licence", "planned")}
    given = {name: value for name, value in about.items() if value is not None}
    folder = Path(arguments.archive)
    manifest, new = archive.add_records(folder, _latest(arguments.folders), **given)
    print(f"{folder.name}: {format_count(new, 'new cell')}, {manifest.rows} in all")
    return 0


def _compare(arguments: Namespace) -> int:
    board = archive.read_archive(store.find_archive(arguments.archive, _roots()))
    board_comparison = comparison.compare(records.latest_per_cell(board), _latest(arguments.folders))
    for line in (*board_comparison.places, *board_comparison.remarks):
        print(line)
    return 0


def _check(arguments: Namespace) -> int:
    """Of an archive, or of the folder of a sweep, which is a submission."""
    path = Path(arguments.archive)
    folder = path if path.is_dir() else store.find_archive(arguments.archive, _roots())
    status, count = 0, 0
    for record, difference in check.check_cells(_latest([folder]), arguments.cells, arguments.seed):
        name = cell_name(record.axes, {"seed": record.config["seed"]})
        print(f"{name}: {'NOT reproduced, ' + difference if difference else 'reproduced'}", flush=True)
        status, count = max(status, int(bool(difference))), count + 1
    if not count:
        raise SpinbenchError(f"{folder} has no cell whose numbers are vouched for")
    return status


def _latest(folders: Sequence[Path]) -> list[Record]:
    return records.latest_per_cell(record for folder in folders for record in records.read_records(folder))


def _roots() -> list[Path]:
    """Folders whose boards are looked into: this one, and the checkout."""
    return [path for path in dict.fromkeys((Path.cwd(), environment.history_root())) if path is not None]


ACTIONS = {"list": _list, "fetch": _fetch, "add": _add, "compare": _compare, "check": _check}
