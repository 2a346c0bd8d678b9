"""Bounds on log Z, by how certain they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from spinbench.api.types import LogZKind

Side = Literal["lower", "upper"]
Grade = Literal["exact", "certified", "probable", "assumed"]
GRADES: tuple[Grade, ...] = ("exact", "certified", "probable", "assumed")
"""From what holds always, to what holds if draws that were given are draws of the model.

A certified bound holds with its rounding taken off; a probable one with a probability of 1 - δ over the numbers that
were drawn, whatever mixes.
"""

CERTAIN: tuple[Grade, ...] = ("exact", "certified")


@dataclass(frozen=True)
class Bound:
    """A lower or upper bound on log Z.

    Attributes:
        value: nats.
        side: "lower" or "upper".
        grade: how certain it is: exact, certified, probable or assumed.
        delta: with which probability, at most, a probable bound is wrong, or an assumed one whose assumption holds; 0
            for the others.
        by: who gave it.
    """

    value: float
    side: Side
    grade: Grade
    delta: float = 0.0
    by: str = ""


def stated(value: float | None, kind: LogZKind, others: Iterable[Bound], by: str) -> tuple[Bound, ...]:
    """All bounds of an answer: those that it names, and log Z itself if its kind is "lower", "upper" or "exact".

    Args:
        value, kind: of log Z.
        others: that the method names beside.
        by: the method, for bounds that do not say by whom they are.
    """
    sides: dict[str, tuple[Side, ...]] = {"exact": ("lower", "upper"), "lower": ("lower",), "upper": ("upper",)}
    grade: Grade = "exact" if kind == "exact" else "certified"
    of_kind = []
    if value is not None:
        of_kind = [Bound(value, side, grade, by=by) for side in sides.get(kind, ())]
    named = [replace(bound, by=bound.by or by) for bound in others]
    return tuple(dict.fromkeys([*of_kind, *named]))
