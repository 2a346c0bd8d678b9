"""Sweeps of any factor graph by look-ups, replica after replica, each at a β of its own."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from spinbench.backends.numba.gibbs.form import row_keys
from spinbench.backends.numba.gibbs.shared import INLINE, JIT, whole_vectors
from spinbench.backends.numba.simd.memory import keep
from spinbench.backends.numba.simd.random import below, fill_rows
from spinbench.backends.numba.tempering.houdayer import HOTTEST, component, partners_of
from spinbench.backends.numba.tempering.swaps import LANES, Array, Asked, Ladder, Told, swap_rungs
from spinbench.mathematics.graphs.factor_tables import FactorTables
from spinbench.methods.tempering.graphs import GraphTables, neighbours


class Flat(NamedTuple):
    """A factor graph; indices are uint32 (Numba checks signed ones for negative numbers).

    Attributes:
        cards: (N,) int64; first: (N,) int64, of each variable's probabilities.
        starts: (N + 1,) int64, where each variable's factors begin in factors and strides (S,).
        entries: (2, T) log tables for β < 1 and for β = 1, in the kernel's precision; hard zeros are as in
            `spinbench.methods.tempering.graphs`.
        zeros: (T,) float64 1 where the entry is one.
        start: (N + 1,) int64, where each variable's neighbours begin in columns (E,).
        order: (N,) int64 of a sweep.
    """

    cards: Array
    first: Array
    starts: Array
    factors: Array
    strides: Array
    entries: Array
    zeros: Array
    start: Array
    columns: Array
    order: Array


class Replicas(NamedTuple):
    """C replicas, of which number k L + l is ladder l in slot k.

    Attributes:
        keys: (C, 2) uint64; x: (C, N) int32 states; places: (C, F) int64 of the factors' entries.
    """

    keys: Array
    x: Array
    places: Array


@nb.njit(**INLINE)
def _fields(f, v, table, x, places, beta, out):
    """β times the log weights of the states of v, given the rest, into `out`."""
    own = x[v]
    for k in range(f.cards[v]):
        out[k] = 0.0
    for e in range(f.starts[v], f.starts[v + 1]):
        stride = np.int64(f.strides[e])
        base = places[f.factors[e]] - own * stride
        for k in range(f.cards[v]):
            out[k] += np.float64(table[np.uint64(base + k * stride)])
    for k in range(f.cards[v]):
        out[k] *= beta


@nb.njit(**INLINE)
def _weights(count, out):
    """Fields to weights, the largest 1; their sum."""
    top = out[0]
    for k in range(1, count):
        top = max(top, out[k])
    total = 0.0
    for k in range(count):
        out[k] = np.exp(out[k] - top)
        total += out[k]
    return total


@nb.njit(**INLINE)
def _chosen(count, out, left):
    """The state in whose part of the weights `left` falls."""
    for k in range(count - 1):
        left -= out[k]
        if left < 0.0:
            return k
    last = count - 1
    while out[last] == 0.0:  # rounding must not choose what has no weight
        last -= 1
    return last


@nb.njit(**INLINE)
def _move(f, v, state, x, places):
    change = state - x[v]
    if change:
        x[v] = state
        for e in range(f.starts[v], f.starts[v + 1]):
            places[f.factors[e]] += change * np.int64(f.strides[e])


@nb.njit(**INLINE)
def _sweep(f, x, places, beta, cold, u, out, sums):
    """One replica; `cold`: whether its p is summed."""
    table = f.entries[1] if cold else f.entries[0]
    for i in range(len(f.order)):
        v = f.order[i]
        count = f.cards[v]
        _fields(f, v, table, x, places, beta, out)
        total = _weights(count, out)
        if cold:
            for k in range(count):
                sums[f.first[v] + k] += out[k] / total
        _move(f, v, _chosen(count, out, np.float64(u[i]) * total), x, places)


@nb.njit(**INLINE)
def _weigh(f, zeros, places):
    """(D, hard zeros met) of a replica."""
    total, lost = 0.0, 0.0
    table = f.entries[0]
    for k in range(len(places)):
        total += np.float64(table[np.uint64(places[k])])
    if zeros:
        for k in range(len(places)):
            lost += f.zeros[np.uint64(places[k])]
    return total, lost


@nb.njit(**INLINE)
def _exchange(f, replicas, w, partners, step):
    """Houdayer's moves, see `houdayer.exchange`; D is left as it was."""
    keys, moves, stack, mark = partners
    rungs, ladders = w.slot.shape
    x, places, lowest = replicas.x, replicas.places, rungs // HOTTEST
    for j in range(keys.shape[1]):
        for q in range(moves):
            counter = np.uint64(2) * (np.uint64(step) * np.uint64(moves) + np.uint64(q))
            r = lowest + below(keys[0, j], keys[1, j], counter, rungs - lowest)
            one = np.int64(w.slot[r, 2 * j]) * ladders + 2 * j
            other = np.int64(w.slot[r, 2 * j + 1]) * ladders + 2 * j + 1
            differ = 0
            for v in range(x.shape[1]):
                mark[v] = x[one, v] != x[other, v]
                if mark[v]:
                    stack[differ] = v
                    differ += 1
            if differ:
                seed = stack[below(keys[0, j], keys[1, j], counter + np.uint64(1), differ)]
                for v in stack[: component(f, seed, mark, stack)]:
                    first, second = x[one, v], x[other, v]
                    _move(f, v, second, x[one], places[one])
                    _move(f, v, first, x[other], places[other])


@nb.njit(**JIT)
def weigh_graphs(f, replicas, w, zeros, chains):
    """D and hard zeros of all replicas of the first `chains` ladders."""
    ladders = w.slot.shape[1]
    for k in range(w.slot.shape[0]):
        for c in range(chains):
            w.energy[k, c], w.zeros[k, c] = _weigh(f, zeros, replicas.places[k * ladders + c])


@nb.njit(**JIT)
def run_graphs(f, replicas, w, told, partners, steps, sweeps, zeros, sums):
    """Steps of all ladders; sums (C, ΣK_v) float64 gains p of the replicas at β = 1."""
    rungs, ladders = w.slot.shape
    chains, n = len(sums), len(f.cards)
    scratch, out = np.zeros((3, rungs, ladders)), np.empty(f.cards.max())
    u = np.empty(whole_vectors(n), dtype=f.entries.dtype)
    for t in range(steps.first, steps.end):
        for k in range(rungs):
            for c in range(chains):
                row = k * ladders + c
                x, places = replicas.x[row], replicas.places[row]
                for j in range(sweeps):
                    fill_rows(replicas.keys[row], np.uint64(t * sweeps + j) * np.uint64(n + 1), u)
                    _sweep(f, x, places, np.float64(w.heat[k, c]), w.cold[k, c] > 0, u, out, sums[c])
        if partners.moves:
            _exchange(f, replicas, w, partners, t)
        weigh_graphs(f, replicas, w, zeros, chains)
        swap_rungs(w, told, t, zeros, scratch)
    keep(u)


class Graphs:
    """Of one model and so many ladders of R rungs."""

    def __init__(self, graph: FactorTables, tables: GraphTables, real: np.dtype[Any], rungs: int, chains: int) -> None:
        self._graph, self._chains = graph, chains
        self.ladders, self.slots = -(-chains // LANES) * LANES, rungs
        self.zeros = tables.zeros is not None
        n, edges = len(graph.cardinalities), neighbours(graph)
        ends = np.concatenate([edges[:, 0], edges[:, 1]])
        others = np.concatenate([edges[:, 1], edges[:, 0]])
        first = np.cumsum([0, *graph.cardinalities])
        met = np.zeros(tables.entries.shape[1]) if tables.zeros is None else tables.zeros
        self._flat = Flat(
            cards=graph.cardinalities,
            first=first[:-1],
            starts=graph.starts,
            factors=graph.factors.astype(np.uint32),
            strides=graph.strides.astype(np.uint32),
            entries=tables.entries.astype(real),
            zeros=met,
            start=np.cumsum([0, *np.bincount(ends, minlength=n)]),
            columns=others[np.argsort(ends, kind="stable")].astype(np.uint32),
            order=np.arange(n),
        )

    def begin(self, seed: int, starts: Array) -> Replicas:
        """From states of the variables (N, R, C)."""
        n, rungs, chains = starts.shape
        whole = np.zeros((n, rungs, self.ladders), dtype=np.int64)
        whole[:, :, :chains] = starts
        x = whole.reshape(n, -1)
        places = self._graph.positions(x)
        return Replicas(row_keys(seed, x), np.ascontiguousarray(x.T, dtype=np.int32), np.ascontiguousarray(places.T))

    def weigh(self, replicas: Replicas, w: Ladder) -> None:
        """D and hard zeros of all states, anew."""
        weigh_graphs(self._flat, replicas, w, self.zeros, self._chains)

    def run(self, replicas: Replicas, w: Ladder, told: Told, asked: Asked) -> Array:
        """The sums of p (ΣK_v + 1, L) at β = 1; the last row is nothing."""
        sums = np.zeros((self._chains, int(self._graph.cardinalities.sum())))
        partners = partners_of(asked.keys, asked.moves, len(self._graph.cardinalities))
        run_graphs(self._flat, replicas, w, told, partners, asked.steps, asked.sweeps, self.zeros, sums)
        found = np.zeros((sums.shape[1] + 1, self.ladders))
        found[:-1, : self._chains] = sums.T / asked.sweeps
        return found
