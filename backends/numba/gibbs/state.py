"""The chains of a Gibbs run as each form of the kernel keeps them; the forms are those of `gibbs`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from spinbench.backends.numba.gibbs import bits, dense, pattern_lanes, units
from spinbench.backends.numba.gibbs.bands import LANES
from spinbench.backends.numba.gibbs.tables import Flat
from spinbench.backends.numba.simd.random import chain_keys
from spinbench.backends.numba.simd.vector_memory import (
    aligned_zeros,
)

Array = npt.NDArray[Any]
Form = Literal[
    "bits", "pattern_lanes", "pattern_sites", "pattern_rows", "lanes", "sites", "raster", "fixed", "dense", "units"
]

BLOCK_VECTORS = 4
"""Vectors of chains that are advanced together: enough to hide an instruction's latency, few enough for the cache."""
WORD = np.dtype(np.uint64)


@dataclass
class GibbsState:
    """Chains of one run; consumed by `advance` and `warm`.

    Attributes:
        step: steps so far, burn-in included.
        rungs: states of ladders so far.
        keys: (C, 2) uint64, of the chains; (K, 2, B) where chains are in K blocks: of the chains ("lanes"), of words
            of 64 chains ("bits") or of 4 ("pattern_lanes").
        s: (C, N) 0 and 1; in other forms

            lanes          (K, N, B), with idle chains at the end
            sites          with the columns before and after that `gibbs_bands.Bands` asks for
            bits           words (K, N, B) of 64 chains
            pattern_lanes  (K, N + 1, 32) uint16, 0 or all bits 1; the last row is 0
            pattern_sites  uint32, 0 or all bits 1, with the rows and columns of `gibbs_patterns.Sites`
            pattern_rows   (C, N + 1) uint8, the last 0

        x: (C, N), the fields as of the last updates ("units") or of s ("dense", "fixed" as integers, with columns to
            spare); else empty.
        held: (C,) log T at the begin of the present sweep ("units").
        ladder: None without one.
        look_keys: (C, 2) uint64, of looks; None where nothing is looked at.
    """

    step: int
    rungs: int
    keys: Array
    s: Array
    x: Array
    held: Array
    ladder: LadderState | None
    look_keys: Array | None = None


@dataclass
class LadderState:
    """Ladders of all chains, see `spinbench.methods.gibbs.program.Ladder`.

    Attributes:
        keys: (C, 2) uint64.
        places: (2,) uint64, key of the places of the first states.
        s: (C, N) the state reached.
        middle: (C, N) the first state.
        log_sum: (C,) log of the sum of T.
    """

    keys: Array
    places: Array
    s: Array
    middle: Array
    log_sum: Array


def whole_vectors(n: int) -> int:
    """n, rounded up to whole vectors."""
    return -(-n // LANES) * LANES


def lane_blocks(chains: int, real: np.dtype[Any]) -> tuple[int, int]:
    """(blocks, chains of a block) for the form "lanes"."""
    lanes = 64 // real.itemsize
    vectors = -(-chains // lanes)
    blocks = -(-vectors // BLOCK_VECTORS)
    return blocks, -(-vectors // blocks) * lanes


def begin(form: Form, flat: Flat, tables: Any, seed: int, states: Array) -> GibbsState:
    """Chains in given states.

    Args:
        form: of the kernel.
        flat: the model's tables.
        tables: those of the form.
        seed: of the chains' numbers.
        states: (N, C) 0 and 1, of the kernel's precision.
    """
    real, (n, chains) = states.dtype, states.shape
    keys, x = chain_keys(seed, chains).T.copy(), np.empty((0, 0), dtype=real)
    match form:
        case "lanes":
            blocks, size = lane_blocks(chains, real)
            keys, s = _block_keys(seed, blocks, size), aligned_zeros((blocks, n, size), real)
            for k in range(chains):
                s[k // size, :, k % size] = states[:, k]
        case "bits":
            blocks, size = bits.word_blocks(chains)
            keys, s = _block_keys(seed, blocks, size), aligned_zeros((blocks, n, size), WORD)
            s[:] = bits.pack_states(states, blocks, size)
        case "pattern_lanes":
            size = pattern_lanes.CHAINS
            blocks = -(-chains // size)
            keys = _block_keys(seed, blocks, size // pattern_lanes.PARTS)
            s = aligned_zeros((blocks, n + 1, size), np.dtype(np.uint16))
            for k in range(chains):
                s[k // size, :n, k % size] = np.where(states[:, k] > 0, pattern_lanes.EVERY, 0)
        case "pattern_sites":
            s = aligned_zeros((chains, tables.before + int(tables.bounds[-1]) + tables.after), np.dtype(np.uint32))
            s[:, tables.before + tables.rows] = np.where(states.T > 0, np.iinfo(np.uint32).max, 0)
        case "pattern_rows":
            s = np.zeros((chains, n + 1), dtype=np.uint8)
            s[:, :n] = states.T
        case "sites":
            s = aligned_zeros((chains, tables.before + n + tables.after), real)
            s[:, tables.before : tables.before + n] = states.T
        case _:
            s = np.ascontiguousarray(states.T)
    if form in ("units", "dense"):
        x = aligned_zeros((chains, whole_vectors(n) if form == "dense" else n), real)
        units.initial_fields(flat, s, x)
    elif form == "fixed":
        x = dense.fixed_fields(tables, states)
    return GibbsState(step=0, rungs=0, keys=keys, s=s, x=x, held=np.zeros(chains), ladder=None)


def states_of(form: Form, tables: Any, state: GibbsState, n: int, real: np.dtype[Any]) -> Array:
    """(C, N) 0 and 1 of the kernel's precision: the chains of `begin`, from whatever form."""
    chains, s = len(state.held), state.s
    match form:
        case "lanes":
            plain = s.swapaxes(1, 2).reshape(-1, n)[:chains]
        case "pattern_lanes":
            plain = s[:, :n].swapaxes(1, 2).reshape(-1, n)[:chains] > 0
        case "pattern_sites":
            plain = s[:, tables.before + tables.rows] > 0
        case "sites":
            plain = s[:, tables.before : tables.before + n]
        case "bits":
            raise AssertionError("chains as bits are never looked at")
        case _:
            plain = s[:, :n]
    return np.ascontiguousarray(plain, dtype=real)


def _block_keys(seed: int, blocks: int, size: int) -> Array:
    """(K, 2, B) uint64, of K B streams."""
    keys = aligned_zeros((blocks, 2, size), WORD)
    keys[:] = chain_keys(seed, blocks * size).reshape(2, blocks, size).swapaxes(0, 1)
    return keys


def begin_ladder(seed: int, states: Array) -> LadderState:
    """Ladders beside chains in `states` (N, C)."""
    n, chains = states.shape
    keys = chain_keys(seed, chains + 1).T.copy()
    empty = np.zeros((chains, n), dtype=states.dtype)
    return LadderState(keys[1:], keys[0], empty, empty.copy(), np.zeros(chains))


def empty_sums(form: Form, tables: Any, state: GibbsState, n: int) -> tuple[Array, Array]:
    """(sums of p or s, log of the sum of T), shaped as the form's kernel adds to them."""
    blocks, shape = len(state.s), (len(state.held), n)
    if form == "bits":
        return np.zeros((blocks, n, state.s.shape[2] * bits.WORD)), np.zeros(blocks)
    if form in ("lanes", "pattern_lanes"):
        size = state.s.shape[2]
        return aligned_zeros((blocks, n, size), np.dtype(np.float64)), np.full((blocks, size), -np.inf)
    if form == "pattern_sites":
        shape = (blocks, int(tables.bounds[-1]))
    return aligned_zeros(shape, np.dtype(np.float64)), np.full(len(state.held), -np.inf)


def of_chains(form: Form, tables: Any, sums: Array, log_t: Array, chains: int) -> tuple[Array, Array]:
    """The same as (N, C) and (C,)."""
    if sums.ndim == 3:
        sums = sums.swapaxes(1, 2).reshape(-1, sums.shape[1])[:chains]
    elif form == "pattern_sites":
        sums = sums[:, tables.rows]
    return sums.T, log_t.ravel()[:chains]
