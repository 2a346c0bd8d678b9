"""What a report's page shows across models: sentences, best by class, a chart and a table for each board."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from spinbench.measuring.record_types import Record
from spinbench.reporting import svg
from spinbench.reporting.profiles import pictures, tables
from spinbench.reporting.profiles.boards import LOG_Z, RMSE
from spinbench.reporting.profiles.profile import profile

FEWEST = 5
"""Models from which on there is something to say."""


def section(records: Sequence[Record]) -> dict[str, Any] | None:
    """For the template; None where there are few models, or no errors."""
    if len({record.axes.model for record in records}) < FEWEST:
        return None
    found = profile(records)
    if not found.boards:
        return None
    looks = pictures.looks(found.boards)
    boards = []
    for number, board in enumerate(found.boards):
        lines = tables.lines(board)
        columns = tables.shown_columns(lines)
        title = tables.title(board)
        boards.append(
            {
                "title": title,
                "unfolded": board in found.last,
                "chart": Markup(svg.inline(pictures.panel(board, looks), f"across{number}", title, {})),
                "heads": [tables.HEADINGS[i] for i in columns],
                "lines": [[line[i] for i in columns] for line in lines],
            }
        )
    heads, classes = tables.best_by_class(found.boards)
    return {
        "sentences": tables.sentences(found),
        "columns": heads,
        "classes": classes,
        "floors": [f"{what.floor:g}" for what in (RMSE, LOG_Z)],
        "boards": boards,
    }
