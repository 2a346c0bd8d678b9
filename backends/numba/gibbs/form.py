"""What a form of the kernel is, and what its compiled code is given: `run_*(tables, asked, steps, chains)`."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.backends.numba.gibbs.tables import Source
from spinbench.backends.numba.simd.memory import aligned_empty, aligned_zeros
from spinbench.backends.numba.simd.random import chain_keys

Array = npt.NDArray[Any]
Name = Literal["pattern_lanes", "pattern_rows", "lanes", "sites", "dense", "single_updates"]
WORD = np.dtype(np.uint64)
SUM = np.dtype(np.float64)
BLOCK_VECTORS = 4
"""Vectors of chains that are advanced together: enough to hide an instruction's latency, few enough for the cache."""


class Asked(NamedTuple):
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
        keys, s, x, held: as in `GibbsState`.
        sums: float64, added to.
        log_t: float64, log of the sum of T.
    """

    keys: Array
    s: Array
    x: Array
    held: Array
    sums: Array
    log_t: Array


class Form:
    """One way to make the sweeps: its tables, how it keeps chains, its compiled code.

    Chains are kept one by one, or in K blocks of B that are advanced together. As it stands keys are (C, 2) uint64,
    states s (C, N) 0 and 1 of the kernel's precision, fields x empty, sums (C, N) and log_t (C,); of blocks s is
    (K, …, B), sums (K, N, B) and log_t (K, B). A form that keeps them otherwise says so.

    Attributes:
        name: as `GibbsKernel` chooses it.
        tables: of the form.
        looks_alone: whether it has `looks` of its own, chain by chain; others' go in vectors of chains.
    """

    name: ClassVar[Name]
    looks_alone: ClassVar[bool] = False

    def __init__(self, source: Source) -> None:
        self.real, self.n = source.real, source.model.num_variables
        self.tables = self.make_tables(source)
        # of very many chains memory takes longer to get than to fill, so that one call's is the next one's
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
            return in_blocks(self.states(s, chains), *lane_blocks(chains, self.real))
        self._lanes = _again(self._lanes, (s.shape[0], self.n, s.shape[2]))
        np.greater(s[:, : self.n], 0, out=self._lanes)
        return self._lanes

    def no_sums(self, s: Array) -> tuple[Array, Array]:
        """(sums, log_t) before a run of chains with states s."""
        self._sums = _again(self._sums, (len(s), self.n, *s.shape[2:]))
        self._sums.fill(0)
        return self._sums, np.full((len(s), *s.shape[2:]), -np.inf)

    def run(self, asked: Asked, steps: Steps, chains: Chains) -> None:
        """The sweeps; threads run this at once, on chains of their own."""
        raise NotImplementedError

    def looks(self, asked: Asked, keys: Array, step: int, s: Array, x: Array) -> Array:
        """(2, C) as `looks.looks`, at the chains' states s of fields x, of a form that `looks_alone`; keys (C, 2)."""
        raise NotImplementedError


def _again(array: Array, shape: tuple[int, ...]) -> Array:
    """The array, or a new one where it has another shape."""
    return array if array.shape == shape else aligned_empty(shape, array.dtype)


def by_chain(values: Array, chains: int) -> Array:
    """(M, C) in memory of their own, from (K, M, B) or (C, M)."""
    found = values.swapaxes(0, 1).copy()
    return found.reshape(len(found), -1)[:, :chains]


def row_keys(seed: int, states: Array) -> Array:
    """(C, 2) uint64 for states (N, C)."""
    return chain_keys(seed, states.shape[1]).T.copy()


def block_keys(seed: int, blocks: int, size: int) -> Array:
    """(K, 2, B) uint64, of K B streams."""
    keys = aligned_zeros((blocks, 2, size), WORD)
    keys[:] = chain_keys(seed, blocks * size).reshape(2, blocks, size).swapaxes(0, 1)
    return keys


def lane_blocks(chains: int, real: np.dtype[Any]) -> tuple[int, int]:
    """(blocks, chains of a block)."""
    lanes = 64 // real.itemsize
    vectors = -(-chains // lanes)
    blocks = -(-vectors // BLOCK_VECTORS)
    return blocks, -(-vectors // blocks) * lanes


def in_blocks(rows: Array, blocks: int, size: int) -> Array:
    """(K, M, B) from (C, M); 0 of idle chains."""
    found = aligned_zeros((blocks, rows.shape[1], size), rows.dtype)
    padded = np.zeros((blocks * size, rows.shape[1]), dtype=rows.dtype)
    padded[: len(rows)] = rows
    found[:] = padded.reshape(blocks, size, -1).swapaxes(1, 2)
    return found


def no_fields(real: np.dtype[Any]) -> Array:
    """(0, 0)."""
    return np.empty((0, 0), dtype=real)
