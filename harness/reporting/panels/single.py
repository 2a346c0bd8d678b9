"""Each model's panel as a file of its own, for papers: it names the model, and of each curve the settings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spinbench.reporting import curves, drawing, figures
from spinbench.reporting.curves import Quantity
from spinbench.reporting.leaderboard import Row
from spinbench.reporting.looks import Looks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 7.6, 3.6
"""Of the picture, in inches; the legend has a third of it."""
KINDS = ("pdf", "svg")
NAMES: dict[Quantity, str] = {"marginal_rmse": "accuracy", "log_z_error": "log_z"}
"""Of the pictures of each error, in names of files."""


def figure(rows: Sequence[Row], looks: Looks, quantity: Quantity) -> Figure | None:
    """The panel of one model with a title and a legend; None where there is nothing to draw."""
    from matplotlib.lines import Line2D

    drawn = [row for row in rows if figures.is_drawn(row, quantity)]
    if not any(curves.curve(row.members, quantity) for row in drawn):
        return None
    found = drawing.new_figure(WIDTH, HEIGHT)
    drawing.fix(found)
    panel = found.add_axes((0.1, 0.14, 0.56, 0.76))
    figures.draw(panel, drawn, looks, quantity)
    panel.set_ylabel(curves.TITLES[quantity])
    panel.set_title(drawn[0].model, parse_math=False, wrap=True)
    entries = []
    for row in drawn:
        line, marker = looks.lines[row.backend]
        own: dict[str, Any] = {"color": looks.colours[row.method], "fillstyle": looks.fills[row.method]}
        entries.append(Line2D([], [], linestyle=line, marker=marker, markersize=4, label=name(row), **own))
    legend = panel.legend(
        handles=entries, loc="upper left", bbox_to_anchor=(1.03, 1.02), frameon=False, fontsize=8, handlelength=2.6
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
    return found


def name(row: Row) -> str:
    """Method, backend and settings, one of these to a line."""
    seeds = f"{row.replicates} seeds" if row.replicates > 1 else ""
    return "\n".join(filter(None, [f"{row.method} on {row.backend}", *row.variant.split(" "), seeds]))


def save(rows: Sequence[Row], looks: Looks, folder: Path, place: int) -> list[Path]:
    """Write the panels of one model as PDF and SVG; returns the files.

    Args:
        rows: of the model.
        looks: of the whole report.
        folder: for the files; made if it is missing.
        place: of the model in the report: labels that differ may make the same name of a file.
    """
    written = []
    for quantity, what in NAMES.items():
        if (drawn := figure(rows, looks, quantity)) is not None:
            label = re.sub(r"[^A-Za-z0-9]+", "-", rows[0].model).strip("-")[:60]
            for kind in KINDS:
                written.append(folder / f"{place + 1}-{label}-{what}.{kind}")
                drawing.save(drawn, written[-1])
    return written
