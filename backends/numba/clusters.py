"""Swendsen-Wang in compiled code: whole batches of steps of all chains in one call, chain by chain.

What is a loop over vectors stays one: random numbers, levels of bonds, probabilities. Bonds that open are written one
after another without a branch, and then joined: a row's parent is a lower row, so that in ascending order one look-up
finds the root.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spinbench.api import Backend, Kernel, PairwiseModel, States
from spinbench.backends.numba.gibbs.form import Steps
from spinbench.backends.numba.gibbs.shared import INLINE, JIT
from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.simd import HALF, ONE, Array, Real, chain_keys, exp, fill_rows, sigmoid
from spinbench.mathematics.graphs.rows import AnyRows, compressed_rows
from spinbench.mathematics.graphs.sweep_layouts import by_variable
from spinbench.methods.clusters.swendsen_wang import SwendsenWang, Tables


class Flat(NamedTuple):
    """The model in the row order of `Tables`. Reals are of the kernel's precision.

    Attributes:
        first, second: (E,) uint32 (Numba checks signed indices for negative ones), ends of the bonds.
        alike: (E,) bool, whether a bond asks its ends to be alike.
        levels: (E,) probabilities that satisfied bonds open.
        fields: (N,) 2h of `Bonds`.
        bounds: (B + 1,) rows that are updated together.
        start: (N + 1,) where a row's neighbours begin in `columns` (uint32) and `weights`.
        biases: (N,).
    """

    first: Array
    second: Array
    alike: Array
    levels: Array
    fields: Array
    bounds: Array
    start: Array
    columns: Array
    weights: Array
    biases: Array


class Request(NamedTuple):
    """Attributes: averaged () bool: p is summed, else s after the sweeps; sweeps () int: after each move."""

    averaged: bool
    sweeps: int


class Work(NamedTuple):
    """Scratch of a thread.

    Attributes:
        u: (U,) uniform numbers of a step: of bonds, of clusters, of sweeps.
        chosen: (E + 1,) uint32, bonds that are open.
        parent: (N,) uint32.
        pull: (N,) 2F of the clusters at their roots, and fields of rows in sweeps.
        keep: (N,) probabilities that clusters keep their spins.
    """

    u: Array
    chosen: Array
    parent: Array
    pull: Array
    keep: Array


def flat_tables(tables: Tables, rows: AnyRows, biases: Array, real: Real) -> Flat:
    """Of planned tables; `rows` and `biases` in their order."""
    bonds = tables.bonds
    return Flat(
        first=bonds.ends[:, 0].astype(np.uint32),
        second=bonds.ends[:, 1].astype(np.uint32),
        alike=bonds.couplings > 0,
        # A satisfied bond opens with 1 - exp(-2|J|), J = w / 4 (Swendsen and Wang 1987). expm1 keeps the digits of weak
        # couplings.
        levels=-np.expm1(-0.5 * np.abs(bonds.couplings)).astype(real),
        fields=bonds.fields.astype(real),
        bounds=tables.bounds.astype(np.int64),
        start=rows.start.astype(np.int64),
        columns=rows.columns.astype(np.uint32),
        weights=rows.weights.astype(real),
        biases=biases.astype(real),
    )


@njit(**INLINE)
def _root(parent, i):
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@njit(**INLINE)
def _join(f, s, u, w):
    """parent: the root of each row's cluster, its lowest row."""
    first, second, alike, levels, chosen, parent = f.first, f.second, f.alike, f.levels, w.chosen, w.parent
    count = 0
    for e in range(first.size):
        # Each bond is written and the counter is raised only if it is open: a branch would often be mispredicted.
        satisfied = (s[first[e]] == s[second[e]]) == alike[e]
        chosen[count] = e
        count += satisfied & (u[e] < levels[e])
    for i in range(parent.size):
        parent[i] = i
    for k in range(count):
        e = chosen[k]
        a, b = _root(parent, first[e]), _root(parent, second[e])
        # The smaller root stays a root, so that a pass in ascending order finds every root with one look-up per row.
        parent[max(a, b)] = min(a, b)
    for i in range(parent.size):
        parent[i] = parent[parent[i]]


@njit(**JIT)
def move(f, s, p, w):
    """One move of a chain; s (N,) 0 and 1, p (N,) the probabilities of 1.

    Of w.u, which is filled, the first E + N numbers are used.
    """
    u, edges, parent, pull, keep = w.u, f.first.size, w.parent, w.pull, w.keep
    _join(f, s, u, w)
    unit = ONE(f.fields[0])
    pull[:] = unit - unit
    for i in range(s.size):
        pull[parent[i]] += (s[i] + s[i] - unit) * f.fields[i]
    for i in range(s.size):
        # A cluster keeps its spins with probability 1 / (1 + exp(-2F)), F the sum of the fields on it: fields break the
        # symmetry between its two states.
        keep[i] = sigmoid(pull[i])
    for i in range(s.size):
        r = parent[i]
        q, spin = keep[r], s[i]
        p[i] = q if spin > HALF(spin) else unit - q
        s[i] = spin if u[edges + r] < q else unit - spin


@njit(**JIT)
def sweep(f, s, u, x):
    """One Gibbs sweep of a chain with uniform numbers u (N,); x (N,) becomes the fields."""
    start, columns, weights, biases = f.start, f.columns, f.weights, f.biases
    for b in range(f.bounds.size - 1):
        low, high = f.bounds[b], f.bounds[b + 1]
        for i in range(low, high):
            field = biases[i]
            for e in range(start[i], start[i + 1]):
                field += weights[e] * s[columns[e]]
            x[i] = field
        for i in range(low, high):
            # u < 1 / (1 + e^-x) without the division.
            up = u[i] * (ONE(x[i]) + exp(-x[i])) < ONE(x[i])
            s[i] = ONE(x[i]) if up else x[i] - x[i]


@njit(**JIT)
def run_clusters(f, request, steps, keys, s, sums, w):
    """Steps first … end - 1 of chains s (C, N): p or s of each is added to sums (C, N) float64.

    keys (C, 2) uint64; w of so many sweeps.
    """
    n, edges = s.shape[1], f.first.size
    p = np.empty_like(s[0])
    for c in range(s.shape[0]):
        row, total = s[c], sums[c]
        for t in range(steps.first, steps.end):
            fill_rows(keys[c], np.uint64(t) * np.uint64(w.u.size), w.u)
            move(f, row, p, w)
            for k in range(request.sweeps):
                begin = edges + (1 + k) * n
                sweep(f, row, w.u[begin : begin + n], w.pull)
            credited = p if request.averaged else row
            for i in range(n):
                total[i] += credited[i]


@dataclass
class ClusterState:
    """Chains of one run; consumed by `advance` and `warm`.

    Attributes:
        step: steps so far, burn-in included.
        keys: (C, 2) uint64, of random numbers.
        s: (C, N) 0 and 1 of the kernel's precision.
    """

    step: int
    keys: Array
    s: Array


class SwendsenWangKernel(Kernel[Tables, ClusterState]):
    """All settings of `SwendsenWang`; float32 and float64."""

    def __init__(self, method: SwendsenWang, backend: Backend, model: PairwiseModel, tables: Tables) -> None:
        self._real = np.dtype(backend.precision)
        self._tables = tables
        self._request = Request(method.marginals == "rao_blackwell", method.sweeps)
        rows = compressed_rows(model, tables.order)
        self._flat = flat_tables(tables, rows, model.biases[tables.order], self._real)

    def init(self, seed: int, start: States) -> ClusterState:
        states = start[self._tables.order].T.astype(self._real)
        return ClusterState(0, chain_keys(seed, start.shape[1]).T.copy(), np.ascontiguousarray(states))

    def advance(self, state: ClusterState, steps: int) -> tuple[ClusterState, dict[str, Array]]:
        sums = np.zeros(state.s.shape)
        numbered = Steps(state.step, state.step + steps)
        edges, n = len(self._flat.first), len(self._flat.fields)
        work = Work(
            u=np.empty(-(-(edges + (1 + self._request.sweeps) * n) // 16) * 16, dtype=self._real),
            chosen=np.empty(edges + 1, dtype=np.uint32),
            parent=np.empty(n, dtype=np.uint32),
            pull=np.empty(n, dtype=self._real),
            keep=np.empty(n, dtype=self._real),
        )
        run_clusters(self._flat, self._request, numbered, state.keys, state.s, sums, work)
        state.step += steps
        return state, {"p" if self._request.averaged else "s": sums.T}

    def states(self, state: ClusterState) -> Array:
        return by_variable(self._tables.order, state.s.T)
