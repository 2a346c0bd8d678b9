"""Single updates over flat factor tables, one chain after the other: random scans, and updates for samples."""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from spinbench.backends.numba.gibbs.shared import CALLED, JIT
from spinbench.backends.numba.simd.random import below, uniform


class Single(NamedTuple):
    """What is done.

    Attributes:
        random: () bool, each update is at a variable drawn anew, else at the next one.
        alone: () bool, a step is one update, else as many as there are variables.
        averaged: () bool, sum conditional probabilities as of the last updates, otherwise states.
        first, end: () int64, numbers of the steps in the run.
    """

    random: bool
    alone: bool
    averaged: bool
    first: int
    end: int


@nb.njit(**CALLED)
def _look_up(t, v, x, c, weights):
    """Weights of the states of v given the rest, the largest 1; their sum."""
    size = t.sizes[v]
    weights[:size] = 0.0
    for e in range(t.starts[v], t.starts[v + 1]):
        at = np.int64(t.bases[e])
        for o in range(t.other_starts[e], t.other_starts[e + 1]):
            at += np.int64(t.steps[o]) * np.int64(x[t.others[o], c])
        for k in range(size):
            weights[k] += t.values[at]
            at += np.int64(t.strides[e])
    top = weights[:size].max()
    total = 0.0
    for k in range(size):
        weights[k] = np.exp(weights[k] - top)
        total += weights[k]
    return total


@nb.njit(**CALLED)
def _keep_p(t, v, c, weights, total, p):
    row, size = t.rows[v], t.sizes[v]
    if size == 2:
        p[row, c] = weights[1] / total
    else:
        for k in range(size):
            p[row + k, c] = weights[k] / total


@nb.njit(**CALLED)
def _update(t, v, x, c, u, weights, p):
    """A draw of v of chain c given the rest; no state of weight 0, whatever is rounded."""
    total = _look_up(t, v, x, c, weights)
    upto, drawn = 0.0, 0
    for k in range(t.sizes[v] - 1):
        upto += weights[k]
        if upto <= u * total and upto < total:
            drawn = k + 1
    x[v, c] = drawn
    _keep_p(t, v, c, weights, total, p)


@nb.njit(**CALLED)
def _credit(t, v, c, steps, averaged, x, p, sums):
    row, size = t.rows[v], t.sizes[v]
    if averaged:
        for k in range(1 if size == 2 else size):
            sums[row + k, c] += steps * p[row + k, c]
    elif size == 2:
        sums[row, c] += steps * x[v, c]
    else:
        sums[row + x[v, c], c] += steps


@nb.njit(**JIT)
def conditionals(t, order, x, p):
    """p (K, R, B) float64 of the states x as they are, at beta = 1."""
    weights = np.empty(t.sizes.max())
    for k in range(x.shape[0]):
        for v in order:
            for c in range(x.shape[2]):
                _keep_p(t, v, c, weights, _look_up(t, v, x[k], c, weights), p[k])


@nb.njit(**JIT)
def run_single(t, order, asked, chains, p, sums):
    """Steps at beta = 1 of all chains.

    Args:
        t: LaneTables.
        order: the variables.
        asked: what is done.
        chains: LaneChains; x is written to.
        p: (K, R, B) float64, conditional probabilities as of the last updates; written to.
        sums: (K, R, B) float64, added to.
    """
    keys, x, _ = chains
    units, weights = order.size, np.empty(t.sizes.max())
    since = np.empty(units, dtype=np.int64)
    each = 1 if asked.alone else units
    for k in range(x.shape[0]):
        for c in range(x.shape[2]):
            start, gamma = keys[k, 0, c], keys[k, 1, c]
            since[:] = asked.first
            for s in range(asked.first, asked.end if units else asked.first):
                for i in range(s * each, (s + 1) * each):
                    counter = np.uint64(2) * np.uint64(i)
                    q = below(start, gamma, counter, units) if asked.random else i % units
                    v = order[q]
                    if asked.alone:
                        _credit(t, v, c, s - since[q], asked.averaged, x[k], p[k], sums[k])
                        since[q] = s
                    _update(t, v, x[k], c, uniform(start, gamma, counter + np.uint64(1)), weights, p[k])
                if not asked.alone:
                    for v in order:
                        _credit(t, v, c, 1, asked.averaged, x[k], p[k], sums[k])
            if asked.alone:
                for q in range(units):
                    _credit(t, order[q], c, asked.end - since[q], asked.averaged, x[k], p[k], sums[k])
