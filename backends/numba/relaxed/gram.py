"""Factors of Q = W + D and the draws of N(Qs, Q) that they give, for the kernels of block Gibbs and DHMC.

Arrays of chains are tiles (`tiles`).
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from spinbench.backends.numba.relaxed.banded import (
    Diagonals,
    banded_product,
    collect_diagonals,
    count_diagonals,
    make_diagonals,
)
from spinbench.backends.numba.relaxed.edges import Edges, make_edges, make_terms, scale_terms, spread_terms
from spinbench.backends.numba.relaxed.products import Matrix, make_matrix, product
from spinbench.backends.numba.relaxed.tiles import Layout, coefficient, stride, unit
from spinbench.backends.numba.relaxed.units import KERNEL
from spinbench.backends.numba.simd.memory import address, load_vector, store
from spinbench.mathematics.relaxation.density import EdgeFactor

Array = npt.NDArray[Any]

WORTH = 0.5
"""The share of diagonals of a lower triangle up to which they are stored in place of the matrix."""
WIDEST_BAND = 32
"""Rows below the diagonal up to which the Cholesky factor's diagonals are cheaper than a normal number an edge more."""


class Gram(NamedTuple):
    """What gives draws of N(Qs, Q), in one of four forms; what a form does not need is None, and is not compiled.

    Numba leaves out what is done if an argument that is None is not; so each part is asked for by itself.

    Harmonium: `roots` are a root R of Q, Q = RRᵀ, and Rᵀ: α = R(Rᵀs + ε). Dense: `first` is Q and `second` a lower
    triangular root L of it: α = Qs + Lε. Banded: the same by diagonals, `band` and `lower`. Sparse: `edges`.
    """

    roots: tuple[Matrix, Matrix] | None = None
    first: Matrix | None = None
    second: Matrix | None = None
    band: Diagonals | None = None
    lower: Diagonals | None = None
    edges: Edges | None = None

    @property
    def form(self) -> Literal["harmonium", "dense", "banded", "edges"]:
        """Which of them this is."""
        if self.roots is not None:
            return "harmonium"
        if self.edges is not None:
            return "edges"
        return "dense" if self.band is None else "banded"


def bandwidth(factor: EdgeFactor) -> int:
    """Rows below the diagonal that Q and its root have."""
    return int(np.abs(factor.ends[:, 0] - factor.ends[:, 1]).max(initial=0))


def noise_rows(factor: EdgeFactor | None, n: int) -> int:
    """Standard normal numbers that a draw takes, for the sparse form with its factor."""
    return n if factor is None or bandwidth(factor) <= WIDEST_BAND else n + factor.weights.size


def make_harmonium(root: Array, layout: Layout) -> Gram:
    """From R, (N, N) float64."""
    return Gram(roots=(make_matrix(root, layout), make_matrix(root.T, layout)))


def make_dense(gram: Array, lower: Array, layout: Layout) -> Gram:
    """From Q and its Cholesky factor, (N, N) float64; by diagonals where they have few."""
    if count_diagonals(lower) <= WORTH * len(lower):
        return Gram(band=make_diagonals(gram, layout), lower=make_diagonals(lower, layout))
    return Gram(first=make_matrix(gram, layout), second=make_matrix(lower, layout))


def make_sparse(factor: EdgeFactor, layout: Layout) -> Gram:
    """From the sparse form's factor: by diagonals where the band is narrow, with a normal number a variable."""
    if (width := bandwidth(factor)) > WIDEST_BAND:
        return Gram(edges=make_edges(factor, layout))
    return _make_banded(factor, width, layout)


def _make_banded(factor: EdgeFactor, width: int, layout: Layout) -> Gram:
    from scipy.linalg import cholesky_banded

    n, (i, j) = layout.n, factor.ends.T
    own, entries = np.arange(n), factor.weights * factor.signs
    diagonal = factor.rest + np.bincount(np.append(i, j), np.tile(factor.weights, 2), minlength=n)
    band = np.zeros((width + 1, n))
    band[0] = diagonal
    band[j - i, i] = entries  # i < j
    band = cholesky_banded(band, lower=True)
    below, column = np.nonzero(band)
    both = np.concatenate([diagonal, entries, entries])
    gram = collect_diagonals(np.concatenate([own, i, j]), np.concatenate([own, j, i]), both, n, layout)
    lower = collect_diagonals(column + below, column, band[below, column], n, layout)
    return Gram(band=gram, lower=lower)


@nb.njit(**KERNEL)
def _add(x, n, out):
    """out += x."""
    whence, to = address(x, 0), address(out, 0)
    for i in range(0, n, stride(x)):
        at = i * unit(x)
        store(to, at, load_vector(to, at) + load_vector(whence, at))


@nb.njit(**KERNEL)
def _scale(column, x, first, n, out):
    """out = diag(column) times rows first, first + 1, … of x."""
    whence, to, weights = address(x, 0), address(out, 0), address(column, 0)
    for i in range(0, n, stride(out)):
        value = load_vector(whence, (first + i) * unit(out))
        store(to, i * unit(out), coefficient(out, weights, i) * value)


@nb.njit(**KERNEL)
def draw_field(roots, gram, s, noise, n, work, out):
    """out = α ~ N(Qs, Q) for s in {0, 1}. `roots` are `gram`'s; `noise`, of `noise_rows`, is overwritten."""
    if roots is not None:
        root, transposed = roots
        product(transposed, s, work)
        _add(noise, n, work)
        product(root, work, out)
    else:
        draw_velocity(gram.second, gram.lower, gram.edges, noise, n, out)
        gram_product(gram.first, gram.band, gram.edges, s, n, noise, work)
        _add(work, n, out)


@nb.njit(**KERNEL)
def gram_product(first, band, edges, v, n, work, out):
    """out = Qv in all forms but the harmonium; `work` is of the shape of `noise`."""
    if band is not None:
        banded_product(band, v, out)
    if first is not None:
        product(first, v, out)
    if edges is not None:
        _scale(edges.rest, v, 0, n, out)
        make_terms(edges, v, work)
        spread_terms(edges, work, out)


@nb.njit(**KERNEL)
def draw_velocity(second, lower, edges, noise, n, out):
    """out ~ N(0, Q) in all forms but the harmonium; `noise` is overwritten."""
    if lower is not None:
        banded_product(lower, noise, out)
    if second is not None:
        product(second, noise, out)
    if edges is not None:
        _scale(edges.root_rest, noise, edges.weights.size, n, out)
        scale_terms(edges, noise)
        spread_terms(edges, noise, out)
