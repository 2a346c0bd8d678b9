"""The form "single_updates": one variable after the other, in any order.

This is the plain code for what the other forms leave out: random scans, and single updates for samples.
"""

from __future__ import annotations

import numpy as np

from spinbench.backends.numba.gibbs.form import Array, Asked, Chains, Form, Steps, row_keys
from spinbench.backends.numba.gibbs.shared import (
    CALLED,
    INLINE,
    JIT,
    field,
    log_add,
    pointers,
    pull,
    whole_vectors,
)
from spinbench.backends.numba.gibbs.tables import Flat, Source
from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.simd.functions import ONE, ZERO, sigmoid, softplus
from spinbench.backends.numba.simd.memory import address, aligned_zeros, keep, load, store
from spinbench.backends.numba.simd.random import below, fill_rows, uniform


@njit(**INLINE)
def update_row(f, i, s, x, v):
    """Draw row i given the rest with the uniform number v; its field is kept in x."""
    here = field(f, i, s)
    store(x, i, here)
    store(s, i, ONE(here) if v < sigmoid(here) else ZERO(here))


@njit(**CALLED)
def log_forced(f, asked, s):
    """log T(s* <- s), float64."""
    total = asked.fixed
    for i in range(asked.tail):
        x = pull(load(f.forced, i), f, load(f.start, i), load(f.later, i), s)
        total -= np.float64(softplus(load(f.sign, i) * x))
    return total


@njit(**INLINE)
def _credit(i, averaged, steps, s, x, sums):
    """sums += `steps` times p(s_i = 1 | rest) as of the last update, or s_i."""
    value = sigmoid(load(x, i)) if averaged else load(s, i)
    store(sums, i, load(sums, i) + steps * np.float64(value))


@njit(**JIT)
def initial_fields(f, s, x):
    """x of s, both (C, N) and x perhaps wider."""
    g, n = pointers(f), s.shape[1]
    for c in range(s.shape[0]):
        row, fields = address(s, c * n), address(x, c * x.shape[1])
        for i in range(n):
            store(fields, i, field(g, i, row))


@njit(**INLINE)
def _random_sweep(g, n, t, start, gamma, s, x):
    """As many updates as there are rows, each at a row drawn anew."""
    for k in range(n):
        counter = np.uint64(2) * np.uint64(t * n + k)
        i = load(g.sequence, below(start, gamma, counter, n))
        update_row(g, i, s, x, uniform(start, gamma, counter + np.uint64(1)))


@njit(**JIT)
def run_sweeps(f, random, asked, steps, chains):
    """s, x, sums (C, N): p or s are added at the end of each sweep."""
    keys, s, x, _, sums, log_t = chains
    g, n = pointers(f), s.shape[1]
    u = np.empty(whole_vectors(n), dtype=s.dtype)
    v = address(u, 0)
    for c in range(s.shape[0]):
        row, fields, total = address(s, c * n), address(x, c * n), address(sums, c * n)
        for t in range(steps.first, steps.end):
            if asked.chib:
                log_t[c] = log_add(log_t[c], log_forced(g, asked, row))
            if random:
                _random_sweep(g, n, t, keys[c, 0], keys[c, 1], row, fields)
            else:
                fill_rows(keys[c], np.uint64(t) * np.uint64(n + 1), u)
                for i in range(n):
                    update_row(g, i, row, fields, load(v, i))
            for i in range(n):
                _credit(i, asked.averaged, 1, row, fields, total)
    keep(u)


@njit(**JIT)
def run_updates(f, random, asked, steps, chains):
    """The same with single updates for steps. held is log T at the begin of the present sweep, and counts for all
    updates of the sweep.
    """
    keys, s, x, held, sums, log_t = chains
    g, n = pointers(f), s.shape[1]
    since, count = np.empty(n, dtype=np.int64), steps.end - steps.first
    for c in range(s.shape[0]):
        start, gamma = keys[c, 0], keys[c, 1]
        row, fields, total = address(s, c * n), address(x, c * n), address(sums, c * n)
        since[:] = 0
        counted = 0
        for k in range(count):
            t = steps.first + k
            if asked.chib and t % n == 0:
                if k > counted:
                    log_t[c] = log_add(log_t[c], held[c] + np.log(k - counted))
                held[c], counted = log_forced(g, asked, row), k
            counter = np.uint64(2) * np.uint64(t)
            i = load(g.sequence, below(start, gamma, counter, n) if random else t % n)
            _credit(i, asked.averaged, k - since[i], row, fields, total)
            since[i] = k
            update_row(g, i, row, fields, uniform(start, gamma, counter + np.uint64(1)))
        for i in range(n):
            _credit(i, asked.averaged, count - since[i], row, fields, total)
        if asked.chib:
            log_t[c] = log_add(log_t[c], held[c] + np.log(count - counted))


class SingleUpdates(Form):
    """x (C, N): the fields as of the last updates."""

    name = "single_updates"

    def make_tables(self, source: Source) -> Flat:
        self._random, self._single = source.method.scan == "random", source.method.sample == "update"
        return source.flat

    def begin(self, seed: int, states: Array) -> tuple[Array, Array, Array]:
        s = np.ascontiguousarray(states.T)
        x = aligned_zeros(s.shape, self.real)
        initial_fields(self.tables, s, x)
        return row_keys(seed, states), s, x

    def run(self, asked: Asked, steps: Steps, chains: Chains) -> None:
        run = run_updates if self._single else run_sweeps
        run(self.tables, self._random, asked, steps, chains)
