"""Locally balanced jumps in compiled code: rates in a tree of sums, changed near each jump alone.

A jump takes O(log N) to find and a step for each state of each neighbour; the time that a chain stays is laid up in
one clock, which a variable reads when it changes, so that nothing is added for those that do not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.api import Backend, Kernel
from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.simd.functions import OPTIONS
from spinbench.backends.numba.simd.random import chain_keys, uniform
from spinbench.mathematics.graphs.factor_tables import FactorTables, factor_tables
from spinbench.methods.baselines.neighbourhoods import Tables, shared_factors
from spinbench.methods.baselines.zanella import Zanella
from spinbench.models import Model

Array = npt.NDArray[Any]


class Factors(NamedTuple):
    """As of `FactorTables`, and:

    Attributes:
        cards, firsts: (N,) int64 numbers of states, and where each variable's begin among all of them.
        values, zeros: (T,) log tables with 0 for hard zeros, and 1 for these.
        near_starts, near: (N + 1,), (M,) int64 each variable's neighbours of two states or more.
    """

    cards: Array
    firsts: Array
    values: Array
    zeros: Array
    offsets: Array
    scope_starts: Array
    scope_variables: Array
    scope_strides: Array
    starts: Array
    factors: Array
    near_starts: Array
    near: Array


class Walk(NamedTuple):
    """Of one chain.

    Attributes:
        logits, blocks: (S,) of all states, sums of log tables given the rest, and of zeros.
        rates: (S,) of jumps; 0 for where the chain is.
        tree: (2 L,) sums of rates: of variable v at L + v, and at each place below L of the two at twice that.
        since: (N,) the clock when each variable changed last.
    """

    logits: Array
    blocks: Array
    rates: Array
    tree: Array
    since: Array


class Sums(NamedTuple):
    """What is written. Attributes: times (C, S) in all states; total, stuck (C,)."""

    times: Array
    total: Array
    stuck: Array


@njit(cache=True, error_model="numpy", nogil=True)
def run(f, keys, numbers, chains, sums):
    """Steps numbers[0] … numbers[1] - 1, each of numbers[2] jumps, of chains (C, N) int64, which are written."""
    first, end, jumps = numbers
    count, real = len(f.cards), sums.times.dtype
    leaves = 1
    while leaves < count:
        leaves *= 2
    states = sums.times.shape[1]
    walk = Walk(
        np.zeros(states, real),
        np.zeros(states, np.int64),
        np.zeros(states, real),
        np.zeros(2 * leaves, real),
        np.zeros(count, real),
    )
    for c in range(len(chains)):
        x, times = chains[c], sums.times[c]
        for step in range(first, end):
            _begin(f, x, walk)
            clock = walk.since.dtype.type(0)
            for jump in range(jumps):
                total = walk.tree[1]
                if not total > 1e-30:  # as `jumps.LEAST`
                    clock += 1
                    sums.stuck[c] += 1
                    continue
                clock += 1 / total
                u = uniform(keys[0, c], keys[1, c], np.uint64(step) * np.uint64(jumps) + np.uint64(jump))
                v, new = _chosen(f, walk, u * total)
                times[f.firsts[v] + x[v]] += clock - walk.since[v]
                walk.since[v] = clock
                _jump(f, x, walk, v, new)
            for v in range(count):
                times[f.firsts[v] + x[v]] += clock - walk.since[v]
            sums.total[c] += clock


@njit(**OPTIONS)
def _begin(f, x, walk):
    """Sums and rates of a state, from nothing: what rounding adds stays within a step."""
    walk.logits[:], walk.blocks[:], walk.since[:] = 0, 0, 0
    for k in range(len(f.offsets) - 1):
        _add(f, x, walk, k, -1, 1)
    for v in range(len(x)):
        _rate(f, x, walk, v)
    for place in range(len(walk.tree) // 2 - 1, 0, -1):
        walk.tree[place] = walk.tree[2 * place] + walk.tree[2 * place + 1]


@njit(**OPTIONS)
def _add(f, x, walk, k, left_out, sign):
    """Factor k's part of the sums of its variables, but one, or less it."""
    base, first, last = f.offsets[k], f.scope_starts[k], f.scope_starts[k + 1]
    for i in range(first, last):
        base += x[f.scope_variables[i]] * f.scope_strides[i]
    for i in range(first, last):
        u, stride = f.scope_variables[i], f.scope_strides[i]
        if u != left_out:
            place, to = base - x[u] * stride, f.firsts[u]
            for state in range(f.cards[u]):
                walk.logits[to + state] += sign * f.values[place + state * stride]
                walk.blocks[to + state] += sign * f.zeros[place + state * stride]


@njit(**OPTIONS)
def _rate(f, x, walk, v):
    """Barker's rates of a variable, and their sum at its leaf."""
    first = f.firsts[v]
    own, total = walk.logits[first + x[v]], walk.rates.dtype.type(0)
    for state in range(f.cards[v]):
        place = first + state
        change = walk.logits[place] - own
        rate = math.exp(min(change, type(change)(0))) / (1 + math.exp(-abs(change)))
        walk.rates[place] = 0 if state == x[v] or walk.blocks[place] > 0 else rate
        total += walk.rates[place]
    walk.tree[len(walk.tree) // 2 + v] = total


@njit(**OPTIONS)
def _jump(f, x, walk, v, new):
    """To a new state of variable v."""
    for i in range(f.starts[v], f.starts[v + 1]):
        _add(f, x, walk, f.factors[i], v, -1)
    x[v] = new
    for i in range(f.starts[v], f.starts[v + 1]):
        _add(f, x, walk, f.factors[i], v, 1)
    _rate(f, x, walk, v)
    _climb(walk, v)
    for i in range(f.near_starts[v], f.near_starts[v + 1]):
        _rate(f, x, walk, f.near[i])
        _climb(walk, f.near[i])


@njit(**OPTIONS)
def _climb(walk, v):
    """The sums above a leaf."""
    place = (len(walk.tree) // 2 + v) // 2
    while place:
        walk.tree[place] = walk.tree[2 * place] + walk.tree[2 * place + 1]
        place //= 2


@njit(**OPTIONS)
def _chosen(f, walk, rest):
    """(variable, state) where the sum of rates passes `rest`; rounding ends at none that has no rate."""
    leaves, place = len(walk.tree) // 2, 1
    while place < leaves:
        place *= 2
        if (rest >= walk.tree[place] or walk.tree[place] == 0) and walk.tree[place + 1] > 0:
            rest -= walk.tree[place]
            place += 1
    v = place - leaves
    first, found = f.firsts[v], -1
    for state in range(f.cards[v]):
        rate = walk.rates[first + state]
        if rate > 0:
            found = state
            if rest < rate:
                break
        rest -= rate
    return v, found


@dataclass(frozen=True)
class Walking:
    """One run: the keys (2, C) and states (C, N) int64 of its chains, and the index of the next step."""

    keys: Array
    x: Array
    index: int


class ZanellaKernel(Kernel):
    """Rates and times have the precision that is asked for."""

    def __init__(self, method: Zanella, backend: Backend, model: Model, tables: Tables) -> None:
        self._real = np.dtype(backend.precision)
        self._factors = _factors(factor_tables(model), self._real)
        self._jumps = len(tables.jumps)
        self._reported = self._factors.firsts[tables.variables] + tables.states

    def init(self, seed: int, start: np.ndarray) -> Walking:
        return Walking(chain_keys(seed, start.shape[1]), np.ascontiguousarray(start.T, dtype=np.int64), 0)

    def advance(self, state: Walking, steps: int) -> tuple[Walking, dict[str, np.ndarray]]:
        chains, end, x = len(state.x), state.index + steps, state.x.copy()
        sums = Sums(
            np.zeros((chains, int(self._factors.cards.sum())), self._real),
            np.zeros(chains, self._real),
            np.zeros(chains, self._real),
        )
        run(self._factors, state.keys, (state.index, end, self._jumps), x, sums)
        found = {"s": sums.times[:, self._reported].T, "w": sums.total, "stuck": sums.stuck}
        return Walking(state.keys, x, end), found


def _factors(tables: FactorTables, real: np.dtype[Any]) -> Factors:
    zero = np.isneginf(tables.values)
    cards = tables.cardinalities
    near_starts, near = _neighbours(tables)
    return Factors(
        cards=cards,
        firsts=np.cumsum(cards) - cards,
        values=np.where(zero, 0.0, tables.values).astype(real),
        zeros=zero.astype(np.int64),
        offsets=tables.offsets,
        scope_starts=tables.scope_starts,
        scope_variables=tables.scope_variables,
        scope_strides=tables.scope_strides,
        starts=tables.starts,
        factors=tables.factors,
        near_starts=near_starts,
        near=near,
    )


def _neighbours(tables: FactorTables) -> tuple[Array, Array]:
    """Of each variable those of two states or more with which it shares a factor, once each: where they begin, they."""
    found = shared_factors(tables)
    starts = np.concatenate([[0], np.cumsum([len(own) for own in found])]).astype(np.int64)
    return starts, np.array([u for own in found for u in own], dtype=np.int64)
