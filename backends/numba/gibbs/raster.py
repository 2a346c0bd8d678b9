"""The form "raster": chromatic and raster sweeps of binary variables, one row after the other.

What does not depend on the row before is done in vectors, ahead of the rows (random numbers, as thresholds of the
field) or after them (sigmoids). In raster order each row still waits for the one before, about 14 cycles.

"dense" and "fixed" do the same with fields that they keep; numbers and sums are made by the functions here.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from spinbench.backends.numba.gibbs.form import Asked, Chains, Form, Steps
from spinbench.backends.numba.gibbs.shared import (
    FLUSH,
    INLINE,
    JIT,
    add_recent,
    field,
    log_add,
    log_forced_middle,
    pointers,
    whole_vectors,
)
from spinbench.backends.numba.simd.functions import ONE, ZERO, constant, log, sigmoid, softplus
from spinbench.backends.numba.simd.memory import (
    address,
    keep,
    load_field,
    load_state,
    load_sum,
    load_table,
    load_uniform,
    store_field,
    store_state,
    store_sum,
)
from spinbench.backends.numba.simd.random import fill_rows

PIECE = 4096
"""float32 terms that are summed before float64 takes over."""
SMALLEST = constant(2.0**-25, 2.0**-54)
"""Stands for a uniform number of 0."""


@nb.njit(**INLINE)
def draw_thresholds(key, t, u, v, n):
    """v = log(u / (1 - u)) for the uniform numbers u of sweep t, an array of whole vectors, and a pointer v.

    u < 1 / (1 + e^-x) is x > v, which needs no exponential between one row and the next.
    """
    fill_rows(key, np.uint64(t) * np.uint64(n + 1), u)
    numbers = address(u, 0)
    for k in range(n):
        w = load_uniform(numbers, k)
        low = SMALLEST(w)
        w = low if w < low else w
        store_field(v, k, log(w) - log(ONE(w) - w))


@nb.njit(**INLINE)
def _log_forced(f, x, count):
    """Σ log p(s*_i | field x_i) over the first rows."""
    total = 0.0
    for low in range(0, count, PIECE):
        part = ZERO(load_field(x, 0))
        for k in range(low, min(low + PIECE, count)):
            part += softplus(load_table(f.sign, k) * load_field(x, k))
        total -= np.float64(part)
    return total


@nb.njit(**INLINE)
def end_sweep(done, averaged, x, s, recent, sums, n):
    """Add p or s of all rows, once they are updated with fields x; `done` sweeps were before this one."""
    if averaged:
        for k in range(n):
            store_sum(recent, k, load_sum(recent, k) + sigmoid(load_field(x, k)))
    else:
        for k in range(n):
            store_sum(recent, k, load_sum(recent, k) + load_state(s, k))
    if done % FLUSH == FLUSH - 1:
        add_recent(recent, sums, 1.0, n)


@nb.njit(**JIT)
def run_raster(f, asked, steps, chains):
    keys, s, _, _, sums, log_t = chains
    n = s.shape[1]
    u, v = np.empty(whole_vectors(n), dtype=s.dtype), np.empty_like(s[0])
    x, recent = np.empty_like(s[0]), np.zeros_like(s[0])
    g, thresholds, fields, totals = pointers(f), address(v, 0), address(x, 0), address(recent, 0)
    for c in range(s.shape[0]):
        state, out = address(s, c * n), address(sums, c * n)
        for t in range(steps.first, steps.end):
            level = asked.fixed + log_forced_middle(g, state, asked.head, asked.tail) if asked.chib else 0.0
            draw_thresholds(keys[c], t, u, thresholds, n)
            for i in range(n):
                here = field(g, i, state)
                store_field(fields, i, here)
                store_state(state, i, ONE(here) if here > load_field(thresholds, i) else ZERO(here))
            if asked.chib:
                log_t[c] = log_add(log_t[c], level + _log_forced(g, fields, asked.head))
            end_sweep(t - steps.first, asked.averaged, fields, state, totals, out, n)
        add_recent(totals, out, 1.0, n)
    keep(u)
    keep(v)
    keep(x)
    keep(recent)


class Raster(Form):
    """Chains as `Form` keeps them."""

    name = "raster"

    def run(self, asked: Asked, steps: Steps, chains: Chains) -> None:
        run_raster(self.flat, asked, steps, chains)
