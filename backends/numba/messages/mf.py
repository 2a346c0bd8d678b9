"""Naive mean field in compiled code: sweeps over the variables in their order, one chain after another.

Binary pairs have a loop of their own; every other factor sums over its table for each of its variables.
"""

from __future__ import annotations

import math

import numpy as np

from spinbench.api import Backend, Model, States, messages
from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.messages.fixed_points import FixedPointKernel
from spinbench.backends.numba.messages.tables import CARD, FACTOR, START, STRIDE, TABLE, VARIABLE, make_factors
from spinbench.backends.numba.simd import Array
from spinbench.methods.messages.fixed_points import State, statistics
from spinbench.methods.messages.mf import MeanField, Tables, start_probabilities


class MFKernel(FixedPointKernel):
    """`MeanField` in raster order. Values of chains are the probabilities (S,) of all states of all variables."""

    def __init__(self, method: MeanField, backend: Backend, model: Model, tables: Tables) -> None:
        super().__init__(method, backend, tables)
        graph, near = tables.graph, tables.ascent.neighbours
        cards = graph.cardinalities
        self._first = np.append(np.cumsum(cards) - cards, cards.sum())
        theta = np.zeros(int(cards.sum()))
        theta[np.arange(len(graph.theta)) + graph.variable + 1] = graph.theta
        empty = np.zeros(0, dtype=np.int64)
        weights, others, start, degree = near[:4] if near else (np.zeros(0), empty, *[np.zeros_like(cards)] * 2)
        self._pairs = theta.astype(self._real), self._first, start, degree, others, weights.astype(self._real)
        # Pairs have a loop of their own with one weight each, so that tables are built without them.
        without = graph._replace(pairs=messages.Pairs(np.zeros(0), np.zeros((2, 0), dtype=np.int64), np.zeros((2, 0))))
        factors = make_factors(without, self._real)
        self._factors = factors.slots, factors.factors, factors.logs, factors.variables[:, 1].copy(), factors.at
        self._widest = int(cards.max(initial=1))

    def init(self, seed: int, start: States) -> State:
        q = start_probabilities(self._tables, start.astype(np.float64), np)
        flat = q.reshape(-1, start.shape[1])[self._tables.ascent.states].T
        return State(np.ascontiguousarray(flat, dtype=self._real), *np.zeros((3, len(flat))))

    def _observe(self, state: State) -> dict[str, Array]:
        return statistics("q", state.values.T.astype(np.float64), state)

    def _iterate(self, state: State, c: int, steps: int) -> tuple[int, float]:
        at = self._pairs, self._factors, self._widest, state.values[c]
        return sweeps(*at, self._tolerance, steps)  # type: ignore[no-any-return]


@njit(cache=True, error_model="numpy")
def sweeps(pairs, factors, widest, q, tolerance, steps):
    """Sweeps until no probability changes much; their number and the last sweep's largest change."""
    theta, first, start, degree, others, weights = pairs
    slots, ends, logs, incident, at = factors
    fields, forbidden = np.empty(widest), np.empty(widest)
    change = 0.0
    for step in range(steps):
        change = 0.0
        for v in range(first.size - 1):
            card = first[v + 1] - first[v]
            for x in range(card):
                fields[x] = theta[first[v] + x]
                forbidden[x] = 0.0
            # E[log f | x_v] of a pair differs between the two states of v by w q(x_u = 1).
            pull = 0.0
            for k in range(start[v], start[v] + degree[v]):
                pull += weights[k] * q[first[others[k]] + 1]
            if card > 1:
                fields[1] += pull
            for k in range(incident[v], incident[v + 1]):
                _add_expectation(slots, ends, logs, first, at[k], q, fields, forbidden)
            change = max(change, _assign(fields, forbidden, first[v], card, q))
        if change <= tolerance:
            return step + 1, change
    return steps, change


@njit(error_model="numpy")
def _add_expectation(slots, ends, logs, first, slot, q, fields, forbidden):
    """Adds E[log f | x_v] of one factor, and where its zeros have weight."""
    t = slots[slot, FACTOR]
    base = ends[t, TABLE]
    for index in range(ends[t + 1, TABLE] - base):
        weight = 1.0
        for k in range(ends[t, START], ends[t + 1, START]):
            if k != slot:
                weight *= q[first[slots[k, VARIABLE]] + (index // slots[k, STRIDE]) % slots[k, CARD]]
        x = (index // slots[slot, STRIDE]) % slots[slot, CARD]
        log = logs[base + index]
        # Zeros are counted separately: 0 · -∞ of a state that q excludes would be NaN, and one zero of positive weight
        # excludes the state.
        if log > -np.inf:
            fields[x] += weight * log
        else:
            forbidden[x] += weight


@njit(error_model="numpy")
def _assign(fields, forbidden, first, card, q):
    """q of one variable from its fields; the largest change."""
    peak = -np.inf
    for x in range(card):
        if forbidden[x] == 0 and fields[x] > peak:
            peak = fields[x]
    total = 0.0
    for x in range(card):
        fields[x] = math.exp(fields[x] - peak) if forbidden[x] == 0 else 0.0
        total += fields[x]
    change = 0.0
    for x in range(card):
        new = fields[x] / total
        change = max(change, abs(new - q[first + x]))
        q[first + x] = new
    return change
