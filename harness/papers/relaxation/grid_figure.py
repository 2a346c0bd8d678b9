"""The heat maps of `grid_sets`: rows of panels are measures, columns methods; one colour bar a row."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spinbench.papers.relaxation.grid_sets import GraphSet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import LogNorm

# Made for colour-blind readers: Nuñez, Anderton and Renslow, PLOS ONE 2018. Lightness rises with the error.
COLOURS = "cividis"
# Errors of exact methods are drawn like this.
MIN_ERROR = 1e-12
# Inches a side.
PANEL_INCHES = 2.75
STYLE: dict[Any, Any] = {"font.size": 9, "axes.titlesize": 9.5, "svg.fonttype": "none", "svg.hashsalt": "spinbench"}


def draw_heat_maps(graphs: GraphSet, titles: Mapping[str, str], path: Path) -> None:
    """Draw a set into a file of the kind that its name says.

    Args:
        graphs: at least one column.
        titles: of the rows, by measure.
        path: .png or .svg.

    Raises:
        OSError: the file cannot be written.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        columns = len(graphs.columns)
        figure = Figure(figsize=(PANEL_INCHES * columns + 1.3, PANEL_INCHES * len(titles) + 0.9), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(len(titles), columns, squeeze=False, sharex=True, sharey=True)
        for row, (measure, title) in zip(panels, titles.items(), strict=True):
            norm = _colour_scale(graphs, measure)
            for panel, column in zip(row, graphs.columns, strict=True):
                values = {place: cell.mse for place, cell in column.cells[measure].items()}
                _draw_heat_map(panel, graphs, values, norm)
            figure.colorbar(ScalarMappable(norm, COLOURS), ax=list(row), label=title, aspect=22, pad=0.015)
            row[0].set_ylabel("$c_1$ (biases)")
        for panel, column in zip(panels[0], graphs.columns, strict=True):
            panel.set_title(textwrap.fill(column.label, 30), parse_math=False)
        for panel in panels[-1]:
            panel.set_xlabel("$c_2$ (couplings)")
        figure.suptitle(graphs.title, fontsize=9.5, parse_math=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=130, metadata={"Date": None} if path.suffix == ".svg" else None)


def format_compact(value: float) -> str:
    """Two significant digits (integers below 10 000 whole), in at most six characters."""
    if value == 0:
        return "0"
    for digits, top in ((3, 0.0995), (2, 0.995), (1, 9.95), (0, 9999.5)):
        if 0.00995 <= value < top:
            return f"{value:.{digits}f}"
    mantissa, _, exponent = f"{value:.1e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


def _colour_scale(graphs: GraphSet, measure: str) -> LogNorm:
    """Over all methods; at least a factor of ten, so that small differences stay small."""
    from matplotlib.colors import LogNorm

    values = [cell.mse for column in graphs.columns for cell in column.cells[measure].values() if cell.mse is not None]
    positive = [max(value, MIN_ERROR) for value in values] or [1.0]
    low, high = min(positive), max(positive)
    if high < 10 * low:
        middle = (low * high) ** 0.5
        low, high = middle / 10**0.5, middle * 10**0.5
    return LogNorm(low, high)


def _draw_heat_map(
    panel: Axes, graphs: GraphSet, values: Mapping[tuple[float, float], float | None], norm: LogNorm
) -> None:
    """One heat map; graphs without a value stay white with a dash."""
    import numpy as np

    table = np.full((len(graphs.c1), len(graphs.c2)), np.nan)
    for (c1, c2), value in values.items():
        if value is not None:
            table[graphs.c1.index(c1), graphs.c2.index(c2)] = max(value, MIN_ERROR)
    panel.imshow(np.ma.masked_invalid(table), norm=norm, cmap=COLOURS, origin="lower", aspect="equal")
    for i, c1 in enumerate(graphs.c1):
        for j, c2 in enumerate(graphs.c2):
            value = values.get((c1, c2))
            dark = value is not None and norm(max(value, MIN_ERROR)) < 0.5
            text = "–" if value is None else format_compact(value)
            panel.text(j, i, text, ha="center", va="center", fontsize=6.8, color="white" if dark else "black")
    panel.set_xticks(range(len(graphs.c2)), [f"{c2:g}" for c2 in graphs.c2])
    panel.set_yticks(range(len(graphs.c1)), [f"{c1:g}" for c1 in graphs.c1])
    panel.tick_params(length=0)
    for spine in panel.spines.values():
        spine.set_visible(False)
