"""Houdayer's move in compiled code: two replicas at one rung exchange a component of where they differ.

Of the variables in which the replicas differ one is drawn, and with it all that hang together with it by couplings
among such variables. On their boundary both replicas agree, so that the sum of their D stays, and so does the product
of their laws. Houdayer, European Physical Journal B 2001; Zhu, Ochoa, Katzgraber, Physical Review Letters 2015.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from spinbench.backends.numba.gibbs.shared import INLINE
from spinbench.backends.numba.simd.random import below
from spinbench.backends.numba.tempering.swaps import Array

HOTTEST = 3
"""Moves are made at all but the lowest third of the rungs, where components are nearly everything."""


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
def exchange(f, s, w, partners, step):
    """The moves of step number `step`; s (K, N, B), lane g L + l of block k is ladder l in slot k G + g."""
    keys, moves, stack, mark = partners
    rungs, ladders = w.slot.shape
    side, lowest = s.shape[2] // ladders, rungs // HOTTEST
    for j in range(keys.shape[1]):
        for q in range(moves):
            counter = np.uint64(2) * (np.uint64(step) * np.uint64(moves) + np.uint64(q))
            r = lowest + below(keys[0, j], keys[1, j], counter, rungs - lowest)
            first, second = np.int64(w.slot[r, 2 * j]), np.int64(w.slot[r, 2 * j + 1])
            k, b = first // side, first % side * ladders + 2 * j
            m, c = second // side, second % side * ladders + 2 * j + 1
            differ = 0
            for v in range(s.shape[1]):
                mark[v] = s[k, v, b] != s[m, v, c]
                if mark[v]:
                    stack[differ] = v
                    differ += 1
            if differ:
                seed = stack[below(keys[0, j], keys[1, j], counter + np.uint64(1), differ)]
                members = stack[: component(f, seed, mark, stack)]
                before = _own(f, members, mark, s, k, b)
                for v in members:
                    s[k, v, b], s[m, v, c] = s[m, v, c], s[k, v, b]
                change = _own(f, members, mark, s, k, b) - before
                w.energy[first, 2 * j] += change
                w.energy[second, 2 * j + 1] -= change


def partners_of(keys: Array, moves: int, n: int) -> Partners:
    """With room for models of n variables."""
    return Partners(keys, moves, np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int8))
