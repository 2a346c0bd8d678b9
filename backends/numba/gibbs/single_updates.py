"""The form "single_updates": one variable after the other, in any order.

This is the plain code for what the other forms leave out: random scans, and single updates for samples.
"""

from __future__ import annotations

import numpy as np

from spinbench.backends.numba.gibbs.form import Asked, Chains, Flat, Form, Source, Steps, row_keys
from spinbench.backends.numba.gibbs.shared import (
    CALLED,
    INLINE,
    JIT,
    field,
    log_add,
    pointers,
    pull,
)
from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.simd import (
    ONE,
    ZERO,
    Array,
    address,
    aligned_zeros,
    below,
    load,
    sigmoid,
    softplus,
    store,
    uniform,
)


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


@njit(**JIT)
def run_updates(f, random, each, asked, steps, chains):
    """Steps of `each` updates, one or as many as there are rows, at rows drawn anew or in their order.

    held is log T at the begin of the present sweep, and counts for all steps of the sweep.
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
            first = (steps.first + k) * each
            if asked.chib and first % n == 0:
                if k > counted:
                    log_t[c] = log_add(log_t[c], held[c] + np.log(k - counted))
                held[c], counted = log_forced(g, asked, row), k
            for t in range(first, first + each):
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

    def make_tables(self, source: Source) -> Flat:
        self._random, self._each = source.method.scan == "random", 1 if source.method.sample == "update" else self.n
        return source.flat

    def begin(self, seed: int, states: Array) -> tuple[Array, Array, Array]:
        s = np.ascontiguousarray(states.T)
        x = aligned_zeros(s.shape, self.real)
        initial_fields(self.tables, s, x)
        return row_keys(seed, states), s, x

    def run(self, asked: Asked, steps: Steps, chains: Chains) -> None:
        run_updates(self.tables, self._random, self._each, asked, steps, chains)
