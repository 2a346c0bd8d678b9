"""Metropolis sweeps over flat factor tables in compiled code, in vectors over chains.

The laws of the moves are those of `methods.baselines.metropolis`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spinbench.api import Backend, Kernel
from spinbench.backends.numba.gibbs.shared import FLUSH, INLINE, JIT, add_recent
from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.simd.functions import ONE, ZERO, at_least, constant, exp
from spinbench.backends.numba.simd.memory import address, keep, line_address, load, load_lanes, load_vector, store
from spinbench.backends.numba.simd.vectors import choose
from spinbench.backends.numba.tables.layout import Array, LaneChains, lane_chains, lane_tables, of_chains, states_of
from spinbench.backends.numba.tables.look_ups import WORDS, Lane, binary_logits, pointers, weights_of
from spinbench.backends.numba.tables.sweeps import add_total, credit_states, drawn_state, fill_numbers, set_walk
from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.mathematics.graphs.table_layouts import sweep_order
from spinbench.methods.baselines.metropolis import Metropolis
from spinbench.methods.gibbs.graph_plan import GraphTables
from spinbench.models import Model

RAREST = constant(1e-37, 1e-300)
"""Odds below are those of a zero, and above one over them of a one: `exp` saturates there."""


class Moves(NamedTuple):
    """What sweeps do, and which they are.

    Attributes:
        credited: () bool, sum what is reported.
        averaged: () bool, conditional probabilities as of the updates, otherwise states after them.
        uniform: () bool, the proposal, otherwise metropolised Gibbs sampling's.
        first, end: () int64, numbers of the sweeps in the run, by which their random numbers are told.
    """

    credited: bool
    averaged: bool
    uniform: bool
    first: int
    end: int


@njit(**INLINE)
def _update_binary(t, v, b, c, moves):
    """The other state with the lesser of 1 and its odds, whatever the proposal."""
    down, up = binary_logits(t, v, b, c)
    u, beta = load_lanes(b.numbers, 0, WORDS), load_lanes(b.betas, c, WORDS)
    away = exp(beta * (down - up))
    x = load_vector(b.x, v * b.count + c)
    none, leaves = x & 0, choose(away > RAREST(away), away, ZERO(away))
    rises = u * away < choose(away * RAREST(away) < ONE(away), ONE(away), ZERO(away))
    drawn = choose(x == 0, choose(rises, none + 1, none), choose(u < leaves, none, none + 1))
    store(b.x, v * b.count + c, drawn)
    if moves.credited:
        credit = ONE(away) / (ONE(away) + away) if moves.averaged else choose(drawn == 1, ONE(away), ZERO(away))
        add_total(b.totals, load(t.rows, v) * b.count + c, credit)


@njit(**INLINE)
def _own_weight(b, x, size, total):
    own = ZERO(total)
    for k in range(size):
        own = own + choose(x == k, load_lanes(b.weights, 16 * k, WORDS), ZERO(own))
    return own


@njit(**INLINE)
def _propose(b, x, size, total, uniform, chances):
    """Probabilities of the next states, times one number, into `chances`; their sum."""
    own = _own_weight(b, x, size, total)
    rest = ZERO(own)
    for k in range(size):
        rest = rest + choose(x == k, ZERO(own), load_lanes(b.weights, 16 * k, WORDS))
    left, whole = ZERO(own), ZERO(own)
    for k in range(size):
        weight = load_lanes(b.weights, 16 * k, WORDS)
        if uniform:
            most = choose(own > weight, own, choose(weight > ZERO(own), weight, ONE(own)))
            whole = whole + choose(x == k, ZERO(own), ONE(own))
        else:
            most = at_least(rest, total - weight)
            most = choose(most > ZERO(own), most, ONE(own))
            whole = ONE(own)
        chance = choose(x == k, ZERO(own), weight / most)
        store(chances, 16 * k, chance)
        left = left + chance
    stay = choose(left < whole, whole - left, ZERO(own))
    for k in range(size):
        chance = load_lanes(chances, 16 * k, WORDS)
        store(chances, 16 * k, choose(x == k, stay, chance))
    return left + stay


@njit(**INLINE)
def _update_any(t, v, b, c, moves, chances):
    total, size = weights_of(t, v, b, c), load(t.sizes, v)
    x = load_vector(b.x, v * b.count + c)
    whole = _propose(b, x, size, total, moves.uniform, chances)
    drawn = drawn_state(chances, size, load_lanes(b.numbers, 0, WORDS) * whole, whole, x & 0)
    store(b.x, v * b.count + c, drawn)
    if moves.credited:
        credit_states(b, load(t.rows, v), size, drawn, total, moves.averaged, c)


@njit(**JIT)
def run_moves(t, order, moves, chains, sums):
    """Sweeps number moves.first … moves.end - 1 of all chains, over the variables `order` (int64, those of 2 states or
    more).

    Args:
        t: LaneTables.
        order: in which variables are updated.
        moves: what is done.
        chains: LaneChains; x is written to.
        sums: (K, R, B) float64, added to where that is asked for.
    """
    keys, x, betas = chains
    blocks, n, count = x.shape
    rows, kmax = sums.shape[1], t.sizes.max()
    walk, saved = np.empty(count + 8, dtype=np.uint64), np.empty(count + 16, dtype=np.uint32)
    shifts, numbers = np.zeros(count, dtype=np.uint32), np.empty(32, dtype=betas.dtype)
    weights, spare = np.empty(16 * kmax + 16, dtype=betas.dtype), np.empty(16 * kmax + 16, dtype=betas.dtype)
    recent = np.zeros(rows * count + 16, dtype=betas.dtype)
    walker, kept, totals, chances = line_address(walk), line_address(saved), line_address(recent), line_address(spare)
    g, like = pointers(t), t.values[0]
    for k in range(blocks):
        gammas, out = address(keys, (2 * k + 1) * count), address(sums, k * rows * count)
        at, places = address(x, k * n * count), address(betas, k * count)
        b = Lane(count, at, totals, places, address(shifts, 0), line_address(numbers), line_address(weights))
        for s in range(moves.first, moves.end):
            set_walk(keys, k, np.uint64(s) * np.uint64(n + 1), walker)
            for q in range(order.size):
                v = order[q]
                for c in range(0, count, 16):
                    fill_numbers(b.numbers, walker, gammas, kept, c, q % 2 == 1, like)
                    if t.sizes[v] == 2:
                        _update_binary(g, v, b, c, moves)
                    else:
                        _update_any(g, v, b, c, moves, chances)
            if moves.credited and ((s - moves.first) % FLUSH == FLUSH - 1 or s == moves.end - 1):
                add_recent(totals, out, 1.0, rows * count)
    keep(walk)
    keep(saved)
    keep(shifts)
    keep(numbers)
    keep(weights)
    keep(spare)
    keep(recent)


@dataclass
class MetropolisState:
    """Chains of one run; consumed by `advance` and `warm`.

    Attributes:
        chains: their number.
        step: sweeps so far, burn-in included.
        lanes: the chains.
    """

    chains: int
    step: int
    lanes: LaneChains


class MetropolisKernel(Kernel):
    """All settings of `Metropolis`; float32 and float64."""

    def __init__(self, method: Metropolis, backend: Backend, model: Model, tables: GraphTables) -> None:
        flat = factor_tables(model)
        self._real = np.dtype(backend.precision)
        self._t = lane_tables(flat, self._real)
        self._order = sweep_order(flat, "chromatic")[0]
        self._rows = len(tables.variables)
        self._uniform, self._averaged = method.proposal == "uniform", method.marginals == "rao_blackwell"

    def init(self, seed: int, start: Array) -> MetropolisState:
        return MetropolisState(start.shape[1], 0, lane_chains(seed, start, self._real))

    def warm(self, state: MetropolisState, steps: int) -> MetropolisState:
        self._run(state, steps, credited=False)
        return state

    def advance(self, state: MetropolisState, steps: int) -> tuple[MetropolisState, dict[str, Array]]:
        sums = self._run(state, steps, credited=True)
        return state, {"p" if self._averaged else "s": of_chains(sums, state.chains)}

    def states(self, state: MetropolisState) -> Array:
        return states_of(state.lanes.x, state.chains)

    def _run(self, state: MetropolisState, steps: int, *, credited: bool) -> Array:
        x = state.lanes.x
        sums = np.zeros((len(x), self._rows if credited else 0, x.shape[2]))
        moves = Moves(credited, self._averaged, self._uniform, state.step, state.step + steps)
        run_moves(self._t, self._order, moves, state.lanes, sums)
        state.step += steps
        return sums
