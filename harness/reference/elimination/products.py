"""How a bucket is a product of matrices, and the tables that it is made of."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from spinbench.reference.network import FloatArray, Scope
from spinbench.reference.solver import ZeroWeightError

# Largest number of states whose slices are added one by one: NumPy's sum along so short an axis takes 2 to 9 ns an
# entry, of slices 0.6 to 2.5.
MAX_SLICED_STATES = 8


class Product(NamedTuple):
    """How a bucket is summed.

    Attributes:
        left, right: the tables that make up L and R: a scope of the network, or a child whose message it is.
        shared, rows, columns: variables of the separator that both have, L alone, and R alone.
    """

    left: list[Scope | int]
    right: list[Scope | int]
    shared: Scope
    rows: Scope
    columns: Scope

    @property
    def message(self) -> Scope:
        """Axes of the message."""
        return self.shared + self.rows + self.columns

    def left_scope(self, v: int) -> Scope:
        """Axes of L."""
        return (*self.shared, *self.rows, v)

    def right_scope(self, v: int) -> Scope:
        """Axes of R."""
        return (*self.shared, v, *self.columns)


class Table(NamedTuple):
    """A table of the network or a message, times exp(-shift), so that logarithms lie within ±reach."""

    values: FloatArray
    scope: Scope
    shift: float
    reach: float


def centre(values: FloatArray, scope: Scope, shape: tuple[int, ...]) -> Table:
    """A message, scaled in place so that the logarithms of its positive entries lie evenly around 0.

    Raises:
        ZeroWeightError: there are none.
    """
    high, low = float(values.max()), float(values.min())
    if high == 0:
        raise ZeroWeightError
    # Zeros are exact: the smallest positive entry decides the range.
    if low == 0:
        low = float(values.min(where=values > 0, initial=high))
    middle = math.log(high) / 2 + math.log(low) / 2
    values *= math.exp(-middle)
    return Table(values.reshape(shape), scope, middle, math.log(high) - middle)


def move_last(scope: Scope, parent: Scope) -> Scope:
    """With the parent's variable, if it is there, behind the others, so that the parent takes the message as it is."""
    return tuple(u for u in scope if u not in parent) + tuple(u for u in scope if u in parent)


def axes_in(scope: Scope, target: Scope) -> list[int]:
    """Of a table over `scope`, in the order in which they come in `target`."""
    return sorted(range(len(scope)), key=lambda k: target.index(scope[k]))


def sum_axes(table: FloatArray, axes: Sequence[int]) -> FloatArray:
    """A table summed over ascending axes, one after another, since each sum makes the next one smaller.

    NumPy's sum over many short axes at once takes up to 30 ns an entry.
    """
    for done, axis in enumerate(axes):
        table = _sum_axis(table, axis - done)
    return table


def _sum_axis(table: FloatArray, axis: int) -> FloatArray:
    if table.shape[axis] > MAX_SLICED_STATES:
        return np.asarray(table.sum(axis=axis))
    slices: Iterable[FloatArray] = np.moveaxis(table, axis, 0)
    return np.asarray(functools.reduce(operator.add, slices))
