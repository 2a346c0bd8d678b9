"""Gibbs updates one unit at a time, of any kind and in any order; the forced sweep of Chib's estimator; ladders.

This is the plain code for everything that the kernels of `sweeps` leave out: 1-of-K groups, random scans, single
updates, sweeps in reverse order. s and x of one chain point to the states and fields of its rows; x holds each row's
field as of its unit's last update, from which the conditional probabilities follow. f is a `Flat` of pointers.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from spinbench.backends.numba.gibbs.tables import Flat
from spinbench.backends.numba.simd.functions import ONE, ZERO, exp, log, log1p, sigmoid, softplus
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
from spinbench.backends.numba.simd.random import below, fill_rows, uniform

KERNEL: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract", "reassoc", "nsz", "arcp"}}
"""Sums may be reordered, which is what lets LLVM vectorise them."""
JIT: dict[str, Any] = {**KERNEL, "cache": True, "nogil": True}
"""Threads may run these at once, on chains of their own."""
INLINE: dict[str, Any] = {**KERNEL, "forceinline": True}


@nb.njit(**INLINE)
def pointers(f):
    """A `Flat` of pointers from one of arrays."""
    return Flat(
        address(f.start, 0),
        address(f.later, 0),
        address(f.columns, 0),
        address(f.weights, 0),
        address(f.biases, 0),
        address(f.forced, 0),
        address(f.sign, 0),
        address(f.first, 0),
        address(f.sizes, 0),
        address(f.strides, 0),
    )


@nb.njit(**INLINE)
def whole_vectors(n):
    """n, rounded up to whole vectors."""
    return (n + 15) // 16 * 16


@nb.njit(**INLINE)
def log_add(a, b):
    """log(e^a + e^b)."""
    if a == -np.inf:
        return b
    return max(a, b) + log1p(exp(-abs(a - b)))


@nb.njit(**INLINE)
def _pull(x, f, begin, end, s):
    for e in range(begin, end):
        x += load_table(f.weights, e) * load_state(s, load_table(f.columns, e))
    return x


@nb.njit(**INLINE)
def field(f, i, s):
    """a_i + Σ_j W_ij s_j."""
    return _pull(load_table(f.biases, i), f, load_table(f.start, i), load_table(f.start, i + 1), s)


@nb.njit(**INLINE)
def forced_field(f, i, s):
    """The field of row i when all earlier rows have their values in s*."""
    return _pull(load_table(f.forced, i), f, load_table(f.start, i), load_table(f.later, i), s)


@nb.njit(**KERNEL)
def _update_group(f, i, size, stride, s, x, v):
    top = field(f, i, s)
    for k in range(size):
        row = i + k * stride
        here = field(f, row, s)
        store_field(x, row, here)
        top = max(top, here)
    total = 0.0
    for k in range(size):
        total += np.float64(exp(load_field(x, i + k * stride) - top))
    left = np.float64(v) * total
    chosen = 0  # takes what rounding leaves
    for k in range(size - 1, 0, -1):
        left -= np.float64(exp(load_field(x, i + k * stride) - top))
        if left < 0.0:
            chosen = k
            break
    for k in range(size):
        store_state(s, i + k * stride, ONE(top) if k == chosen else ZERO(top))


@nb.njit(**INLINE)
def update_unit(f, q, s, x, v):
    """Draw unit q given the rest with the uniform number v."""
    i = load_table(f.first, q)
    size = load_table(f.sizes, q)
    if size == 0:
        here = field(f, i, s)
        store_field(x, i, here)
        store_state(s, i, ONE(here) if v < sigmoid(here) else ZERO(here))
    else:
        _update_group(f, i, size, load_table(f.strides, q), s, x, v)


@nb.njit(**KERNEL)
def _credit_group(i, size, stride, averaged, steps, s, x, sums):
    if not averaged:
        for k in range(size):
            row = i + k * stride
            store_sum(sums, row, load_sum(sums, row) + steps * np.float64(load_state(s, row)))
        return
    top = load_field(x, i)
    for k in range(1, size):
        top = max(top, load_field(x, i + k * stride))
    total = 0.0
    for k in range(size):
        total += np.float64(exp(load_field(x, i + k * stride) - top))
    for k in range(size):
        row = i + k * stride
        p = np.float64(exp(load_field(x, row) - top)) / total
        store_sum(sums, row, load_sum(sums, row) + steps * p)


@nb.njit(**INLINE)
def _credit(f, q, averaged, steps, s, x, sums):
    """sums += `steps` times p(s_i = 1 | rest) as of the last update, or s_i, of the rows of unit q."""
    i = load_table(f.first, q)
    size = load_table(f.sizes, q)
    if size == 0:
        value = sigmoid(load_field(x, i)) if averaged else load_state(s, i)
        store_sum(sums, i, load_sum(sums, i) + steps * np.float64(value))
    else:
        _credit_group(i, size, load_table(f.strides, q), averaged, steps, s, x, sums)


@nb.njit(**KERNEL)
def _log_forced_group(f, i, size, stride, s):
    top = forced_field(f, i, s)
    for k in range(1, size):
        top = max(top, forced_field(f, i + k * stride, s))
    mass, chosen = 0.0, 0.0
    for k in range(size):
        row = i + k * stride
        here = np.float64(forced_field(f, row, s) - top)
        mass += exp(here)
        if load_table(f.sign, row) < 0.0:
            chosen = here
    return chosen - log(mass)


@nb.njit(**KERNEL)
def log_transition(f, units, s):
    """log T(s* <- s), float64."""
    total = 0.0
    for q in range(units):
        i = load_table(f.first, q)
        size = load_table(f.sizes, q)
        if size == 0:
            total -= np.float64(softplus(load_table(f.sign, i) * forced_field(f, i, s)))
        else:
            total += _log_forced_group(f, i, size, load_table(f.strides, q), s)
    return total


@nb.njit(**JIT)
def initial_fields(f, s, x):
    """x of s, both (C, N)."""
    g, n = pointers(f), s.shape[1]
    for c in range(s.shape[0]):
        row, fields = address(s, c * n), address(x, c * x.shape[1])
        for i in range(n):
            store_field(fields, i, field(g, i, row))


@nb.njit(**JIT)
def run_sweeps(f, keys, first, steps, random, averaged, chib, s, x, sums, log_t):
    """`steps` sweeps of each chain from step number `first` on.

    keys (C, 2); s, x (C, N); sums (C, N) float64: += p or s at the end of each sweep; log_t (C,) float64: log of the
    sum of T(s* <- s) over the states before each sweep, left alone unless `chib`.
    """
    g, units, n = pointers(f), f.first.size, s.shape[1]
    u = np.empty(whole_vectors(n), dtype=s.dtype)
    v = address(u, 0)
    for c in range(s.shape[0]):
        start, gamma = keys[c, 0], keys[c, 1]
        row, fields, total = address(s, c * n), address(x, c * n), address(sums, c * n)
        for t in range(first, first + steps):
            if chib:
                log_t[c] = log_add(log_t[c], log_transition(g, units, row))
            if random:
                for k in range(units):
                    counter = np.uint64(2) * np.uint64(t * units + k)
                    q = below(start, gamma, counter, units)
                    update_unit(g, q, row, fields, uniform(start, gamma, counter + np.uint64(1)))
            else:
                fill_rows(keys[c], np.uint64(t) * np.uint64(n + 1), u)
                for q in range(units):
                    update_unit(g, q, row, fields, load_uniform(v, load_table(g.first, q)))
            for q in range(units):
                _credit(g, q, averaged, 1, row, fields, total)
    keep(u)


@nb.njit(**JIT)
def run_looks(f, keys, step, mode, s, log_t, log_r):
    """log T(s* <- s) at the states s (C, N) into log_t (C,), and at as many draws of R(. <- s*) into log_r (C,).

    keys (C, 2), apart from those of the sweeps; mode (N,) s*. R is the sweep in reverse order.
    """
    g, units, n = pointers(f), f.first.size, s.shape[1]
    u, x, drawn = np.empty(whole_vectors(n), dtype=s.dtype), np.empty_like(s[0]), np.empty_like(s[0])
    v, fields, row = address(u, 0), address(x, 0), address(drawn, 0)
    for c in range(s.shape[0]):
        log_t[c] = log_transition(g, units, address(s, c * n))
        drawn[:] = mode
        fill_rows(keys[c], np.uint64(step) * np.uint64(n + 1), u)
        for k in range(units):
            q = units - 1 - k
            update_unit(g, q, row, fields, load_uniform(v, load_table(g.first, q)))
        log_r[c] = log_transition(g, units, row)
    keep(u)
    keep(x)
    keep(drawn)


@nb.njit(**JIT)
def run_updates(f, keys, first, steps, random, averaged, chib, s, x, sums, log_t, held):
    """`steps` single updates of each chain from update number `first` on; arguments as `run_sweeps`.

    held (C,) float64: log T at the begin of the present sweep, which counts for all updates of the sweep.
    """
    g, units, n = pointers(f), f.first.size, s.shape[1]
    since = np.empty(units, dtype=np.int64)
    for c in range(s.shape[0]):
        start, gamma = keys[c, 0], keys[c, 1]
        row, fields, total = address(s, c * n), address(x, c * n), address(sums, c * n)
        since[:] = 0
        counted = 0
        for k in range(steps):
            t = first + k
            if chib and t % units == 0:
                if k > counted:
                    log_t[c] = log_add(log_t[c], held[c] + np.log(k - counted))
                held[c], counted = log_transition(g, units, row), k
            counter = np.uint64(2) * np.uint64(t)
            q = below(start, gamma, counter, units) if random else t % units
            _credit(g, q, averaged, k - since[q], row, fields, total)
            since[q] = k
            update_unit(g, q, row, fields, uniform(start, gamma, counter + np.uint64(1)))
        for q in range(units):
            _credit(g, q, averaged, steps - since[q], row, fields, total)
        if chib:
            log_t[c] = log_add(log_t[c], held[c] + np.log(steps - counted))


@nb.njit(**JIT)
def run_ladders(f, keys, places, first, steps, length, mode, s, middle, log_sum, total):
    """`steps` further states of each chain's ladder; see `spinbench.methods.gibbs.program.Ladder`.

    keys (C, 2); places (2,): key of the places of the first states, shared by all chains; first: states so far;
    mode (N,) s*; s, middle (C, N); log_sum (C,) of the present ladder; total (C,) float64: log of the sum of S / Σ T
    over the ladders that end.
    """
    g, units, n = pointers(f), f.first.size, s.shape[1]
    u, x = np.empty(whole_vectors(n), dtype=s.dtype), np.empty_like(s[0])
    v, fields = address(u, 0), address(x, 0)
    for c in range(s.shape[0]):
        row = address(s, c * n)
        for t in range(first, first + steps):
            done = t % length
            place = below(places[0], places[1], np.uint64(t // length), length)
            if done == 0:
                s[c] = mode
            elif done == length - place:
                s[c] = middle[c]
            backward = done == 0 or done >= length - place
            fill_rows(keys[c], np.uint64(t) * np.uint64(n + 1), u)
            for k in range(units):
                q = units - 1 - k if backward else k
                update_unit(g, q, row, fields, load_uniform(v, load_table(g.first, q)))
            if done == 0:
                middle[c] = s[c]
            log_t = log_transition(g, units, row)
            log_sum[c] = log_t if done == 0 else log_add(log_sum[c], log_t)
            if done == length - 1:
                total[c] = log_add(total[c], np.log(length) - log_sum[c])
    keep(u)
    keep(x)
