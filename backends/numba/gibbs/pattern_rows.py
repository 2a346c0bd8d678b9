"""The form "pattern_rows": chromatic and raster sweeps of one row after the other by looking probabilities up.

Everything of an update is an integer: the neighbours' states make an index, the entry there is compared with 64 random
bits. The limit, with four neighbours: 8 loads for the index, 5 instructions that combine them, 6 for comparison, state
and sum, 2 for random bits and 2 of the loop, which at 6 a cycle is 4 cycles an update. What reaches it: rows of a
colour do not wait for each other, so that many are on their way at once, and there is no branch but the loop's.
"""

from __future__ import annotations

import numpy as np

from spinbench.backends.numba.gibbs.form import Chains, Form, Request, Source, Steps, no_fields, row_keys
from spinbench.backends.numba.gibbs.patterns import Patterns, tabulate_conditionals
from spinbench.backends.numba.gibbs.shared import INLINE, JIT, add_recent
from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.simd import Array, address, count_up, keep, load, mix64, store

# 64-bit words of a vector of 512 bits.
WORDS = 8


@njit(**INLINE)
def _pattern(near, i, shape, s):
    """The states of row i's neighbours as bits."""
    first, bits = i * len(shape), np.int64(0)
    for k in range(len(shape)):
        bits |= np.int64(load(s, np.int64(load(near, first + k)))) << k
    return bits


@njit(**INLINE)
def _fill(start, gamma, counter, n, u):
    """u[i] = 64 random bits, those of row i in `random.row_numbers` for float64."""
    z = count_up(gamma) * gamma + (start + counter * gamma)
    for i in range(0, n, WORDS):
        store(u, i, mix64(z))
        z = z + np.uint64(WORDS) * gamma


@njit(**INLINE)
def _sweep(g, n, averaged, u, s, sums, counts):
    shift = len(g.shape)
    for i in range(n):
        entry = (i << shift) + _pattern(g.near, i, g.shape, s)
        up = load(u, i) < load(g.thresholds, entry)
        store(s, i, np.uint8(up))
        if averaged:
            store(sums, i, load(sums, i) + load(g.p, entry))
        else:
            store(counts, i, load(counts, i) + np.int64(up))


@njit(**JIT)
def run_pattern_rows(tables, request, steps, chains):
    keys, s, _, _, sums, _ = chains
    n = sums.shape[1]
    bits, ones = np.empty(n + WORDS, dtype=np.uint64), np.zeros(n, dtype=np.int64)
    u, counts = address(bits, 0), address(ones, 0)
    g = Patterns(address(tables.near, 0), address(tables.thresholds, 0), address(tables.p, 0), tables.shape)
    for c in range(s.shape[0]):
        state, out = address(s, c * (n + 1)), address(sums, c * n)
        for t in range(steps.first, steps.end):
            _fill(keys[c, 0], keys[c, 1], np.uint64(t) * np.uint64(n + 1), n, u)
            # Outside the loop: a branch inside would cost up to a tenth of its time.
            if request.averaged:
                _sweep(g, n, True, u, state, out, counts)
            else:
                _sweep(g, n, False, u, state, out, counts)
        add_recent(counts, out, 1.0, n)
    keep(bits, ones)


class PatternRows(Form):
    """s (C, N + 1) uint8, the last 0; tables: `Patterns`."""

    def make_tables(self, source: Source) -> Patterns:
        return tabulate_conditionals(source.exact())

    def begin(self, seed: int, states: Array) -> tuple[Array, Array, Array]:
        n, chains = states.shape
        s = np.zeros((chains, n + 1), dtype=np.uint8)
        s[:, :n] = states.T
        return row_keys(seed, states), s, no_fields(self.real)

    def run(self, request: Request, steps: Steps, chains: Chains) -> None:
        run_pattern_rows(self.tables, request, steps, chains)
