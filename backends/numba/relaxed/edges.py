"""Q = W + D as a sum over edges (`spinbench.mathematics.relaxation.density.EdgeFactor`), on tiles of chains.

O(E) work, whatever the graph; a draw takes a normal number an edge and one a variable. The inner loops run over the
chains of a tile; a single chain's have one turn, so that LLVM vectorises those over edges.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from spinbench.backends.numba.relaxed.tiles import Layout, unit
from spinbench.backends.numba.relaxed.units import KERNEL
from spinbench.backends.numba.simd.memory import address, load, store
from spinbench.mathematics.relaxation.density import EdgeFactor

Array = npt.NDArray[Any]


class Edges(NamedTuple):
    """`EdgeFactor` with roots of its weights; the incident edges are (K, N), so that vectors run over variables."""

    first: Array
    second: Array
    weights: Array
    signs: Array
    rest: Array
    root_weights: Array
    root_rest: Array
    incident: Array
    incident_signs: Array


def make_edges(factor: EdgeFactor, layout: Layout) -> Edges:
    """Indices are unsigned: Numba spares itself the test for negative ones, and gathers vectorise."""

    def index(values: Array) -> Array:
        return np.ascontiguousarray(values, dtype=np.uint64)

    def number(values: Array) -> Array:
        return np.ascontiguousarray(values, dtype=layout.real)

    return Edges(
        first=index(factor.ends[:, 0]),
        second=index(factor.ends[:, 1]),
        weights=number(factor.weights),
        signs=number(factor.signs),
        rest=layout.column(factor.rest),
        root_weights=number(np.sqrt(factor.weights)),
        root_rest=layout.column(np.sqrt(factor.rest)),
        incident=index(factor.incident.T),
        incident_signs=number(factor.incident_signs.T),
    )


@nb.njit(**KERNEL)
def scale_terms(edges, t):
    """t_e *= √w_e."""
    terms, roots, width = address(t, 0), address(edges.root_weights, 0), unit(t)
    for e in range(edges.weights.size):
        for c in range(width):
            store(terms, e * width + c, load(roots, e) * load(terms, e * width + c))


@nb.njit(**KERNEL)
def make_terms(edges, v, t):
    """t_e = w_e (v_i + g_e v_j)."""
    terms, x, width = address(t, 0), address(v, 0), unit(t)
    first, second = address(edges.first, 0), address(edges.second, 0)
    weights, signs = address(edges.weights, 0), address(edges.signs, 0)
    for e in range(edges.weights.size):
        i, j = load(first, e), load(second, e)
        weight, sign = load(weights, e), load(signs, e)
        for c in range(width):
            at, to = np.uint64(width), np.uint64(c)
            term = weight * (load(x, i * at + to) + sign * load(x, j * at + to))
            store(terms, e * width + c, term)


@nb.njit(**KERNEL)
def spread_terms(edges, t, out):
    """out_k += Σ_e ±t_e over the edges e at k; overwrites t[E]."""
    terms, to, width = address(t, 0), address(out, 0), unit(t)
    count, (most, n) = edges.weights.size, edges.incident.shape
    incident, signs = address(edges.incident, 0), address(edges.incident_signs, 0)
    for c in range(width):
        store(terms, count * width + c, out.dtype.type(0))
    for k in range(most):
        for i in range(n):
            e, sign = load(incident, k * n + i), load(signs, k * n + i)
            for c in range(width):
                at = i * width + c
                term = sign * load(terms, e * np.uint64(width) + np.uint64(c))
                store(to, at, load(to, at) + term)
