"""The form "single_updates": one variable after the other, in any order.

This is the plain code for what the other forms leave out: random scans, and single updates for samples.
"""

from __future__ import annotations

import numpy as np

from spinbench.backends.numba.gibbs.form import Chains, Flat, Form, Request, Source, Steps
from spinbench.backends.numba.gibbs.shared import CALLED, INLINE, JIT, field, log_add, pull, row_keys
from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.simd import (
    ONE,
    ZERO,
    Array,
    address,
    below,
    load,
    pointers,
    sigmoid,
    softplus,
    store,
    uniform,
    zeros_aligned,
)


@njit(**INLINE)
def update_row(f, i, s, x, v):
    """Draw row i given the rest with the uniform number v; its field is kept in x."""
    local_field = field(f, i, s)
    store(x, i, local_field)
    store(s, i, ONE(local_field) if v < sigmoid(local_field) else ZERO(local_field))


@njit(**CALLED)
def log_forced(f, request, s):
    """log T(s* <- s), float64."""
    total = request.fixed
    for i in range(request.tail):
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
def run_updates(f, random, each, request, steps, chains):
    """Steps of `each` updates, one or as many as there are rows, at rows drawn anew or in their order.

    log_t_now is log T at the begin of the present sweep, and counts for all steps of the sweep.
    """
    keys, s, x, log_t_now, sums, log_t = chains
    g, n = pointers(f), s.shape[1]
    since, count = np.empty(n, dtype=np.int64), steps.end - steps.first
    for c in range(s.shape[0]):
        start, gamma = keys[c, 0], keys[c, 1]
        row, fields, total = address(s, c * n), address(x, c * n), address(sums, c * n)
        since[:] = 0
        counted = 0
        for k in range(count):
            first = (steps.first + k) * each
            # T(s* <- s) is defined for whole sweeps and evaluated only at their start.
            if request.chib and first % n == 0:
                if k > counted:
                    # k - counted equal terms are added at once: log of the term plus log of their number.
                    log_t[c] = log_add(log_t[c], log_t_now[c] + np.log(k - counted))
                log_t_now[c], counted = log_forced(g, request, row), k
            for t in range(first, first + each):
                counter = np.uint64(2) * np.uint64(t)
                i = load(g.sequence, below(start, gamma, counter, n) if random else t % n)
                # A variable keeps its value until its next update, which adds it for all steps since then: otherwise a
                # step of one update would sum n values.
                _credit(i, request.averaged, k - since[i], row, fields, total)
                since[i] = k
                update_row(g, i, row, fields, uniform(start, gamma, counter + np.uint64(1)))
        for i in range(n):
            _credit(i, request.averaged, count - since[i], row, fields, total)
        if request.chib:
            log_t[c] = log_add(log_t[c], log_t_now[c] + np.log(count - counted))


class SingleUpdates(Form):
    """x (C, N): the fields as of the last updates."""

    def make_tables(self, source: Source) -> Flat:
        self._random, self._each = source.method.scan == "random", 1 if source.method.sample == "update" else self.n
        return source.flat

    def begin(self, seed: int, states: Array) -> tuple[Array, Array, Array]:
        s = np.ascontiguousarray(states.T)
        x = zeros_aligned(s.shape, self.real)
        initial_fields(self.tables, s, x)
        return row_keys(seed, states), s, x

    def run(self, request: Request, steps: Steps, chains: Chains) -> None:
        run_updates(self.tables, self._random, self._each, request, steps, chains)
