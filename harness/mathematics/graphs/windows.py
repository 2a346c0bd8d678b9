"""Neighbours of the rows of a lattice as windows: where they lie at few distances, they are read without indices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from spinbench.mathematics.graphs.rows import AnyRows, FloatArray, IntArray

MAX_WINDOWS = 12
"""Most windows of a block; reading one costs about half of gathering one neighbour of each row."""
AT_ONCE = 2**14
"""Rows whose entries are looked at together."""


class Windows(NamedTuple):
    """Neighbours at few distances, as on lattices: each distance is a window of rows, read without an index.

    Attributes:
        starts: (D,) int64, where window d begins in s with P rows of zeros on both sides.
        margin: (P,) zeros.
    """

    starts: IntArray
    margin: FloatArray


class Entries(Protocol):
    """What has the entries of rows one after another, as `Rows` has."""

    @property
    def start(self) -> npt.NDArray[Any]: ...
    @property
    def columns(self) -> npt.NDArray[Any]: ...
    @property
    def weights(self) -> npt.NDArray[Any]: ...


def windowed_rows(rows: AnyRows, low: int, high: int) -> tuple[Windows, FloatArray] | None:
    """Windows and (D, high - low, 1) weights; None where the rows' neighbours are at too many distances."""
    found: set[int] = set()
    most = min(2 * int(np.diff(rows.start[low : high + 1]).max(initial=0)) + 1, MAX_WINDOWS)
    for first, end in parts(low, high):
        away = distances(rows, first, end)[1]
        least = int(away.min()) if len(away) else 0  # tables of distances from 0 on would be as long as the block
        found.update((np.flatnonzero(np.bincount(away - least)) + least).tolist())
        if len(found) > most:
            return None
    if not found:
        return None
    known = sorted(found)
    weights = np.zeros((len(known), high - low, 1))
    spread(rows, (low, high), known, weights.ravel(), low, high - low)
    n = len(rows.start) - 1
    margin = max(0, -low - known[0], known[-1] + high - n)
    return Windows(np.array(known) + low + margin, np.zeros(margin)), weights


def parts(low: int, high: int) -> Iterator[tuple[int, int]]:
    """Few rows at a time, so that what is computed from their entries takes little memory."""
    for first in range(low, high, AT_ONCE):
        yield first, min(first + AT_ONCE, high)


def distances(rows: Entries, first: int, end: int) -> tuple[IntArray, IntArray]:
    """Of each entry of rows first … end - 1 its row, and its column less that."""
    row = np.repeat(np.arange(first, end), np.diff(rows.start[first : end + 1]))
    return row, rows.columns[rows.start[first] : rows.start[end]] - row


def spread(
    rows: Entries, span: tuple[int, int], known: list[int], to: npt.NDArray[Any], base: int, length: int
) -> None:
    """Sets to[slot length + row - base] to the weight of each row's neighbour at a distance; others are left out.

    Args:
        rows: the couplings.
        span: rows, first and end.
        known: the distances, ascending, one a slot.
        to: a contiguous array.
        base: the row with which slots begin.
        length: of a slot.
    """
    if not known:
        return
    least, most = known[0], known[-1]
    begin = np.full(most - least + 1, -1)  # where a slot begins, by distance
    begin[np.array(known) - least] = np.arange(len(known)) * length
    for first, end in parts(*span):
        row, away = distances(rows, first, end)
        own = rows.weights[rows.start[first] : rows.start[end]]
        inside = (away >= least) & (away <= most)
        if not inside.all():
            row, away, own = row[inside], away[inside], own[inside]
        at = begin[away - least]
        there = at >= 0
        if not there.all():
            row, at, own = row[there], at[there], own[there]
        to[at + row - base] = own
