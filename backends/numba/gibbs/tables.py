"""Tables of the Gibbs kernels, in the row order of `spinbench.methods.gibbs.sweeps.Tables`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from spinbench.backends.numba.kernel_cache import njit
from spinbench.mathematics.graphs.rows import AnyRows, SquareRows, compressed_rows, entries_of
from spinbench.mathematics.graphs.sweep_layouts import Scan
from spinbench.methods.gibbs.gibbs import Gibbs
from spinbench.methods.gibbs.sweeps import Tables
from spinbench.models import PairwiseModel

Array = npt.NDArray[Any]
Made = TypeVar("Made")


class Flat(NamedTuple):
    """The model row by row. Reals are of the kernel's precision.

    Attributes:
        start: (N + 1,) int64, row i's entries are start[i] … start[i + 1] - 1: first those of later rows, then
            those of earlier rows, ascending, so that the value written last is also added last.
        later: (N,) int64, end of the entries of later rows.
        columns: (2E,) uint32 (Numba checks signed indices for negative ones).
        weights: (2E,) couplings.
        biases: (N,).
        forced: (N,) the field of a row when all earlier rows have their values in s* and all later ones are 0.
        sign: (N,) 1 - 2 s*.
        sequence: (N,) int64, the rows in the order of single updates.
    """

    start: Array
    later: Array
    columns: Array
    weights: Array
    biases: Array
    forced: Array
    sign: Array
    sequence: Array


FEW = 2**16
"""Entries of rows that NumPy puts in order before compiled code is loaded."""
AT_ONCE = 2**18
"""Entries of rows that are put in order together."""


class Source:
    """What the tables of the forms are made from.

    What large models take memory for is made when it is first read, and dropped when it will not be read again.
    """

    def __init__(self, method: Gibbs, model: PairwiseModel, tables: Tables, real: np.dtype[Any]) -> None:
        self.method, self.model, self.tables, self.real = method, model, tables, real
        self.widest = int(np.diff(self.rows.start).max(initial=0))
        self.head, self.tail = head_and_tail(self.rows)
        self._made: dict[Any, Any] = {}

    @cached_property
    def rows(self) -> AnyRows:
        """W in the order of the tables."""
        sweep = self.tables.sweep
        if isinstance(sweep, Scan) and sweep.columns is None:
            return SquareRows(sweep.weights)
        return compressed_rows(self.model, self.tables.order)

    @cached_property
    def flat(self) -> Flat:
        """In the kernel's precision."""
        return make_flat(self.model, self.tables, self.rows, self.real)

    def bare(self) -> Flat:
        """In the kernel's precision biases and signs alone."""
        biases, sign = self.model.biases[self.tables.order], 1 - 2 * self.tables.mode
        return empty_flat(self.real)._replace(biases=biases.astype(self.real), sign=sign.astype(self.real))

    @cached_property
    def bounds(self) -> Array:
        """(B + 1,) int64: the rows that are updated together, block by block."""
        return block_bounds(self.tables)

    def exact(self) -> Flat:
        """In float64, made anew."""
        return make_flat(self.model, self.tables, self.rows, np.dtype(np.float64))

    def once(self, make: Callable[[Source], Made]) -> Made:
        """What `make` makes of this; made when first asked for, and kept."""
        if make not in self._made:
            self._made[make] = make(self)
        return self._made[make]  # type: ignore[no-any-return]

    def fixed(self) -> float:
        """What rows without later neighbours add to log T(s* <- s), whatever s."""
        away = (self.flat.sign * self.flat.forced).astype(np.float64)[self.tail :]
        return -float(np.logaddexp(0.0, away).sum())

    def drop(self, *, flat: bool) -> None:
        """Forget the rows, and the flat tables, too."""
        self.__dict__.pop("rows", None)
        if flat:
            self.__dict__.pop("flat", None)


def block_bounds(tables: Tables) -> Array:
    """(B + 1,) int64: the rows that are updated together, block by block."""
    sweep = tables.sweep
    if isinstance(sweep, Scan):
        sizes = sweep.valid.sum(axis=1)
    else:
        sizes = np.array([block.biases.size for block in sweep.first + sweep.middle + sweep.last])
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def make_flat(model: PairwiseModel, tables: Tables, rows: AnyRows, real: np.dtype[Any]) -> Flat:
    """The tables of a planned model."""
    n = model.num_variables
    biases = model.biases[tables.order]
    later, pull = np.empty(n, dtype=np.int64), np.empty(n)
    columns = np.empty(len(rows.columns), dtype=np.uint32)
    weights = np.empty(len(rows.columns), dtype=real)
    put_later_first = _later_first if len(rows.columns) > FEW else few_later_first
    put_later_first(rows.start, rows.columns, rows.weights, tables.mode, columns, weights, later, pull)
    return Flat(
        start=rows.start.astype(np.int64),
        later=later,
        columns=columns,
        weights=weights,
        biases=biases.astype(real),
        forced=(biases + pull).astype(real),
        sign=(1 - 2 * tables.mode).astype(real),
        sequence=np.arange(n) if tables.single is None else tables.single.rows[:, 0].copy(),
    )


@njit(cache=True)
def _later_first(start, near, own, mode, columns, weights, later, pull):
    """columns, weights, later of `Flat`; pull (N,): Σ w s* over the earlier rows."""
    for i in range(len(later)):
        low, high = start[i], start[i + 1]
        first = low
        total = 0.0
        while first < high and near[first] < i:
            total += own[first] * mode[near[first]]
            first += 1
        later[i] = high - (first - low)
        pull[i] = total
        for e in range(first, high):
            columns[e - first + low], weights[e - first + low] = near[e], own[e]
        for e in range(low, first):
            columns[e + high - first], weights[e + high - first] = near[e], own[e]


def few_later_first(
    start: Array, near: Array, own: Array, mode: Array, columns: Array, weights: Array, later: Array, pull: Array
) -> None:
    """The same in NumPy, to the last bit."""
    n, degree = len(later), np.diff(start)
    row = np.repeat(np.arange(n), degree)
    earlier = near < row
    before = np.bincount(row[earlier], minlength=n)
    later[:] = start[1:] - before
    pull[:] = np.bincount(row[earlier], (own * mode[near])[earlier], minlength=n)
    to = np.arange(len(near)) + np.where(earlier, (degree - before)[row], -before[row])
    columns[to], weights[to] = near, own


def empty_flat(real: np.dtype[Any]) -> Flat:
    """Of no rows."""
    integers, reals = np.empty(0, dtype=np.int64), np.empty(0, dtype=real)
    columns = np.empty(0, dtype=np.uint32)
    return Flat(integers, integers, columns, reals, reals, reals, reals, integers)


def head_and_tail(rows: AnyRows) -> tuple[int, int]:
    """(rows at the begin that no earlier row is coupled to, first of the rows at the end without a later one)."""
    head, tail = len(rows.start) - 1, 0
    spans = _spans(rows)
    for row, near in (entries_of(rows, *span) for span in spans):
        if (earlier := near < row).any():
            head = int(row[earlier].min())
            break
    for row, near in (entries_of(rows, *span) for span in reversed(spans)):
        if (later := near > row).any():
            tail = int(row[later].max()) + 1
            break
    return min(head, tail), tail


def _spans(rows: AnyRows) -> list[tuple[int, int]]:
    """A few rows at a time, (first, end)."""
    n = len(rows.start) - 1
    step = max(1, AT_ONCE // max(1, int(np.diff(rows.start).max(initial=0))))
    return [(low, min(low + step, n)) for low in range(0, n, step)]
