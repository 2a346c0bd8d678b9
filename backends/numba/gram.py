"""Factors of Q = W + D and the draws of N(Qs, Q) that they give, for the kernels of block Gibbs and DHMC.

The type of the factor decides what is compiled. Arrays of chains are (N, C), contiguous.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt
from numba.extending import overload

from spinbench.backends.numba.banded import WORTH, Diagonals, banded_product, make_diagonals
from spinbench.backends.numba.functions import ZERO, flat
from spinbench.backends.numba.products import binary_product, lower_product, product, symmetric_product
from spinbench.backends.numba.units import KERNEL, scale_rows
from spinbench.relaxation import EdgeFactor

Array = npt.NDArray[Any]


class Harmonium(NamedTuple):
    """A root R of Q, Q = RRᵀ, both ways round, (N, N): α = R(Rᵀs + ε)."""

    root: Array
    root_t: Array


class Dense(NamedTuple):
    """Q and a lower triangular root L of it, (N, N): α = Qs + Lε."""

    gram: Array
    lower: Array


class Banded(NamedTuple):
    """The same where both have few diagonals."""

    gram: Diagonals
    lower: Diagonals


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


def make_dense(gram: Array, lower: Array, real: npt.DTypeLike) -> Dense | Banded:
    """From Q and its Cholesky factor, (N, N) float64."""
    band = make_diagonals(lower, real)
    if band.offsets.size <= WORTH * len(lower):
        return Banded(make_diagonals(gram, real), band)
    return Dense(np.ascontiguousarray(gram, dtype=real), np.ascontiguousarray(lower, dtype=real))


def make_edges(factor: EdgeFactor, real: npt.DTypeLike) -> Edges:
    """Indices are unsigned: Numba spares itself the test for negative ones, and gathers vectorise."""

    def index(values: Array) -> Array:
        return np.ascontiguousarray(values, dtype=np.uint64)

    def number(values: Array) -> Array:
        return np.ascontiguousarray(values, dtype=real)

    return Edges(
        first=index(factor.ends[:, 0]),
        second=index(factor.ends[:, 1]),
        weights=number(factor.weights),
        signs=number(factor.signs),
        rest=number(factor.rest),
        root_weights=number(np.sqrt(factor.weights)),
        root_rest=number(np.sqrt(factor.rest)),
        incident=index(factor.incident.T),
        incident_signs=number(factor.incident_signs.T),
    )


@nb.njit(**KERNEL)
def _add(x, out):
    """out += x."""
    flat_x, flat_out = flat(x), flat(out)
    for k in range(flat_out.size):
        flat_out[k] += flat_x[k]


@nb.njit(**KERNEL)
def draw_root(factor, s, noise, out):
    """out = Rᵀs + noise for a `Harmonium` and s in {0, 1}."""
    binary_product(factor.root, factor.root_t, s, out)
    _add(noise, out)


@nb.njit(**KERNEL)
def _add_scaled(weights, x, out):
    """out += diag(weights) x."""
    if x.shape[1] == 1:
        flat_x, flat_out = flat(x), flat(out)
        for i in range(weights.size):
            flat_out[i] += weights[i] * flat_x[i]
        return
    for i in range(weights.size):
        weight, row, to = weights[i], x[i], out[i]
        for c in range(row.size):
            to[c] += weight * row[c]


@nb.njit(**KERNEL)
def _add_terms(edges, scales, v, t):
    """t_e = scale_e t_e + w_e (v_i + g_e v_j); rows of t beyond E stay."""
    first, second, weights, signs = edges.first, edges.second, edges.weights, edges.signs
    if v.shape[1] == 1:
        flat_v, flat_t = flat(v), flat(t)
        for e in range(weights.size):
            flat_t[e] = scales[e] * flat_t[e] + weights[e] * (flat_v[first[e]] + signs[e] * flat_v[second[e]])
        return
    for e in range(weights.size):
        x, y, row, scale, weight, sign = v[first[e]], v[second[e]], t[e], scales[e], weights[e], signs[e]
        for c in range(row.size):
            row[c] = scale * row[c] + weight * (x[c] + sign * y[c])


@nb.njit(**KERNEL)
def _spread(edges, t, out):
    """out_k += Σ_e ±t_e over the edges e at k; overwrites t[E]."""
    count, (n, chains) = edges.weights.size, out.shape
    if chains == 1:
        flat_out, flat_t = flat(out), flat(t)
        flat_t[count] = ZERO(flat_out[0])
        for k in range(edges.incident.shape[0]):
            incident, signs = edges.incident[k], edges.incident_signs[k]
            for i in range(n):
                flat_out[i] += signs[i] * flat_t[incident[i]]
        return
    for e in range(count):
        row, x, y, sign = t[e], out[edges.first[e]], out[edges.second[e]], edges.signs[e]
        for c in range(chains):
            x[c] += row[c]
            y[c] += sign * row[c]


def draw_field(factor: Any, s: Any, noise: Any, work: Any, out: Any) -> None:
    """out = α ~ N(Qs, Q) for s in {0, 1}. `noise`, `noise_rows` by C, is overwritten. Compiled code only."""
    raise NotImplementedError


def gram_product(factor: Any, v: Any, work: Any, out: Any) -> None:
    """out = Qv for all but `Harmonium`; `work` is of the shape of `noise`. Compiled code only."""
    raise NotImplementedError


def draw_velocity(factor: Any, noise: Any, out: Any) -> None:
    """out ~ N(0, Q) for all but `Harmonium`; `noise` is overwritten. Compiled code only."""
    raise NotImplementedError


def noise_rows(factor: object, n: int) -> int:
    """Standard normal numbers that a draw takes."""
    return n + factor.weights.size if isinstance(factor, Edges) else n


@overload(draw_field, jit_options=KERNEL)
def _draw_field(factor, s, noise, work, out):
    def harmonium(factor, s, noise, work, out):
        draw_root(factor, s, noise, work)
        product(factor.root, work, out)

    def dense(factor, s, noise, work, out):
        lower_product(factor.lower, noise, out)
        binary_product(factor.gram, factor.gram, s, work)
        _add(work, out)

    def banded(factor, s, noise, work, out):
        banded_product(factor.lower, noise, out)
        banded_product(factor.gram, s, work)
        _add(work, out)

    def edges(factor, s, noise, work, out):
        own = noise[factor.weights.size :]
        scale_rows(factor.rest, s, out)
        _add_scaled(factor.root_rest, own, out)
        _add_terms(factor, factor.root_weights, s, noise)
        _spread(factor, noise, out)

    return {Harmonium: harmonium, Dense: dense, Banded: banded, Edges: edges}[factor.instance_class]


@overload(gram_product, jit_options=KERNEL)
def _gram_product(factor, v, work, out):
    def dense(factor, v, work, out):
        symmetric_product(factor.gram, v, out)

    def banded(factor, v, work, out):
        banded_product(factor.gram, v, out)

    def edges(factor, v, work, out):
        work[:] = 0
        _add_terms(factor, factor.weights, v, work)
        scale_rows(factor.rest, v, out)
        _spread(factor, work, out)

    return {Dense: dense, Banded: banded, Edges: edges}[factor.instance_class]


@overload(draw_velocity, jit_options=KERNEL)
def _draw_velocity(factor, noise, out):
    def dense(factor, noise, out):
        lower_product(factor.lower, noise, out)

    def banded(factor, noise, out):
        banded_product(factor.lower, noise, out)

    def edges(factor, noise, out):
        scale_rows(factor.root_rest, noise[factor.weights.size :], out)
        scale_rows(factor.root_weights, noise, noise)
        _spread(factor, noise, out)

    return {Dense: dense, Banded: banded, Edges: edges}[factor.instance_class]
