"""Tempered transitions in compiled code, of any factor graph; the laws are those of `methods.baselines.round_trips`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from spinbench.api import Backend, Kernel
from spinbench.backends.numba.gibbs.shared import JIT
from spinbench.backends.numba.simd.arrays import copy_into
from spinbench.backends.numba.simd.functions import exp
from spinbench.backends.numba.simd.random import uniform
from spinbench.backends.numba.tables.layout import LaneChains, lane_chains, lane_tables, of_chains, states_of
from spinbench.backends.numba.tables.sweeps import Asked, run_sweeps, sum_weights
from spinbench.foundation import deadline
from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.mathematics.graphs.table_layouts import sweep_order
from spinbench.methods.baselines.round_trips import Tables
from spinbench.methods.baselines.tempered_transitions import TemperedTransitions
from spinbench.models import Model

Array = npt.NDArray[Any]
UPDATES = 2**22
"""Of variables in one call, about; a run of a large model may be given up after any."""


class Ways(NamedTuple):
    """Orders (N',) int64 of the sweeps up and down, and betas (T + 1,), of the kernel's precision, from 0 to 1."""

    up: Array
    down: Array
    betas: Array


class Trips(NamedTuple):
    """Of the last transitions, in float64, and what is summed.

    Attributes:
        work: (2, K, B) logs of the products up and down.
        log_p: (K, B) scratch.
        accepted: (K, B) and p (K, R, B), added to.
    """

    work: Array
    log_p: Array
    accepted: Array
    p: Array


@nb.njit(**JIT)
def _accept(chains, other, counter, trips):
    """Where a transition is accepted, a chain goes to the state of `other`."""
    keys, x, _ = chains
    blocks, n, count = x.shape
    for k in range(blocks):
        for c in range(count):
            log = trips.work[0, k, c] + trips.work[1, k, c]
            if log < 0.0 and (log == -np.inf or uniform(keys[k, 0, c], keys[k, 1, c], counter) >= exp(log)):
                continue
            trips.accepted[k, c] += 1.0
            for i in range(n):
                x[k, i, c] = other.x[k, i, c]


@nb.njit(**JIT)
def run_trips(t, ways, first, end, chains, other, trips):
    """Steps number first … end - 1 of all chains: a sweep at β = 1 and a transition.

    Args:
        t: LaneTables.
        ways: orders and temperatures.
        first, end: numbers of steps.
        chains: LaneChains at β = 1; x is written to.
        other: LaneChains as many, of the same keys, for the states on the way.
        trips: written to.
    """
    betas, last = ways.betas, ways.betas.size - 1
    stride = np.uint64(chains.x.shape[1] + 1)
    for step in range(first, end):
        s = 2 * last * step
        trips.work[:] = 0.0
        for i in range(2 * last + 1):
            up, at = i <= last, last - i if i <= last else i - last
            if i == 1:
                copy_into(other.x, chains.x)
            rise = betas[at] - betas[at + 1 if up else at - 1] if i > 0 else betas[0]
            for exact in range(0 if i == 0 else 2 if i == 2 * last else 1):
                sum_weights(t, exact == 0, other.x, trips.log_p)
                for k in range(trips.log_p.shape[0]):
                    for c in range(trips.log_p.shape[1]):
                        if exact == 0:
                            trips.work[0 if up else 1, k, c] += rise * trips.log_p[k, c]
                        elif trips.log_p[k, c] == -np.inf:
                            trips.work[1, k, c] = -np.inf
            if i < 2 * last:
                other.betas[:] = betas[at]
                order, moved = ways.up if up else ways.down, chains if i == 0 else other
                run_sweeps(t, order, Asked(i == 0, True, s + i, s + i + 1), moved, trips.p)  # once: it is inlined
        _accept(chains, other, np.uint64(s) * stride + stride - np.uint64(1), trips)  # no sweep's own number


@dataclass
class TripState:
    """Chains of one run; consumed by `advance` and `warm`.

    Attributes:
        chains: their number.
        step: steps so far, burn-in included.
        lanes: the chains; other: their scratch.
        work: (2, K, B) of the last transitions.
    """

    chains: int
    step: int
    lanes: LaneChains
    other: LaneChains
    work: Array


class TemperedTransitionsKernel(Kernel):
    """All settings of `TemperedTransitions`; float32 and float64. Products are float64."""

    def __init__(self, method: TemperedTransitions, backend: Backend, model: Model, tables: Tables) -> None:
        self._real = np.dtype(backend.precision)
        flat = factor_tables(model)
        self._t = lane_tables(flat, self._real)
        order = sweep_order(flat, "chromatic")[0]
        self._ways = Ways(order, order[::-1].copy(), tables.betas.astype(self._real))
        self._rows = len(tables.graph.blank)

    def init(self, seed: int, start: Array) -> TripState:
        lanes, other = (lane_chains(seed, start, self._real) for _ in range(2))
        return TripState(start.shape[1], 0, lanes, other, np.zeros((2, *lanes.betas.shape)))

    def advance(self, state: TripState, steps: int) -> tuple[TripState, dict[str, Array]]:
        blocks, n, count = state.lanes.x.shape
        size = (blocks, count)
        trips = Trips(state.work, np.zeros(size), np.zeros(size), np.zeros((blocks, self._rows, count)))
        end = state.step + steps
        together = max(1, UPDATES // (2 * len(self._ways.betas) * max(n, 1) * blocks * count))
        while state.step < end:
            deadline.check()
            upto = min(state.step + together, end)
            run_trips(self._t, self._ways, state.step, upto, state.lanes, state.other, trips)
            state.step = upto
        seen = {"p": of_chains(trips.p, state.chains), "accepted": of_chains(trips.accepted, state.chains)}
        return state, seen

    def look(self, state: TripState) -> dict[str, Array]:
        up, down = state.work
        return {"up": of_chains(up.copy(), state.chains), "down": of_chains(down.copy(), state.chains)}

    def states(self, state: TripState) -> Array:
        return states_of(state.lanes.x, state.chains)
