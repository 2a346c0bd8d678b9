"""Looks from both sides at log Z: T(s* <- s) at the chains and at draws of the reversed sweep from s*."""

from __future__ import annotations

import numba as nb
import numpy as np

from spinbench.backends.numba.gibbs.shared import JIT, pointers, whole_vectors
from spinbench.backends.numba.gibbs.unit_updates import log_transition, update_unit
from spinbench.backends.numba.simd.memory import address, keep, load_table, load_uniform
from spinbench.backends.numba.simd.random import fill_rows


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
