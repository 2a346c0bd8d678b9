"""Formulas between dollar signs become SVG while the site is built: no script, font or network at reading time."""

from __future__ import annotations

import html
import re
from typing import Any

from ziamath.zmath import Latex

SIZE = 16.0
"""Of the letters, in SVG's units."""
EM = 14.5
"""Units to the height of the text around; less than SIZE, since the letters of formulas are the smaller ones."""

_FORMULA = re.compile(r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<tex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL)
_OPENING = re.compile(r'<svg (?P<names>.*?) width="(?P<width>[\d.]+)" height="(?P<height>[\d.]+)"')


def on_page_content(text: str, **_: Any) -> str:
    """Replaces what pymdownx.arithmatex marked."""
    return _FORMULA.sub(_drawn, text)


def _drawn(match: re.Match[str]) -> str:
    tex = html.unescape(match["tex"]).strip()
    inline = match["tag"] == "span"
    formula = Latex(tex, size=SIZE, inline=inline)
    below = float(formula.getyofst()) / EM

    def opening(svg: re.Match[str]) -> str:
        size = f"width:{float(svg['width']) / EM:.3f}em;height:{float(svg['height']) / EM:.3f}em"
        label = html.escape(" ".join(tex.split()))
        return f'<svg {svg["names"]} role="img" aria-label="{label}" style="{size};vertical-align:{below:.3f}em"'

    drawing = _OPENING.sub(opening, formula.svg(), count=1).replace('"black"', '"currentColor"')
    return f'<{match["tag"]} class="formula">{drawing}</{match["tag"]}>'
