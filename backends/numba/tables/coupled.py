"""Coupled sweeps as loops over pairs, sites and states; `spinbench.methods.gibbs.coupling` says what for."""

from __future__ import annotations

import math

import numpy as np

from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.simd import ULP, hash64


@njit(cache=True, error_model="numpy")
def advance(t, order, pairs, lag, first, last):
    """Sweeps number first … last of X, from 1 on; pairs that have met stay where they are.

    Args:
        t: `FactorTables`.
        order: (N',) variables in the order of a sweep.
        pairs: `CoupledPairs` after sweep first - 1; written to.
        lag: L; sweep s of X is sweep s - L of Y.
        first, last: numbers of sweeps.
    """
    max_states = t.cardinalities.max() if len(t.cardinalities) else 1
    p, q = np.empty(max_states), np.empty(max_states)
    for pair in range(len(pairs.met)):
        x, y = pairs.x[pair], pairs.y[pair]
        sweep = first
        # Coupled chains stay together once they have met: only their meeting time counts.
        while sweep <= last and pairs.met[pair] < 0:
            apart = _sweep(t, order, x, y, pairs.keys[:, pair], sweep, sweep > lag, p, q)
            if sweep > lag and not apart:
                pairs.met[pair] = sweep
            sweep += 1


@njit(cache=True, error_model="numpy")
def _sweep(t, order, x, y, key, sweep, both, p, q):
    """One sweep of X, or of both; whether they differ."""
    apart = False
    for k in range(len(order)):
        v = order[k]
        card = t.cardinalities[v]
        u = np.float64(hash64(key[0], key[1], np.uint64(sweep * len(order) + k)) >> np.uint64(11)) * ULP
        _conditional(t, v, x, p)
        if both:
            _conditional(t, v, y, q)
            x[v], y[v] = draw_coupled(p, q, card, u)
            apart = apart or x[v] != y[v]
        else:
            x[v], _ = draw_coupled(p, p, card, u)
    return apart


@njit(cache=True, error_model="numpy")
def _conditional(t, v, x, p):
    """p(x_v | rest)."""
    card = t.cardinalities[v]
    p[:card] = 0.0
    for place in range(t.starts[v], t.starts[v + 1]):
        f, stride = t.factors[place], t.strides[place]
        base = t.offsets[f] - stride * x[v]
        for j in range(t.scope_starts[f], t.scope_starts[f + 1]):
            base += t.scope_strides[j] * x[t.scope_variables[j]]
        for k in range(card):
            p[k] += t.values[base + k * stride]
    top, total = p[:card].max(), 0.0
    for k in range(card):
        p[k] = math.exp(p[k] - top)
        total += p[k]
    for k in range(card):
        p[k] /= total


@njit(cache=True, error_model="numpy")
def draw_coupled(p, q, card, u):
    """States of both laws by one number, the same with the largest possible probability."""
    overlap = 0.0
    for k in range(card):
        overlap += min(p[k], q[k])
        # A maximal coupling: with probability Σ min(p, q) both chains take the same state; otherwise each takes a state
        # from the excess of its law over the other, and these never agree.
        if u < overlap:
            return k, k
    rest = u - overlap
    return _draw_from_residual(p, q, card, rest), _draw_from_residual(q, p, card, rest)


@njit(cache=True, error_model="numpy")
def _draw_from_residual(p, q, card, rest):
    """The state at which the sum of what p has beyond q passes `rest`."""
    reached = 0.0
    for k in range(card):
        reached += p[k] - min(p[k], q[k])
        if rest < reached:
            return k
    return card - 1
