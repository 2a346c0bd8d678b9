"""The form "units": one unit after the other, of any kind and in any order.

This is the plain code for what the other forms leave out: 1-of-K groups, random scans, single updates.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from spinbench.backends.numba.gibbs.form import Array, Asked, Chains, Form, Steps, row_keys
from spinbench.backends.numba.gibbs.shared import INLINE, JIT, field, log_add, pointers, whole_vectors
from spinbench.backends.numba.gibbs.tables import Source
from spinbench.backends.numba.gibbs.unit_updates import credit, log_transition, update_unit
from spinbench.backends.numba.simd.memory import address, keep, load_table, load_uniform, store_field
from spinbench.backends.numba.simd.random import below, fill_rows, uniform
from spinbench.backends.numba.simd.vector_memory import aligned_zeros


@nb.njit(**JIT)
def initial_fields(f, s, x):
    """x of s, both (C, N) and x perhaps wider."""
    g, n = pointers(f), s.shape[1]
    for c in range(s.shape[0]):
        row, fields = address(s, c * n), address(x, c * x.shape[1])
        for i in range(n):
            store_field(fields, i, field(g, i, row))


@nb.njit(**INLINE)
def _random_sweep(g, units, t, start, gamma, s, x):
    """As many updates as there are units, each at a unit drawn anew."""
    for k in range(units):
        counter = np.uint64(2) * np.uint64(t * units + k)
        q = below(start, gamma, counter, units)
        update_unit(g, q, s, x, uniform(start, gamma, counter + np.uint64(1)))


@nb.njit(**JIT)
def run_sweeps(f, random, asked, steps, chains):
    """s, x, sums (C, N): p or s are added at the end of each sweep."""
    keys, s, x, _, sums, log_t = chains
    g, units, n = pointers(f), f.first.size, s.shape[1]
    u = np.empty(whole_vectors(n), dtype=s.dtype)
    v = address(u, 0)
    for c in range(s.shape[0]):
        row, fields, total = address(s, c * n), address(x, c * n), address(sums, c * n)
        for t in range(steps.first, steps.end):
            if asked.chib:
                log_t[c] = log_add(log_t[c], log_transition(g, units, row))
            if random:
                _random_sweep(g, units, t, keys[c, 0], keys[c, 1], row, fields)
            else:
                fill_rows(keys[c], np.uint64(t) * np.uint64(n + 1), u)
                for q in range(units):
                    update_unit(g, q, row, fields, load_uniform(v, load_table(g.first, q)))
            for q in range(units):
                credit(g, q, asked.averaged, 1, row, fields, total)
    keep(u)


@nb.njit(**JIT)
def run_updates(f, random, asked, steps, chains):
    """The same with single updates for steps. held is log T at the begin of the present sweep, and counts for all
    updates of the sweep.
    """
    keys, s, x, held, sums, log_t = chains
    g, units, n = pointers(f), f.first.size, s.shape[1]
    since, count = np.empty(units, dtype=np.int64), steps.end - steps.first
    for c in range(s.shape[0]):
        start, gamma = keys[c, 0], keys[c, 1]
        row, fields, total = address(s, c * n), address(x, c * n), address(sums, c * n)
        since[:] = 0
        counted = 0
        for k in range(count):
            t = steps.first + k
            if asked.chib and t % units == 0:
                if k > counted:
                    log_t[c] = log_add(log_t[c], held[c] + np.log(k - counted))
                held[c], counted = log_transition(g, units, row), k
            counter = np.uint64(2) * np.uint64(t)
            q = below(start, gamma, counter, units) if random else t % units
            credit(g, q, asked.averaged, k - since[q], row, fields, total)
            since[q] = k
            update_unit(g, q, row, fields, uniform(start, gamma, counter + np.uint64(1)))
        for q in range(units):
            credit(g, q, asked.averaged, count - since[q], row, fields, total)
        if asked.chib:
            log_t[c] = log_add(log_t[c], held[c] + np.log(count - counted))


class Units(Form):
    """x (C, N): the fields as of the last updates."""

    name = "units"

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._random, self._single = source.method.scan == "random", source.method.sample == "update"

    def begin(self, seed: int, states: Array) -> tuple[Array, Array, Array]:
        s = np.ascontiguousarray(states.T)
        x = aligned_zeros(s.shape, self.real)
        initial_fields(self.flat, s, x)
        return row_keys(seed, states), s, x

    def run(self, asked: Asked, steps: Steps, chains: Chains) -> None:
        run = run_updates if self._single else run_sweeps
        run(self.flat, self._random, asked, steps, chains)
