"""Flat factor tables as the compiled sweeps read them, chains as they keep them, and what an update looks up there, in
vectors of 16 chains: log weights of a variable's states, and their weights.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from spinbench.backends.numba.gibbs.shared import INLINE, block_keys, in_blocks, lane_blocks
from spinbench.backends.numba.simd import (
    ZERO,
    Address,
    Array,
    Real,
    choose,
    constant,
    exp,
    gather,
    larger,
    load,
    load_lanes,
    load_vector,
    store,
    zeros_aligned,
)
from spinbench.errors import UnsupportedError
from spinbench.mathematics.graphs.factor_tables import FactorTables
from spinbench.mathematics.graphs.table_layouts import both_halves, marginal_rows

# Chains that are advanced together in either precision: table indices have 32 bits, and 512 bits hold 16 of them.
LANES = 16
STATE = np.dtype(np.uint32)
# Gather instructions take signed 32-bit indices.
MOST_ENTRIES = 2**31


class LaneTables(NamedTuple):
    """A model's tables, variable by variable: an incidence is a factor of a variable.

    Attributes:
        sizes: (N,) int64, states of each variable; max_states: () the largest, since Numba compiles an array's
            `max` for 0.4 s.
        starts: (N + 1,) int64, its incidences, at least one: of the entry 0 where it has no factor.
        bases: (S,) uint32, where the factor's entries begin; strides: (S,) uint32, of the variable in it.
        other_starts: (S + 1,) int64, the factor's other variables; others: int64; steps: uint32, their strides.
        values: the log tables, a 0, and where there are zeros all again, floored.
        floored: () uint32, where the floored ones begin; 0 where nothing is zero.
        rows: (N,) int64, the first row of what is reported of it, see `marginal_rows`.
        factor_starts: (F + 1,) int64; factor_variables: int64; factor_strides, factor_bases: uint32: scopes.
    """

    sizes: Array
    max_states: int
    starts: Array
    bases: Array
    strides: Array
    other_starts: Array
    others: Array
    steps: Array
    values: Array
    floored: np.uint32
    rows: Array
    factor_starts: Array
    factor_variables: Array
    factor_strides: Array
    factor_bases: Array


class LaneChains(NamedTuple):
    """C chains in K blocks of B lanes, a multiple of 16; the lanes beyond the last chain run beside them.

    Attributes:
        keys: (K, 2, B) uint64, of their random numbers.
        x: (K, N, B) uint32 states.
        betas: (K, B) inverse temperatures, of the kernel's precision; may be written to between calls.
    """

    keys: Array
    x: Array
    betas: Array


def lane_tables(tables: FactorTables, real: Real) -> LaneTables:
    """The tables in the kernel's precision.

    Raises:
        UnsupportedError: 2^31 entries or more.
    """
    values, floored = both_halves(tables)
    if len(values) >= MOST_ENTRIES:
        raise UnsupportedError(f"the factors have {len(values)} entries; backend=numba takes fewer than 2^31")
    degrees = np.diff(tables.starts)
    # A variable without factors gets one factor with the entry 0, so that no loop over factors is empty.
    alone = np.flatnonzero(degrees == 0)
    at = tables.starts[alone]
    factor = np.insert(tables.factors, at, -1)
    owner = np.repeat(np.arange(len(degrees)), np.maximum(degrees, 1))
    variables, _ = marginal_rows(tables.cardinalities)
    other_starts, others, steps = _others(tables, factor, owner)
    return LaneTables(
        sizes=tables.cardinalities,
        max_states=int(tables.cardinalities.max(initial=1)),
        starts=np.concatenate([[0], np.cumsum(np.maximum(degrees, 1))]).astype(np.int64),
        bases=np.append(tables.offsets[:-1], len(tables.values))[factor].astype(np.uint32),
        strides=np.insert(tables.strides, at, 0).astype(np.uint32),
        other_starts=other_starts,
        others=others,
        steps=steps,
        values=values.astype(real),
        floored=np.uint32(floored),
        rows=np.searchsorted(variables, np.arange(len(degrees))).astype(np.int64),
        factor_starts=tables.scope_starts,
        factor_variables=tables.scope_variables,
        factor_strides=tables.scope_strides.astype(np.uint32),
        factor_bases=tables.offsets[:-1].astype(np.uint32),
    )


def _others(tables: FactorTables, factor: Array, owner: Array) -> tuple[Array, Array, Array]:
    """(starts, variables, strides) of the other variables of each incidence; factor -1 has none."""
    orders = np.append(np.diff(tables.scope_starts), 0)[factor]
    first = np.append(tables.scope_starts[:-1], 0)[factor]
    incidence = np.repeat(np.arange(len(factor)), orders)
    ends = np.cumsum(orders)
    place = np.arange(len(incidence)) - (ends - orders)[incidence] + first[incidence]
    apart = tables.scope_variables[place] != owner[incidence]
    place, incidence = place[apart], incidence[apart]
    starts = np.concatenate([[0], np.cumsum(np.bincount(incidence, minlength=len(factor)))]).astype(np.int64)
    return starts, tables.scope_variables[place], tables.scope_strides[place].astype(np.uint32)


def lane_chains(seed: int, states: Array, real: Real) -> LaneChains:
    """Chains at states (N, C), at inverse temperature 1. Lanes without a chain repeat the first one's state."""
    blocks, size = lane_blocks(states.shape[1], STATE)
    betas = zeros_aligned((blocks, size), real)
    betas[:] = 1.0
    return LaneChains(block_keys(seed, blocks, size), in_blocks(states.astype(STATE), blocks, size), betas)


def merge_lane_blocks(values: Array, chains: int) -> Array:
    """(…, C) of values (K, …, B)."""
    blocks, *rows, lanes = values.shape
    return np.moveaxis(values, 0, -2).reshape(*rows, blocks * lanes)[..., :chains]


# As many lanes as 512 bits hold 32-bit states; float64 vectors of this length have 1024 bits.
WORDS = (0,) * 16
# Smaller log weights stand for hard zeros.
LEAST = constant(-1e30, -1e300)


class Lane(NamedTuple):
    """A block of chains in pointers, but for the count of its lanes.

    Attributes:
        x, betas: of `LaneChains`.
        totals: sums over recent sweeps.
        shifts: where the entries begin that a chain looks up.
        numbers: uniform numbers of an update; weights: of the states of its variable.
    """

    count: int  # type: ignore[assignment]  # which hides the tuple's method
    x: Address
    totals: Address
    betas: Address
    shifts: Address
    numbers: Address
    weights: Address


@nb.njit(**INLINE)
def _table_offsets(t, e, b, c):
    """Where the entries of incidence e stand for state 0 of its variable."""
    at = load_vector(b.shifts, c) + load(t.bases, e)
    for o in range(load(t.other_starts, e), load(t.other_starts, e + 1)):
        at = at + load_vector(b.x, load(t.others, o) * b.count + c) * load(t.steps, o)
    return at


@nb.njit(**INLINE)
def binary_logits(t, v, b, c):
    e = load(t.starts, v)
    at = _table_offsets(t, e, b, c)
    down, up = gather(t.values, at), gather(t.values, at + load(t.strides, e))
    for e in range(load(t.starts, v) + 1, load(t.starts, v + 1)):
        at = _table_offsets(t, e, b, c)
        down = down + gather(t.values, at)
        up = up + gather(t.values, at + load(t.strides, e))
    return down, up


@nb.njit(**INLINE)
def _add_entries(values, at, stride, size, first, weights):
    for k in range(size):
        logs = gather(values, at)
        if not first:
            logs = logs + load_lanes(weights, 16 * k, WORDS)
        store(weights, 16 * k, logs)
        at = at + stride


@nb.njit(**INLINE)
def _weigh(weights, size, beta):
    """Log weights become weights, the largest 1; their sum."""
    top = load_lanes(weights, 0, WORDS)
    for k in range(1, size):
        top = larger(top, load_lanes(weights, 16 * k, WORDS))
    total = ZERO(top)
    for k in range(size):
        log_weight = load_lanes(weights, 16 * k, WORDS)
        # `exp` saturates at a tiny positive number, but a hard zero must weigh exactly 0.
        weight = choose(log_weight > LEAST(log_weight), exp(beta * (log_weight - top)), ZERO(log_weight))
        store(weights, 16 * k, weight)
        total = total + weight
    return total


@nb.njit(**INLINE)
def find_logits(t, v, b, c):
    """Log weights of the states of v given the rest, into `b.weights`."""
    begin = load(t.starts, v)
    for e in range(begin, load(t.starts, v + 1)):
        at = _table_offsets(t, e, b, c)
        _add_entries(t.values, at, load(t.strides, e), load(t.sizes, v), e == begin, b.weights)


@nb.njit(**INLINE)
def fill_weights(t, v, b, c):
    """Sum of the weights of the states of v, which `b.weights` holds then."""
    find_logits(t, v, b, c)
    return _weigh(b.weights, load(t.sizes, v), load_lanes(b.betas, c, WORDS))
