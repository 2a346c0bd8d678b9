"""Where the tables of a bucket tree lie in one flat array, and how a bucket's entries find theirs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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

    A row's digits (div, size, stride) find where the entry of number n lies: at Σ_r (n // div_r) % size_r · stride_r.

    Attributes:
        states: k of the variable.
        rest: number of states of the others.
        message, conditional: places of m(s), and of p(j | s) as (k, padded(rest)).
        pieces: (P, 3 + 3 R), P and R powers of two: a row for each table that it multiplies, whose entry (j, s) lies
            at row[0] + row[1] j + those of the row[2] digits behind it, n = s.
        count: how many of the rows are tables.
        children: (P, 6 + 3 R): a row for each child: the place of its message, how many states C its separator has and
            E the rest of the clique, log2 of the power of two from E, and how many digits, for n below C and E, find
            what has both in a table (k, padded(rest)).
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


def piece(clique: Scope, sizes: Sequence[int], scope: Scope, place: int) -> list[int]:
    """The row of a table over `scope`, whose variables stand in the clique's order."""
    strides = _strides(scope, sizes)
    found = _digits(clique[1:], sizes, strides)
    return [place, strides.get(clique[0], 0), len(found) // 3, *found]


def child(clique: Scope, sizes: Sequence[int], separator: Scope, place: int) -> list[int]:
    """The row of a child with this separator, in its own order, whose message lies at `place`."""
    strides = _strides(clique[1:], sizes)
    strides[clique[0]] = padded(math.prod(sizes[v] for v in clique[1:]))
    rest = tuple(v for v in clique if v not in separator)
    states, others = (math.prod(sizes[v] for v in scope) for scope in (separator, rest))
    own, theirs = _digits(separator, sizes, strides), _digits(rest, sizes, strides)
    return [place, states, others, (others - 1).bit_length(), len(own) // 3, len(theirs) // 3, *own, *theirs]


def tables_of(lists: Sequence[list[list[int]]], head: int, places: int) -> list[IntArray]:
    """Rows of different lengths, behind as many numbers as `head`, as arrays of one shape; all are below `places`."""
    digits = max((len(row) - head for rows in lists for row in rows), default=0) // 3
    shape = _power(max(map(len, lists), default=0)), head + 3 * _power(digits)
    found = []
    for rows in lists:
        table = np.zeros(shape, dtype=np.int32 if places < 2**31 else np.int64)
        for k, row in enumerate(rows):
            table[k, : len(row)] = row
        found.append(table)
    return found


def _strides(scope: Scope, sizes: Sequence[int]) -> dict[int, int]:
    found, step = {}, 1
    for variable in reversed(scope):
        found[variable] = step
        step *= sizes[variable]
    return found


def _digits(order: Scope, sizes: Sequence[int], strides: Mapping[int, int]) -> list[int]:
    """Of numbers over `order`, its last variable fastest; neighbours there and in the table are one digit."""
    found: list[list[int]] = []
    div = 1
    for variable in reversed(order):
        size, stride = sizes[variable], strides.get(variable, 0)
        if stride and found and (found[-1][0] * found[-1][1], found[-1][2] * found[-1][1]) == (div, stride):
            found[-1][1] *= size
        elif stride:
            found.append([div, size, stride])
        div *= size
    return [number for digit in found for number in digit]


def _power(size: int) -> int:
    return max(8, 1 << (size - 1).bit_length())
