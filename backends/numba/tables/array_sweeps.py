"""The operations of `TableBath` in compiled code, over the same arrays: one call a sweep; and the draws of `importance`
and `rejection`, one call for all chains."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from spinbench.api import Array, FactorGraph, Key, PairwiseModel, Precision, map_arrays, to_factor_graph
from spinbench.backends.numba.kernel_cache import CALLEE, Options, njit
from spinbench.backends.numba.simd import exp
from spinbench.backends.numpy import NumpyBackend
from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.mathematics.graphs.table_layouts import Entries, TableSweep, table_sweep
from spinbench.mathematics.heat_bath.table_updates import LevelWeights, TableBath
from spinbench.methods.baselines import draws, weighted

Plan = TypeVar("Plan")
JIT: Options = {"error_model": "numpy", "cache": True, "nogil": True}
CALLED: Options = {"error_model": "numpy", **CALLEE}
# Smaller log weights stand for 0.
LOWEST = -1e30


class CompiledTableBath(TableBath):
    """Of NumPy arrays; what is not written here is `TableBath`'s own."""

    def sweep_and_conditionals(
        self, key: Key, t: TableSweep, x: Array, p: Array, beta: Array, *, backward: bool = False
    ) -> tuple[Array, Array]:
        u, shift = self._backend.uniform(key, x.shape), self.halves(t.entries, beta)
        rows = np.empty((0, 0), dtype=u.dtype) if isinstance(p, tuple) else p
        for section in reversed(t.sections) if backward else t.sections:
            _sweep(t.entries.values, section, backward, x, rows, beta, shift, u)
        return x, p

    def sweep_by_level(self, key: Key, t: TableSweep, x: Array, d: Array, weights: LevelWeights) -> tuple[Array, Array]:
        if t.single is None:
            return x, d
        x, d, u = x.copy(), d.copy(), self._backend.uniform(key, (t.single.rows.shape[0], d.shape[0]))
        shift = np.full(d.shape, t.entries.floored, dtype=np.int32)
        _sweep_by_level(t.entries.values, t.single, shift, x, d, weights, u)
        return x, d

    def log_weights(self, entries: Entries, x: Array, *, floored: bool = False) -> Array:
        return sum_log_weights(entries, int(entries.floored) if floored else 0, x)


def small_model_tables(precision: Precision, plan: Callable[[FactorGraph], Plan]) -> tuple[NumpyBackend, Plan]:
    """A backend, and tables there of a model of two variables, to compile with what is called with others."""
    backend = NumpyBackend(precision=precision)
    tables = plan(to_factor_graph(PairwiseModel.from_edges([0.0, 0.0], [(0, 1)], [0.0])))
    return backend, map_arrays(lambda leaf: backend.to_device(np.asarray(leaf)), tables)


def compile_table_bath(precision: Precision) -> None:
    """Compile what `CompiledTableBath` calls, or find it compiled."""
    backend, t = small_model_tables(
        precision, lambda model: table_sweep(factor_tables(model), "chromatic", single=True)
    )
    bath, ones = CompiledTableBath(backend), np.ones(1, dtype=precision)
    x, _ = bath.sweep_and_conditionals(
        backend.key(0), t, np.zeros((2, 1), dtype=np.int32), np.zeros((3, 1), dtype=precision), ones
    )
    weights = LevelWeights(ones[0], ones[0], np.zeros(2, dtype=precision), 0.0, logs=True)
    bath.sweep_by_level(backend.key(0), t, x, bath.log_weights(t.entries, x), weights)


@njit(**CALLED)
def find_logits(values, section, b, i, shift, x, at, logits):
    """(K, C) sums of the entries at the states of place i of chunk b, given the rest; `at` (C,) is scratch."""
    logits[:] = 0
    for f in range(section.bases.shape[1]):
        for c in range(at.size):
            at[c] = section.bases[b, f, i] + shift[c]
        for o in range(section.others.shape[1]):
            near, step = x[section.others[b, o, f, i]], section.steps[b, o, f, i]
            for c in range(at.size):
                at[c] += step * near[c]
        for k in range(len(logits)):
            weights_row, skip = logits[k], k * section.strides[b, f, i]
            for c in range(at.size):
                weights_row[c] += values[at[c] + skip]


@njit(**CALLED)
def _find_weights(logits, beta, top, total):
    """Logits (K, C) become weights at beta (C,), the heaviest 1, with the sums `total` (C,); `top` (C,) is scratch."""
    top[:] = logits[0]
    for k in range(1, len(logits)):
        for c in range(top.size):
            top[c] = max(top[c], logits[k, c])
    total[:] = 0
    for k in range(len(logits)):
        weights_row = logits[k]
        for c in range(top.size):
            weight = exp(beta[c] * (weights_row[c] - top[c]))
            weights_row[c] = weight if weights_row[c] > LOWEST else 0
            total[c] += weights_row[c]


@njit(**CALLED)
def _draw(weights, total, u, upto, states):
    """States into `states` (C,), none of weight 0, whatever is rounded; `upto` (C,) is scratch."""
    upto[:] = 0
    states[:] = 0
    for k in range(len(weights) - 1):
        weights_row = weights[k]
        for c in range(states.size):
            upto[c] += weights_row[c]
            # A count instead of a search, so that the loop over chains vectorises; the second condition stops at the
            # last state of positive weight.
            states[c] += (upto[c] <= u[c] * total[c]) & (upto[c] < total[c])


@njit(**JIT)
def _sweep(values, section, backward, x, p, beta, shift, u):
    chunks, width = section.rows.shape
    at, numbers = np.empty(len(beta), dtype=np.int32), np.empty((3, len(beta)), dtype=values.dtype)
    logits = np.empty((section.states.shape[1], len(beta)), dtype=values.dtype)
    for n in range(chunks):
        b = chunks - 1 - n if backward else n
        for i in range(width):
            # Chunks have one width; positions beyond their variables are padding.
            if section.valid[b, i] > 0:
                v, weights_row = section.rows[b, i], logits[: section.states[b, -1, i] + 1]
                find_logits(values, section, b, i, shift, x, at, weights_row)
                _find_weights(weights_row, beta, numbers[0], numbers[1])
                _draw(weights_row, numbers[1], u[v], numbers[0], x[v])
                if p.size:
                    for k in range(len(weights_row)):
                        _keep(weights_row[k], numbers[1], p[section.places[b, k, i]])


@njit(**CALLED)
def _keep(weight, total, p):
    for c in range(p.size):
        p[c] = weight[c] / total[c] if total[c] > 0 else 0


@njit(**CALLED)
def _find_level_weights(offered, weights, level_weights):
    """Of D (C,), as `LevelWeights.interpolate` says, into `level_weights` (C,)."""
    last = weights.values.size - 1
    for c in range(level_weights.size):
        place = min(max((offered[c] - weights.first) / weights.width, 0), last)
        low = min(np.int32(place), last - 1)
        above = max(offered[c] - (weights.first + weights.width * last), 0)
        part = place - low
        level_weights[c] = (1 - part) * weights.values[low] + part * weights.values[low + 1] + weights.slope * above


@njit(**JIT)
def _sweep_by_level(values, section, shift, x, d, weights, u):
    max_states = section.states.shape[1]
    at, numbers, unit = np.empty(d.size, dtype=np.int32), np.empty((3, d.size), dtype=d.dtype), np.ones_like(d)
    every = np.empty((2, max_states, d.size), dtype=d.dtype)
    for b in range(section.rows.shape[0]):
        v, size = section.rows[b, 0], section.states[b, -1, 0] + 1
        offered, level_weights, total = every[0, :size], every[1, :size], numbers[1]
        find_logits(values, section, b, 0, shift, x, at, offered)
        for c in range(d.size):
            d[c] -= offered[x[v, c], c]
        total[:] = 0
        for k in range(size):
            for c in range(d.size):
                offered[k, c] += d[c]
            _find_level_weights(offered[k], weights, level_weights[k])
        if weights.logs:
            _find_weights(level_weights, unit, numbers[0], total)
        else:
            for k in range(size):
                total += level_weights[k]
        _draw(level_weights, total, u[b], numbers[0], x[v])
        for c in range(d.size):
            d[c] = offered[x[v, c], c]


@njit(**JIT)
def sum_log_weights(entries, shift, x):
    """(C,) sums of the factors' entries, `shift` places on, at states x (N, C)."""
    sums, at = np.zeros(x.shape[1], dtype=entries.values.dtype), np.empty(x.shape[1], dtype=np.int32)
    for f in range(entries.bases.size):
        at[:] = entries.bases[f] + shift
        for o in range(entries.variables.shape[0]):
            near, step = x[entries.variables[o, f]], entries.strides[o, f]
            for c in range(at.size):
                at[c] += step * near[c]
        for c in range(at.size):
            sums[c] += entries.values[at[c]]
    return sums


class CompiledForestDraws(draws.ForestDraws):
    """Of NumPy arrays."""

    def draw_states(self, layers: draws.Layers, u: Array, x: Array) -> tuple[Array, Array]:
        x, log_q = x.copy(), np.zeros_like(u[0])
        _draw_forest(layers, u, x, log_q)
        return x, log_q


def compile_forest_draws(precision: Precision) -> None:
    """Compile what `CompiledForestDraws` calls, or find it compiled."""
    backend, t = small_model_tables(precision, weighted.Importance().plan)
    CompiledForestDraws(backend).draw_states(
        t.layers, np.zeros((3, 1), dtype=precision), np.zeros((3, 1), dtype=np.int32)
    )


@njit(**JIT)
def _draw_forest(layers, u, x, log_q):
    last = len(x) - 1
    for i in range(layers.rows.shape[0]):
        for j in range(layers.rows.shape[1]):
            v, parent = layers.rows[i, j], layers.parents[i, j]
            if v < last:
                passed, logs, row = layers.cumulative[i, j], layers.logs[i, j], x[v]
                for c in range(log_q.size):
                    above = 0 if parent == last else x[parent, c]
                    k = 0
                    # Cumulated probabilities are padded with 2 from the last state on, so that the search ends.
                    while u[v, c] >= passed[above, k]:
                        k += 1
                    row[c] = k
                    log_q[c] += logs[above, k]
