"""Neighbours of the rows of a lattice as windows: where they lie at few distances, they are read without indices."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from spinbench.layouts import Rows

MAX_WINDOWS = 12
"""Most windows of a block; reading one costs about half of gathering one neighbour of each row."""


class Windows(NamedTuple):
    """Neighbours at few distances, as on lattices: each distance is a window of rows, read without an index.

    Attributes:
        starts: (D,) int64, where window d begins in s with P rows of zeros on both sides.
        margin: (P,) zeros.
    """

    starts: npt.NDArray[np.int64]
    margin: npt.NDArray[np.float64]


def windowed_rows(rows: Rows, low: int, high: int) -> tuple[Windows, npt.NDArray[np.float64]] | None:
    """Windows and (D, high - low, 1) weights; None where the rows' neighbours are at too many distances."""
    degree = np.diff(rows.start[low : high + 1])
    entries = slice(rows.start[low], rows.start[high])
    row = np.repeat(np.arange(high - low, dtype=rows.columns.dtype), degree)
    away = rows.columns[entries] - row
    least = int(away.min(initial=0))
    distances = np.flatnonzero(np.bincount(away - least)) + least
    if not 0 < len(distances) <= min(2 * int(degree.max()) + 1, MAX_WINDOWS):
        return None
    weights = np.zeros((len(distances), high - low, 1))
    for slot, distance in enumerate(distances.tolist()):
        here = away == distance
        weights[slot, row[here], 0] = rows.weights[entries][here]
    n = len(rows.start) - 1
    margin = max(0, -int(distances[0]), int(distances[-1]) + high - low - n)
    return Windows(distances + margin, np.zeros(margin)), weights
