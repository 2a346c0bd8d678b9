"""Methods and backends look the same in every sweep."""

from __future__ import annotations

import itertools
from importlib.metadata import entry_points
from typing import Any

import pytest

from spinbench.reporting import drawing
from spinbench.reporting.drawing import Looks


class Named:
    """As much of a row as is drawn."""

    def __init__(self, method: str, backend: str = "numba") -> None:
        self.method, self.backend = method, backend


def of(*names: str) -> Looks:
    rows: Any = [Named(name) for name in names]
    return Looks.of(rows)


@pytest.mark.parametrize(("group", "known"), [("methods", drawing.METHODS), ("backends", drawing.BACKENDS)])
def test_what_spinbench_has_has_a_place(group: str, known: tuple[str, ...]) -> None:
    points = entry_points(group=f"spinbench.{group}")
    own = {point.name for point in points if point.value.startswith("spinbench.")}
    assert set(known) == own
    assert len(set(known)) == len(known) <= min(len(drawing.METHOD_LOOKS), len(drawing.BACKEND_LOOKS) + 30)


def test_looks_are_those_of_the_name_whoever_stands_beside() -> None:
    alone, together = of("gibbs"), of("aardvark", "bp", "gibbs", "zebra")
    assert alone.colours["gibbs"] == together.colours["gibbs"] == drawing.method_colour("gibbs")
    assert of("zebra").colours["zebra"] == of("gibbs", "zebra").colours["zebra"]
    assert len({of(name).colours[name] for name in drawing.METHODS[:6]}) == 6, "those that are compared most often"


def test_no_two_methods_look_alike() -> None:
    names = [*drawing.METHODS, *(f"plugin{i}" for i in range(len(drawing.METHOD_LOOKS) - len(drawing.METHODS)))]
    found = of(*names)
    assert len({(found.colours[name], found.fills[name]) for name in names}) == len(names)
    assert set(of(*names, "one_more").colours) == {*names, "one_more"}


def test_no_two_backends_look_alike() -> None:
    names = [*drawing.BACKENDS, *(f"plugin{i}" for i in range(len(drawing.BACKEND_LOOKS) - len(drawing.BACKENDS)))]
    rows: Any = [Named("gibbs", name) for name in names]
    assert len(set(Looks.of(rows).lines.values())) == len(names)


MACHADO = {  # Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


@pytest.mark.parametrize("sight", MACHADO)
def test_the_colour_blind_tell_the_colours_apart(sight: str) -> None:
    """By the distance in CIELAB of what they see; two greys are just told apart at about 2."""
    seen = [
        _lab([sum(a * b for a, b in zip(row, _linear(one), strict=True)) for row in MACHADO[sight]])
        for one in drawing.COLOURS
    ]
    least = min(sum((a - b) ** 2 for a, b in zip(p, q, strict=True)) ** 0.5 for p, q in itertools.combinations(seen, 2))
    assert least > 8


def _linear(colour: str) -> list[float]:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]


def _lab(rgb: list[float]) -> list[float]:
    r, g, b = (min(max(c, 0.0), 1.0) for c in rgb)
    x = (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505
    y = 0.2126 * r + 0.7152 * g + 0.0722 * b
    z = (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089
    f = [c ** (1 / 3) if c > 0.008856 else 7.787 * c + 16 / 116 for c in (x, y, z)]
    return [116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])]
