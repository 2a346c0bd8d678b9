"""Tables of the Gibbs kernels, in the row order of `spinbench.methods.gibbs.sweeps.Tables`."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.mathematics.graphs.rows import AnyRows, SquareRows, compressed_rows, is_dense
from spinbench.mathematics.graphs.sweep_layouts import Scan, Sweep
from spinbench.methods.gibbs.gibbs import Gibbs
from spinbench.methods.gibbs.sweeps import Tables
from spinbench.models import PairwiseModel

Array = npt.NDArray[Any]


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


class Source:
    """What the tables of the forms are made from.

    What large models take memory for is made when it is first read, and dropped when it will not be read again.
    """

    def __init__(self, method: Gibbs, model: PairwiseModel, tables: Tables, real: np.dtype[Any]) -> None:
        self.method, self.model, self.tables, self.real = method, model, tables, real
        self.widest = int(np.diff(self.rows.start).max(initial=0))
        self.dense_row = int(self.rows.start[-1]) / model.num_variables if is_dense(self.rows) else 0.0

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
        sweep = self.tables.sweep
        if isinstance(sweep, Scan):
            sizes = sweep.valid.sum(axis=1)
        else:
            sizes = np.array([block.biases.size for block in sweep.first + sweep.middle + sweep.last])
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @property
    def windowed(self) -> bool:
        """Whether the neighbours of every block's rows lie in windows, as on a lattice."""
        sweep = self.tables.sweep
        return isinstance(sweep, Sweep) and all(
            block.windows is not None for block in sweep.first + sweep.middle + sweep.last
        )

    @property
    def tail(self) -> int:
        """Rows from here on are in blocks of which none has a neighbour in a later one."""
        sweep = self.tables.sweep
        return int(self.bounds[len(sweep.first + sweep.middle) if isinstance(sweep, Sweep) else -1])

    def exact(self) -> Flat:
        """In float64, made anew."""
        return make_flat(self.model, self.tables, self.rows, np.dtype(np.float64))

    def drop_rows(self) -> None:
        """Forget them; what reads them while chains run has them by now."""
        self.__dict__.pop("rows", None)


def make_flat(model: PairwiseModel, tables: Tables, rows: AnyRows, real: np.dtype[Any]) -> Flat:
    """The tables of a planned model."""
    n, near = model.num_variables, rows.columns
    biases = model.biases[tables.order]
    row = np.repeat(np.arange(n, dtype=near.dtype), np.diff(rows.start))
    earlier = near < row
    pull = np.bincount(row[earlier], (rows.weights * tables.mode[near])[earlier], minlength=n)
    later_first = np.argsort(2 * row + earlier, kind="stable")
    return Flat(
        start=rows.start.astype(np.int64),
        later=rows.start[1:] - np.bincount(row[earlier], minlength=n),
        columns=near[later_first].astype(np.uint32),
        weights=rows.weights[later_first].astype(real),
        biases=biases.astype(real),
        forced=(biases + pull).astype(real),
        sign=(1 - 2 * tables.mode).astype(real),
        sequence=np.arange(n) if tables.single is None else tables.single.rows[:, 0].copy(),
    )


def empty_flat(real: np.dtype[Any]) -> Flat:
    """Of no rows."""
    integers, reals = np.empty(0, dtype=np.int64), np.empty(0, dtype=real)
    columns = np.empty(0, dtype=np.uint32)
    return Flat(integers, integers, columns, reals, reals, reals, reals, integers)
