"""What all pictures share: colours, lines and markers, the style, how they are made, marked and saved."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spinbench.errors import SpinbenchError

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

# Okabe and Ito, "Color universal design" (2008), without yellow and black
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
INK, MUTED, GRID, HIGHLIGHT = "#1A1B1D", "#5A5B5D", "#DCDDDF", "#C8C9CB"
LINES = ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P")
FILLS = ("full", "none", "left", "top", "right", "bottom")
"""Of markers, where methods share a colour."""
STYLE: Any = {
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.7,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "svg.fonttype": "none",
    "svg.hashsalt": "spinbench",
}
"""Of all pictures."""


@contextmanager
def style() -> Iterator[None]:
    """Pictures that are drawn and saved inside look as those of a report do."""
    import matplotlib

    with matplotlib.rc_context(STYLE):
        yield


def new_figure(width: float, height: float) -> Figure:
    """A figure of some inches that pyplot does not know of."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Into a file of the kind that its name says.

    Raises:
        SpinbenchError: the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
        fix(figure)  # it is arranged now, for the next kind of file too
    except OSError as error:
        raise SpinbenchError(f"the picture {path} cannot be written: {error.strerror or error}") from error


def fix(figure: Figure) -> None:
    """Keep margins as they are: arranging takes longer than drawing."""
    figure.set_layout_engine("none")


def mark(axis: Axis, first: float, last: float) -> None:
    """Marks of a logarithmic axis from `first` to `last`, labelled with plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if last < 30 * first else (1,), numticks=9))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("e-0", "e-")))
    axis.set_minor_locator(NullLocator())  # most of the drawing time goes into ticks
