"""Where the tables of a bucket tree lie in one flat array, and how a bucket's entries find theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spinbench.reference.network import IntArray, Scope

SMALLEST = 32
"""Below, another program would save nothing."""


def padded(size: int) -> int:
    """The next power of two from 32: programs are compiled for these alone."""
    return max(SMALLEST, 1 << (size - 1).bit_length())


@dataclass(frozen=True, eq=False)
class Bucket:
    """One variable's part of the array; entries (j, s) of its clique are states j of the variable and s of the rest.

    Attributes:
        states: k of the variable.
        rest: number of states of the others.
        message, conditional: places of m(s), and of p(j | s) as (k, padded(rest)).
        pieces: (P, 2 + 3 R) int64 rows of the tables that it multiplies, P and R powers of two: the entry for (j, s) of
            a table lies at row[0] + row[1] j + Σ_r ((s // row[2 + 3r]) % row[3 + 3r]) row[4 + 3r].
        count: how many of the rows are tables.
        children: like `pieces`, for the messages' places of its children.
        child_count: how many they are.
    """

    states: int
    rest: int
    message: int
    conditional: int
    pieces: IntArray
    count: int
    children: IntArray
    child_count: int


def strided(clique: Scope, sizes: Sequence[int], scope: Scope, place: int) -> list[int]:
    """The row, as in `Bucket`, of a table over `scope`, whose variables stand in the clique's order."""
    strides: dict[int, int] = {}
    step = 1
    for variable in reversed(scope):
        strides[variable] = step
        step *= sizes[variable]
    row = [place, strides.get(clique[0], 0)]
    runs: list[list[int]] = []  # neighbours that the scope has all of are one digit
    div = 1
    joined = False
    for variable in reversed(clique[1:]):
        if variable in strides:
            if joined:
                runs[-1][1] *= sizes[variable]
            else:
                runs.append([div, sizes[variable], strides[variable]])
        joined = variable in strides
        div *= sizes[variable]
    return row + [number for run in runs for number in run]


def tables_of(lists: Sequence[list[list[int]]]) -> list[IntArray]:
    """Rows of different lengths as arrays of one shape; what is added takes the digit 0."""
    runs = max((len(row) - 2 for rows in lists for row in rows), default=0) // 3
    shape = _power(max(map(len, lists), default=0)), 2 + 3 * _power(runs)
    found = []
    for rows in lists:
        table = np.zeros(shape, dtype=np.int64)
        table[:, 2::3] = table[:, 3::3] = 1
        for k, row in enumerate(rows):
            table[k, : len(row)] = row
        found.append(table)
    return found


def _power(size: int) -> int:
    return max(8, 1 << (size - 1).bit_length())
