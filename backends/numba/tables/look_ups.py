"""What an update looks up, in vectors of 16 chains: log weights of a variable's states, and their weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb

from spinbench.backends.numba.gibbs.shared import INLINE
from spinbench.backends.numba.simd.functions import ZERO, at_least, constant, exp
from spinbench.backends.numba.simd.memory import address, gather, load, load_lanes, load_vector, store
from spinbench.backends.numba.simd.vectors import choose
from spinbench.backends.numba.tables.layout import LaneTables

WORDS = (0,) * 16
"""As many lanes as 512 bits have states: vectors of float64 are of 1024 bits."""
LEAST = constant(-1e30, -1e300)
"""Log weights below are zeros."""


class Lane(NamedTuple):
    """A block of chains in pointers, but for the count of its lanes.

    Attributes:
        x, betas: of `LaneChains`.
        totals: sums over recent sweeps.
        shifts: where the entries begin that a chain looks up.
        numbers: uniform numbers of an update; weights: of the states of its variable.
    """

    count: Any
    x: Any
    totals: Any
    betas: Any
    shifts: Any
    numbers: Any
    weights: Any


@nb.njit(**INLINE)
def pointers(t):
    return LaneTables(
        address(t.sizes, 0),
        address(t.starts, 0),
        address(t.bases, 0),
        address(t.strides, 0),
        address(t.other_starts, 0),
        address(t.others, 0),
        address(t.steps, 0),
        address(t.values, 0),
        t.floored,
        address(t.rows, 0),
        address(t.factor_starts, 0),
        address(t.factor_variables, 0),
        address(t.factor_strides, 0),
        address(t.factor_bases, 0),
    )


@nb.njit(**INLINE)
def _places(t, e, b, c):
    """Where the entries of incidence e stand for state 0 of its variable."""
    at = load_vector(b.shifts, c) + load(t.bases, e)
    for o in range(load(t.other_starts, e), load(t.other_starts, e + 1)):
        at = at + load_vector(b.x, load(t.others, o) * b.count + c) * load(t.steps, o)
    return at


@nb.njit(**INLINE)
def binary_logits(t, v, b, c):
    e = load(t.starts, v)
    at = _places(t, e, b, c)
    down, up = gather(t.values, at), gather(t.values, at + load(t.strides, e))
    for e in range(load(t.starts, v) + 1, load(t.starts, v + 1)):
        at = _places(t, e, b, c)
        down = down + gather(t.values, at)
        up = up + gather(t.values, at + load(t.strides, e))
    return down, up


@nb.njit(**INLINE)
def _add_entries(values, at, stride, size, first, weights):
    for k in range(size):
        found = gather(values, at)
        if not first:
            found = found + load_lanes(weights, 16 * k, WORDS)
        store(weights, 16 * k, found)
        at = at + stride


@nb.njit(**INLINE)
def _weigh(weights, size, beta):
    """Log weights become weights, the largest 1; their sum."""
    top = load_lanes(weights, 0, WORDS)
    for k in range(1, size):
        top = at_least(top, load_lanes(weights, 16 * k, WORDS))
    total = ZERO(top)
    for k in range(size):
        seen = load_lanes(weights, 16 * k, WORDS)
        weight = choose(seen > LEAST(seen), exp(beta * (seen - top)), ZERO(seen))
        store(weights, 16 * k, weight)
        total = total + weight
    return total


@nb.njit(**INLINE)
def find_logits(t, v, b, c):
    """Log weights of the states of v given the rest, into `b.weights`."""
    begin = load(t.starts, v)
    for e in range(begin, load(t.starts, v + 1)):
        at = _places(t, e, b, c)
        _add_entries(t.values, at, load(t.strides, e), load(t.sizes, v), e == begin, b.weights)


@nb.njit(**INLINE)
def weights_of(t, v, b, c):
    """Sum of the weights of the states of v, which `b.weights` holds then."""
    find_logits(t, v, b, c)
    return _weigh(b.weights, load(t.sizes, v), load_lanes(b.betas, c, WORDS))
