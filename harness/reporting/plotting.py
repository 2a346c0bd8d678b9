"""What all pictures share: how methods and backends look, how figures are made, saved and put into a page."""

from __future__ import annotations

import html
import io
import itertools
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from spinbench.errors import SpinbenchError
from spinbench.foundation import defaults
from spinbench.foundation.folders import import_without
from spinbench.inference import kernels, registry

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.typing import LineStyleType

    from spinbench.reporting.leaderboard import Row


# Okabe and Ito, "Color universal design" (2008), without yellow and black; distinguishable for the colour-blind
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
INK, MUTED, GRID, HIGHLIGHT = "#1A1B1D", "#5A5B5D", "#DCDDDF", "#C8C9CB"
LINE_STYLES: Sequence[LineStyleType] = ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P")
# Fillings of markers of methods that share a colour.
FILLS = ("full", "none", "left", "top", "right", "bottom")
# matplotlib settings of all pictures.
RC_PARAMS: Any = {
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
# Keywords of a legend to the right of its panel.
LEGEND_BESIDE: Any = {"loc": "upper left", "bbox_to_anchor": (1.02, 1.02), "handlelength": 2.6, "fontsize": 8}


@contextmanager
def plot_style() -> Iterator[None]:
    """Pictures that are drawn and saved inside look as those of a report do."""
    matplotlib = import_without("matplotlib", "matplotlibrc")
    with matplotlib.rc_context():
        # Nor what a notebook's matplotlibrc says: with text.usetex it would run LaTeX.
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(RC_PARAMS)
        yield


def new_figure(width: float, height: float) -> Figure:
    """A figure of some inches that pyplot does not know of."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def add_legend(panel: Axes | Figure, **options: Any) -> None:
    """A legend without a frame, whose texts are no formulas; `options` is Matplotlib's."""
    for text in panel.legend(frameon=False, **options).get_texts():
        text.set_parse_math(False)


def save_figure(figure: Figure, *paths: Path) -> list[Path]:
    """Into files of the kinds that their names say; returns them.

    Raises:
        SpinbenchError: a file cannot be written.
    """
    for path in paths:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, dpi=150)
            if path.suffix == ".svg":
                _describe_svg(path, figure)
        except OSError as error:
            raise SpinbenchError(f"the picture {path} cannot be written: {error.strerror or error}") from error
        # The layout is fixed now, so that every file format gets the same.
        freeze_layout(figure)
    return list(paths)


def _describe_svg(path: Path, figure: Figure) -> None:
    """For readers who do not see the picture: what its panels show, or its file's name."""
    titles = [axes.get_title() or axes.get_ylabel() for axes in figure.axes]
    label = html.escape(figure.get_suptitle() or "; ".join(filter(None, dict.fromkeys(titles))) or path.stem)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1), encoding="utf-8")


def add_grid(panel: Axes) -> None:
    """Lines below all else."""
    panel.grid(which="major", color=GRID, linewidth=0.7)
    panel.set_axisbelow(True)


def freeze_layout(figure: Figure) -> None:
    """Keep margins as they are: arranging takes longer than drawing."""
    figure.set_layout_engine("none")


def set_log_ticks(axis: Axis, first: float, last: float) -> None:
    """Marks of a logarithmic axis from `first` to `last`, labelled with plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if last < 30 * first else (1,), numticks=9))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("e-0", "e-")))
    # Ticks take most of the drawing time.
    axis.set_minor_locator(NullLocator())


METHOD_STYLES = tuple(itertools.product(FILLS, COLOURS))
BACKEND_STYLES = tuple(
    (LINE_STYLES[i % len(LINE_STYLES)], MARKERS[i % len(MARKERS)]) for i in range(len(LINE_STYLES) * len(MARKERS))
)


@dataclass(frozen=True)
class PlotStyles:
    """Colour and filling tell the method, line and marker the backend; the same in every sweep, report and picture."""

    colours: dict[str, str]
    fills: dict[str, str]
    lines: dict[str, tuple[LineStyleType, str]]

    @classmethod
    def from_rows(cls, rows: Iterable[Row]) -> PlotStyles:
        """For all methods and backends of a leaderboard."""
        board = list(rows)
        methods = _assign_method_styles(row.method for row in board)
        names, known = {row.backend for row in board}, defaults.BACKEND_ORDER
        backends = assign_style_indices(names, known, len(BACKEND_STYLES), _backend_style)
        return cls(
            {method: METHOD_STYLES[place][1] for method, place in methods.items()},
            {method: METHOD_STYLES[place][0] for method, place in methods.items()},
            {backend: BACKEND_STYLES[place] for backend, place in backends.items()},
        )


def method_colour(method: str) -> str:
    """Of a method that stands beside no other."""
    return METHOD_STYLES[_assign_method_styles([method])[method]][1]


def _assign_method_styles(methods: Iterable[str]) -> dict[str, int]:
    return assign_style_indices(methods, defaults.METHOD_ORDER, len(METHOD_STYLES), _method_style)


def assign_style_indices(
    names: Iterable[str],
    reserved_names: Sequence[str],
    count: int,
    choice: Callable[[str], int | None] = lambda name: None,
) -> dict[str, int]:
    """The place of each name among so many looks, in alphabetical order.

    Those that are known have places of their own. A plugin's is its choice, or follows from its name; where another has
    it already, the next free one is taken, and looks are shared only where there are more names than looks.
    """
    ordered = sorted(set(names))
    indices = {name: reserved_names.index(name) for name in ordered if name in reserved_names}
    for name in ordered:
        if name not in indices:
            first, used_indices = choice(name), set(indices.values())
            first = zlib.crc32(name.encode()) % count if first is None else first
            indices[name] = next(
                (i % count for i in range(first, first + count) if i % count not in used_indices), first % count
            )
    return {name: indices[name] for name in ordered}


def _method_style(name: str) -> int | None:
    """What a method chose; None where it did not, or is not installed."""
    with suppress(SpinbenchError):
        return registry.method_class(name).profile.style
    return None


def _backend_style(name: str) -> int | None:
    return kernels.backend_profile(name).style


# Prefix of the ids of curves, followed by the row's number.
ROW_PREFIX = "row-"

_CSS_VARIABLES = {
    **{colour.lower(): f"var(--c{i})" for i, colour in enumerate(COLOURS)},
    INK.lower(): "var(--ink)",
    MUTED.lower(): "var(--muted)",
    GRID.lower(): "var(--grid)",
    HIGHLIGHT.lower(): "var(--highlight)",
}


def render_inline_svg(
    figure: Figure, name: str, label: str, titles: Mapping[str, str], attributes: Mapping[str, str] | None = None
) -> Markup:
    """The figure as an `<svg>` element.

    Args:
        figure: drawn in the colours of `accuracy_plots`.
        name: makes ids unique within a page; letters and digits.
        label: for readers who do not see the picture.
        titles: by number of the row, what a curve shows when it is pointed at.
        attributes: of the element.
    """
    output = io.StringIO()
    for axes in figure.axes:
        axes.set_facecolor("none")
    figure.savefig(output, format="svg", transparent=True, metadata={"Date": None})
    text = output.getvalue()
    text = text[text.index("<svg") :]
    edits: list[tuple[str, str | Callable[[re.Match[str]], str], int]] = [
        (r"(?s)<metadata>.*?</metadata>|<style.*?</style>", "", 0),
        (r' (?:width|height)="[^"]*pt"', "", 2),
        (r'\b(?:d|x|y)="[^"]*"', lambda match: re.sub(r"(\.\d)\d+", r"\1", match[0]), 0),
        ("#[0-9a-fA-F]{6}", lambda match: _CSS_VARIABLES.get(match[0].lower(), match[0]), 0),
        (r'\bid="', f'id="{name}-', 0),
        (r'(xlink:href="#|url\(#)', f"\\1{name}-", 0),
        (
            f'<g id="{name}-{ROW_PREFIX}(\\d+)">',
            lambda match: f'<g data-row="{match[1]}"><title>{html.escape(titles.get(match[1], ""))}</title>',
            0,
        ),
    ]
    for pattern, replacement, count in edits:
        text = re.sub(pattern, replacement, text, count=count)
    svg_attributes = {"role": "img", "aria-label": label, **(attributes or {})}
    return Markup(
        text.replace(
            "<svg", " ".join(["<svg", *(f'{key}="{html.escape(value)}"' for key, value in svg_attributes.items())]), 1
        )
    )
