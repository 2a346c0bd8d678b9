"""A figure as SVG inside an HTML page: it takes the page's colours and fonts, and its curves can be found."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from spinbench.reporting import drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PREFIX = "row-"
"""Of the ids of curves; the rest is the number of the row."""

_VARIABLES = {
    **{colour.lower(): f"var(--c{i})" for i, colour in enumerate(drawing.COLOURS)},
    drawing.INK.lower(): "var(--ink)",
    drawing.MUTED.lower(): "var(--muted)",
    drawing.GRID.lower(): "var(--grid)",
    drawing.HIGHLIGHT.lower(): "var(--highlight)",
}


def inline(
    figure: Figure, name: str, label: str, titles: Mapping[str, str], attributes: Mapping[str, str] | None = None
) -> str:
    """The figure as an `<svg>` element.

    Args:
        figure: drawn in the colours of `figures`.
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
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'\b(?:d|x|y)="[^"]*"', lambda match: re.sub(r"(\.\d)\d+", r"\1", match[0]), text)
    text = re.sub("#[0-9a-fA-F]{6}", lambda match: _VARIABLES.get(match[0].lower(), match[0]), text)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'(xlink:href="#|url\(#)', f"\\1{name}-", text)
    text = re.sub(
        f'<g id="{name}-{PREFIX}(\\d+)">',
        lambda match: f'<g data-row="{match[1]}"><title>{html.escape(titles.get(match[1], ""))}</title>',
        text,
    )
    own = {"role": "img", "aria-label": label, **(attributes or {})}
    return text.replace("<svg", " ".join(["<svg", *(f'{key}="{html.escape(one)}"' for key, one in own.items())]), 1)
