"""Houdayer's move in compiled code: two replicas at one rung exchange a component of where they differ.

Of the variables in which the replicas differ one is drawn, and with it all that hang together with it, by couplings or
factors, among such variables. On their boundary both replicas agree, so that the sum of their D stays, and so does the
product of their laws. Houdayer, European Physical Journal B 2001; Zhu, Ochoa, Katzgraber, Physical Review Letters 2015.

Replicas stand in K blocks of lanes, states (K, N, B): lane g L + l of block k is ladder l in slot k B / L + g.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from spinbench.backends.numba.gibbs.shared import INLINE
from spinbench.backends.numba.simd.random import below
from spinbench.backends.numba.tempering.swaps import Array
from spinbench.methods.tempering.houdayer import HOTTEST


class Partners(NamedTuple):
    """Ladders 2 j and 2 j + 1 are partners.

    Attributes:
        keys: (2, P) uint64, of each of P pairs.
        moves: () of each pair in a step, at rungs drawn anew.
        stack: (N,) int64, mark: (N,) int8, to work with.
    """

    keys: Array
    moves: int
    stack: Array
    mark: Array


def partners_of(keys: Array, moves: int, n: int) -> Partners:
    """With room for models of n variables."""
    return Partners(keys, moves, np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int8))


@nb.njit(**INLINE)
def places_of(w, lanes, partners, j, counter):
    """(rung, block and lane of the first, block and lane of the second replica) of pair j's move number `counter`."""
    rungs, ladders = w.slot.shape
    side, lowest = lanes // ladders, rungs // HOTTEST
    r = lowest + below(partners.keys[0, j], partners.keys[1, j], counter, rungs - lowest)
    first, second = np.int64(w.slot[r, 2 * j]), np.int64(w.slot[r, 2 * j + 1])
    b, c = first % side * ladders + 2 * j, second % side * ladders + 2 * j + 1
    return r, first // side, b, second // side, c


@nb.njit(**INLINE)
def variables_that_differ(s, partners, j, counter, k, b, m, c):
    """Marks them with 1, all others with 0; one of them, drawn, or -1."""
    count = 0
    for v in range(s.shape[1]):
        partners.mark[v] = s[k, v, b] != s[m, v, c]
        if partners.mark[v]:
            partners.stack[count] = v
            count += 1
    if not count:
        return -1
    return partners.stack[below(partners.keys[0, j], partners.keys[1, j], counter + np.uint64(1), count)]


@nb.njit(**INLINE)
def component(f, seed, mark, stack):
    """How many variables, put into `stack`, hang together with `seed` among those whose mark is 1; it becomes 2."""
    stack[0], mark[seed] = seed, 2
    found, done = 1, 0
    while done < found:
        v = stack[done]
        done += 1
        for e in range(f.start[v], f.start[v + 1]):
            near = np.int64(f.columns[e])
            if mark[near] == 1:
                mark[near] = 2
                stack[found] = near
                found += 1
    return found


@nb.njit(**INLINE)
def _own(f, members, mark, s, k, b):
    """What the members, whose mark is 2, and their couplings add to D of the state in lane b of block k."""
    total = 0.0
    for v in members:
        if s[k, v, b] > 0:
            outer, inner = np.float64(f.biases[v]), 0.0
            for e in range(f.start[v], f.start[v + 1]):
                near = np.int64(f.columns[e])
                term = np.float64(f.weights[e]) * s[k, near, b]
                if mark[near] == 2:
                    inner += term
                else:
                    outer += term
            total += outer + 0.5 * inner
    return total


@nb.njit(**INLINE)
def exchange(f, s, w, partners, step):
    """The moves of step number `step` of pairwise models."""
    for j in range(partners.keys.shape[1]):
        for q in range(partners.moves):
            counter = np.uint64(2) * (np.uint64(step) * np.uint64(partners.moves) + np.uint64(q))
            r, k, b, m, c = places_of(w, s.shape[2], partners, j, counter)
            seed = variables_that_differ(s, partners, j, counter, k, b, m, c)
            if seed >= 0:
                members = partners.stack[: component(f, seed, partners.mark, partners.stack)]
                before = _own(f, members, partners.mark, s, k, b)
                for v in members:
                    s[k, v, b], s[m, v, c] = s[m, v, c], s[k, v, b]
                change = _own(f, members, partners.mark, s, k, b) - before
                w.energy[np.int64(w.slot[r, 2 * j]), 2 * j] += change
                w.energy[np.int64(w.slot[r, 2 * j + 1]), 2 * j + 1] -= change
