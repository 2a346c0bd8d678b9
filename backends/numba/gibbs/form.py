"""What the forms of the kernel are made from, in the row order of `spinbench.methods.gibbs.sweeps.Tables`; what a form
is, and what its compiled code is given: `run_*(tables, asked, steps, chains)`.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from spinbench.api import PairwiseModel
from spinbench.backends.numba.gibbs.shared import by_chain, in_blocks, lane_blocks, row_keys
from spinbench.backends.numba.simd import Array, Real, empty_aligned
from spinbench.mathematics.graphs.rows import AnyRows, SquareRows, compressed_rows, is_dense
from spinbench.mathematics.graphs.sweep_layouts import Scan, Sweep
from spinbench.methods.gibbs import gibbs, sweeps


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

    def __init__(self, method: gibbs.Gibbs, model: PairwiseModel, tables: sweeps.Tables, real: Real) -> None:
        self.method, self.model, self.tables, self.real = method, model, tables, real
        self.widest = int(np.diff(self.rows.start).max(initial=0))
        # Mean row length; 0 where W is sparse, since rows of a sparse matrix are not contiguous in memory.
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
    def block_rows(self) -> float:
        """The mean number of rows of a block."""
        return self.model.num_variables / (len(self.bounds) - 1)

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


def make_flat(model: PairwiseModel, tables: sweeps.Tables, rows: AnyRows, real: Real) -> Flat:
    """The tables of a planned model."""
    n, near = model.num_variables, rows.columns
    biases = model.biases[tables.order]
    row = np.repeat(np.arange(n, dtype=near.dtype), np.diff(rows.start))
    earlier = near < row
    pull = np.bincount(row[earlier], (rows.weights * tables.mode[near])[earlier], minlength=n)
    # The order within a row is the order of summation. The row updated last was stored last: its state is added last,
    # which leaves the store most time before the load.
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


SUM = np.dtype(np.float64)
# Added to the seed for the random numbers of looks: larger than every seed of the chains.
LOOK_STREAM = 1 << 129
# Added to the seed for the random numbers of sweeps at other temperatures.
CLIMB_STREAM = 1 << 130


class Request(NamedTuple):
    """What is summed; for all calls of a kernel the same.

    Attributes:
        averaged: () bool, sum p(s_i = 1 | rest) as of the update; otherwise s_i after the sweep.
        chib: () bool, sum T(s* <- s) over the states before each sweep.
        tail: () rows from `tail` on have no later neighbours, so that nothing of them in log T depends on s.
        fixed: () float64, what they add to log T.
    """

    averaged: bool
    chib: bool
    tail: int
    fixed: float


class Steps(NamedTuple):
    """The steps are number first … end - 1 of the run; their numbers determine the random numbers."""

    first: int
    end: int


class Chains(NamedTuple):
    """All chains, or those of a thread; as a form keeps them, see `Form`.

    Attributes:
        keys, s, x, sweep_log_t: as in `GibbsState`.
        sums: float64, added to.
        log_t: float64, log of the sum of T.
    """

    keys: Array
    s: Array
    x: Array
    sweep_log_t: Array
    sums: Array
    log_t: Array


class Copies(NamedTuple):
    """States on the way, where log Z is to be looked for.

    Attributes:
        first: () steps made before the first copy.
        every: () further steps before each of the others.
        states: (L, *s.shape) written to.
    """

    first: int
    every: int
    states: Array


class Form:
    """One way to make the sweeps: its tables, how it keeps chains, its compiled code.

    Chains are kept one by one, or in K blocks of B that are advanced together. As it stands keys are (C, 2) uint64,
    states s (C, N) 0 and 1 of the kernel's precision, fields x empty, sums (C, N) and log_t (C,); of blocks s is
    (K, …, B), sums (K, N, B) and log_t (K, B). A form that keeps them otherwise says so.

    Attributes:
        tables: of the form.
        looks_alone: whether it has `looks` of its own, chain by chain; others' go in vectors of chains.
        look_steps: about how many steps a look takes at states that `run_and_copy` copied; 0: it does not.
    """

    looks_alone: ClassVar[bool] = False
    look_steps: ClassVar[int] = 0

    def __init__(self, source: Source) -> None:
        self.real, self.n = source.real, source.model.num_variables
        self.tables = self.make_tables(source)
        # Work arrays are reused between calls: with very many chains, the system takes longer to provide new pages than
        # the kernel to fill them.
        self._sums, self._lanes = np.empty(0), np.empty(0, dtype=self.real)

    def make_tables(self, source: Source) -> Any:
        """What the compiled code reads of the model."""
        raise NotImplementedError

    def begin(self, seed: int, states: Array) -> tuple[Array, Array, Array]:
        """(keys, s, x) of chains in `states`, (N, C) 0 and 1 of the kernel's precision."""
        return row_keys(seed, states), np.ascontiguousarray(states.T), no_fields(self.real)

    def rows(self, s: Array, chains: int) -> Array:
        """(N, C) 0 and 1, int8, from the states s of so many chains."""
        return by_chain((s[:, : self.n] > 0).view(np.int8), chains)

    def states(self, s: Array, chains: int) -> Array:
        """(C, N) the same, of the kernel's precision."""
        return np.ascontiguousarray(self.rows(s, chains).T, dtype=self.real)

    def lanes(self, s: Array, chains: int) -> Array:
        """(K, N, B) the same in blocks of B chains, idle ones at the end, and memory that may be written to."""
        if s.ndim == 2:
            return in_blocks(self.rows(s, chains).astype(self.real), *lane_blocks(chains, self.real))
        self._lanes = _again(self._lanes, (s.shape[0], self.n, s.shape[2]))
        np.greater(s[:, : self.n], 0, out=self._lanes)
        return self._lanes

    def no_sums(self, s: Array) -> tuple[Array, Array]:
        """(sums, log_t) before a run of chains with states s."""
        self._sums = _again(self._sums, (len(s), self.n, *s.shape[2:]))
        self._sums.fill(0)
        return self._sums, np.full((len(s), *s.shape[2:]), -np.inf)

    def run(self, request: Request, steps: Steps, chains: Chains) -> None:
        """The sweeps; threads run this at once, on chains of their own."""
        self.run_and_copy(request, steps, Copies(0, 0, np.empty((0, *chains.s.shape), dtype=chains.s.dtype)), chains)

    def run_and_copy(self, request: Request, steps: Steps, copies: Copies, chains: Chains) -> None:
        """As `run` of a form that has `look_steps`, with copies on the way."""
        raise NotImplementedError

    def looks(self, request: Request, keys: Array, step: int, s: Array, x: Array) -> Array:
        """(2, C) as `looks.looks`, at the chains' states s of fields x, of a form that `looks_alone`; keys (C, 2)."""
        raise NotImplementedError


def _again(array: Array, shape: tuple[int, ...]) -> Array:
    """The array, or a new one where it has another shape."""
    return array if array.shape == shape else empty_aligned(shape, array.dtype)


def no_fields(real: Real) -> Array:
    """(0, 0)."""
    return np.empty((0, 0), dtype=real)
