"""The picture of the floors while the site is built: pyproject.toml's floor plan, and the imports that there are."""

from __future__ import annotations

import html
import json
import math
import os
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generated import ROOT, package_tree

MARK = "<!-- floors -->"
"""Where a page wants the picture."""

CAPTION = (
    "Each row imports from the columns in which it has a dot, the larger the more often; all dots lie right of the "
    "stairs, so none imports upwards. The numbers count modules. Drawn from the contract and the imports themselves."
)
ROW, STEP, NAMES, HEAD = 24, 19, 330, 88
"""Pixels at full size: height of a row, width of a column, width of the rows' names, height of the columns' names."""


@dataclass(frozen=True)
class Floors:
    """What is drawn.

    Attributes:
        layers: names of folders and modules of spinbench side by side on each floor, from the top.
        wings: the folders within each.
        modules: how many stand in each.
        imports: how many lead from one to another.
    """

    layers: list[list[str]]
    wings: Mapping[str, list[str]]
    modules: Mapping[str, int]
    imports: Mapping[tuple[str, str], int]

    @property
    def names(self) -> list[str]:
        """All of them, from the top."""
        return [name for layer in self.layers for name in layer]


def on_page_content(text: str, **_: Any) -> str:
    """Puts the picture where a page wants it."""
    return text.replace(MARK, svg(read())) if MARK in text else text


def read() -> Floors:
    """The contract's floors and the code's imports."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    (plan,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    layers = [[name.strip() for name in layer.split("|")] for layer in plan]
    found = _imports()
    parts = [name.split(".")[1:] for name in found if name != "spinbench"]
    packages = {name.rpartition(".")[0] for name in found}
    wings: dict[str, list[str]] = {name: [] for layer in layers for name in layer}
    for name in sorted(packages):
        if name.count(".") == 2:
            wings[name.split(".")[1]].append(name.split(".")[2])
    pairs = Counter(
        (one.split(".")[1], other.split(".")[1])
        for one, others in found.items()
        for other in others
        if "spinbench" not in (one, other)
    )
    return Floors(layers, wings, Counter(part[0] for part in parts), pairs)


def svg(floors: Floors) -> str:
    """One row a folder, one column a folder it may import from, a dot where it does: right of the stairs."""
    names = floors.names
    width, height = NAMES + STEP * len(names) + 40, HEAD + ROW * len(names) + 4
    label = "Floors of the package, from the top, and which imports from which: none imports from a floor above it"
    return "".join(
        [
            f'<figure class="floors"><svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" ',
            f'role="img" aria-label="{label}" font-size="12" fill="currentColor">',
            *_bands(floors.layers, width - 40),
            *(part for row, name in enumerate(names) for part in _row(floors, row, name)),
            *_dots(floors.imports, names),
            f"</svg><figcaption>{CAPTION}</figcaption></figure>",
        ]
    )


def _bands(layers: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Every other floor is shaded."""
    top = HEAD
    for i, layer in enumerate(layers):
        if i % 2 == 0:
            yield f'<rect x="0" y="{top}" width="{width}" height="{ROW * len(layer)}" opacity="0.06"/>'
        top += ROW * len(layer)


def _row(floors: Floors, row: int, name: str) -> Iterator[str]:
    """A name with its wings and the number of its modules; the same name above its column; the stairs."""
    y, x = HEAD + ROW * row, NAMES + STEP * row
    wings = html.escape(" · ".join(floors.wings[name]))
    yield f'<text x="6" y="{y + 16}" font-weight="bold">{name}</text>'
    yield f'<text x="100" y="{y + 16}" font-size="10.5" opacity="0.75">{wings}</text>'
    yield f'<text x="{NAMES - 10}" y="{y + 16}" font-size="10.5" opacity="0.75" text-anchor="end">'
    yield f"{floors.modules[name]}</text>"
    yield f'<text font-size="10.5" transform="translate({x + 13},{HEAD - 5}) rotate(-50)">{name}</text>'
    yield f'<rect x="{x + 2}" y="{y + 4}" width="{STEP - 4}" height="{ROW - 8}" opacity="0.25"/>'


def _dots(imports: Mapping[tuple[str, str], int], names: Sequence[str]) -> Iterator[str]:
    """As large as there are many imports; red if they lead upwards."""
    for (one, other), count in sorted(imports.items()):
        row, column = names.index(one), names.index(other)
        if row == column:
            continue
        x, y = NAMES + STEP * (column + 0.5), HEAD + ROW * (row + 0.5)
        colour = "" if column > row else ' fill="#d00"'
        title = f"<title>{one} imports from {other}: {count} import{'s' * (count > 1)}</title>"
        yield f'<circle cx="{x:g}" cy="{y:g}" r="{2 + math.log2(count):.1f}"{colour}>{title}</circle>'


def _imports() -> dict[str, list[str]]:
    command = [sys.executable, str(Path(__file__).with_name("imports.py"))]
    surroundings = {**os.environ, "PYTHONPATH": str(package_tree())}
    done = subprocess.run(command, env=surroundings, capture_output=True, text=True, check=True)
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found
