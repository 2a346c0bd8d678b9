"""The settings behind the columns of asv's table: `asv run` has no versions of cells, and measures none of others.

Builds of past commits are told which settings a column holds, and a column that `asv run` begins keeps them.
"""

from __future__ import annotations

import dataclasses
import json
from contextlib import suppress
from pathlib import Path

from spinbench.errors import HistoryError
from spinbench.foundation.atomic import write_json
from spinbench.history import axes
from spinbench.history.journal import locked
from spinbench.history.labels import identity
from spinbench.history.series import Book, column

TOLD = "families.json"
"""In the folder that the processes of one asv command share, beside measurements."""


def tell(shared: Path, home: Path | None) -> Path:
    """Write which cells there are today, and which settings their columns hold.

    Args:
        shared: where to.
        home: of the history, if there is one.
    """
    kept = Book(home / "journal").columns() if home is not None else {}
    told = {}
    for name, found in axes.families().items():
        columns = {cell: kept.get(found.column(cell), ()) for cell in found.cells}
        settings = [[cell, list(configs)] for cell, configs in columns.items() if configs]
        told[name] = {**dataclasses.asdict(found), "settings_of": settings}
    path = shared / TOLD
    write_json(path, told)
    return path


def keep(measured: Path, home: Path) -> None:
    """Begin columns with the settings of the cells that were measured, as a sweep does.

    Args:
        measured: the folder of a commit's measurements.
        home: of the history.

    Raises:
        HistoryError: it cannot be written.
    """
    records = [json.loads(path.read_text()) for path in measured.glob("*.json") if path.name != TOLD]
    good = [record for record in records if record["status"] == "ok"]
    if good:
        with locked(home):
            book = Book(home / "journal")
            for record in good:
                with suppress(HistoryError):  # of a build that did not note what files held
                    book.enter(identity(record), [], column(record))
