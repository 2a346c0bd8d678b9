"""One unit, a binary variable or a 1-of-K group: its update, what is summed of it, its part of log T.

s and x of one chain point to the states and fields of its rows; x holds each row's field as of its unit's last update,
from which the conditional probabilities follow. f is a `Flat` of pointers.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from spinbench.backends.numba.gibbs.shared import CALLED, INLINE, field, forced_field
from spinbench.backends.numba.simd.functions import ONE, ZERO, exp, log, sigmoid, softplus
from spinbench.backends.numba.simd.memory import (
    load_field,
    load_state,
    load_sum,
    load_table,
    store_field,
    store_state,
    store_sum,
)


@nb.njit(**CALLED)
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


@nb.njit(**CALLED)
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
def credit(f, q, averaged, steps, s, x, sums):
    """sums += `steps` times p(s_i = 1 | rest) as of the last update, or s_i, of the rows of unit q."""
    i = load_table(f.first, q)
    size = load_table(f.sizes, q)
    if size == 0:
        value = sigmoid(load_field(x, i)) if averaged else load_state(s, i)
        store_sum(sums, i, load_sum(sums, i) + steps * np.float64(value))
    else:
        _credit_group(i, size, load_table(f.strides, q), averaged, steps, s, x, sums)


@nb.njit(**CALLED)
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


@nb.njit(**CALLED)
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
