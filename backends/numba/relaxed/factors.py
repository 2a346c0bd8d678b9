"""What is known of Q = W + D, and the draws of x given s that it gives; a factor's type decides what is compiled.

Arrays of chains are tiles (`tiles`). Where half of the variables touch only the other half, as on lattices, Q is
[[E, B], [Bᵀ, F]] with a diagonal E, and with the Schur complement S = F - BᵀE⁻¹B,

    y₂ = S⁻¹ (x₂ - BᵀE⁻¹ x₁),    y₁ = E⁻¹ x₁ - E⁻¹B y₂    give y = Q⁻¹x.

S⁻¹ is the corner of Q⁻¹, dense, and half as wide: a quarter of the multiplications, and at N = 100 a matrix of 10 KB
(20 KB in float64) that stays in the first-level cache. B has few diagonals, or it is not worth it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import overload

from spinbench.api import relaxation, sweeps
from spinbench.backends.numba.relaxed.matrices import (
    Banded,
    Dense,
    Entries,
    Sparse,
    add_banded_product,
    add_scaled,
    count_diagonals,
    entries,
    make_banded,
    make_dense,
    make_sparse,
    product,
)
from spinbench.backends.numba.relaxed.tiles import KERNEL, IntArray, Layout, coefficient, stride, zeros
from spinbench.backends.numba.simd import Array, address, by_types, load_row, store_row
from spinbench.methods.relaxed.tables import RelaxedTables

# Largest number of nonzero diagonals of B, relative to its rows, for which elimination of a colour pays: S⁻¹ saves
# three quarters of the dense product, and two products with B take back some of that.
MOST_DIAGONALS = 0.75
# Edges per variable above which no two-colouring is tried.
MOST_EDGES = 16


class Halves(NamedTuple):
    """Q (N, N) and the variables of two colours, none of which it couples with another of its own."""

    gram: Array
    first: IntArray
    second: IntArray


class Eliminated(NamedTuple):
    """E⁻¹ as a column, -BᵀE⁻¹, S⁻¹ and -E⁻¹B, and two tiles of work space; the first rows of tiles are eliminated."""

    pivots: Array
    down: Banded
    corner: Dense
    up: Banded
    reduced: Array
    solved: Array


def two_colours(Q: Array) -> Halves | None:
    """Where there are two and both have many variables; else None."""
    edges = np.argwhere(np.triu(Q, 1))
    if len(edges) > MOST_EDGES * len(Q) or (colours := sweeps.colouring(len(Q), edges)).max() != 1:
        return None
    first, second = (np.flatnonzero(colours == colour) for colour in (0, 1))
    # A lopsided split, such as that of a star, eliminates too few variables.
    if min(first.size, second.size) < 0.4 * len(Q):
        return None
    few = MOST_DIAGONALS * min(first.size, second.size)
    return Halves(Q, first, second) if count_diagonals(Q[np.ix_(first, second)]) <= few else None


def make_eliminated(halves: Halves, inverse: Array, layout: Layout) -> Eliminated:
    """From Q's `two_colours` and Q⁻¹ (N, N); `layout.order` has one colour after the other."""
    Q, first, second = halves
    pivots = 1.0 / np.diag(Q)
    up = -pivots[first, None] * Q[np.ix_(first, second)]
    return Eliminated(
        pivots=layout.column(pivots),
        down=make_banded(entries(up.T), layout),
        corner=make_dense(inverse[np.ix_(second, second)], layout),
        up=make_banded(entries(up), layout),
        reduced=layout.tile(second.size),
        solved=layout.tile(second.size),
    )


@overload(product, jit_options=KERNEL)
def _choose_product(matrix, v, out):
    return _solve_by_elimination if matrix.instance_class is Eliminated else None


def _solve_by_elimination(matrix, v, out):
    """out = Q⁻¹v; zeros surround v."""
    pivots, count, rest = address(matrix.pivots, 0), matrix.up.rows, matrix.down.rows
    for i in range(0, rest, stride(v)):
        store_row(matrix.reduced, i, add_banded_product(matrix.down, v, i, load_row(v, count + i)))
    product(matrix.corner, matrix.reduced, matrix.solved)
    for i in range(0, count, stride(v)):
        solved_row = coefficient(pivots, i, v) * load_row(v, i)
        store_row(out, i, add_banded_product(matrix.up, matrix.solved, i, solved_row))
    # Written after the first rows, whose last vector overlaps these.
    for i in range(0, rest, stride(v)):
        store_row(out, count + i, load_row(matrix.solved, i))


# Largest share of nonzero diagonals of a lower triangle for which only the diagonals are stored.
WORTH = 0.5
# Bandwidth of the Cholesky factor up to which its product is cheaper than the edge form, which draws an additional
# normal number per edge.
WIDEST_BAND = 32


class Harmonium(NamedTuple):
    """A root R of Q = RRᵀ, and Rᵀ: α = R(Rᵀs + ε), with `noise` standard normal numbers ε."""

    root: Dense
    transposed: Dense
    noise: int


class Gram(NamedTuple):
    """Q and any root of it: α = Qs + Rε, with `noise` standard normal numbers ε."""

    gram: Dense | Banded | Sparse
    root: Dense | Banded | Sparse
    noise: int


class Precision(NamedTuple):
    """Q⁻¹; ε as of `Gram`."""

    inverse: Dense | Eliminated
    noise: int


Factor = Harmonium | Gram | Precision


def make_factor(tables: RelaxedTables, halves: Halves | None, layout: Layout) -> Factor:
    """From the host's tables. Where there are `halves`, for Q⁻¹, `layout.order` has one after the other."""
    n = layout.n
    if tables.edges is not None:
        return _make_sparse(tables.edges, layout)
    assert tables.root is not None
    if tables.gram is not None:
        if count_diagonals(tables.root) <= WORTH * n:
            return Gram(make_banded(entries(tables.gram), layout), make_banded(entries(tables.root), layout), n)
        return Gram(make_dense(tables.gram, layout), make_dense(tables.root, layout), n)
    if tables.precision is None:
        return Harmonium(make_dense(tables.root, layout), make_dense(tables.root.T, layout), n)
    if halves is None:
        return Precision(make_dense(tables.precision, layout), n)
    return Precision(make_eliminated(halves, tables.precision, layout), n)


def _make_sparse(edges: relaxation.EdgeFactor, layout: Layout) -> Gram:
    """By diagonals where the band is narrow, with a normal number a variable; else with one an edge, too."""
    n, (i, j) = layout.n, edges.ends.T
    rows, couplings = np.arange(n), edges.weights * edges.signs
    diagonal = edges.rest + np.bincount(np.append(i, j), np.tile(edges.weights, 2), minlength=n)
    values = np.concatenate([diagonal, couplings, couplings])
    gram = Entries(np.concatenate([rows, i, j]), np.concatenate([rows, j, i]), values, n)
    # Bandwidth below the diagonal of Q and of its root.
    width = int(np.abs(edges.ends[:, 0] - edges.ends[:, 1]).max(initial=0))
    if width <= WIDEST_BAND:
        return Gram(make_banded(gram, layout), make_banded(_band_root(gram, width), layout), n)
    count = len(couplings)
    edge, roots = np.arange(count), np.sqrt(edges.weights)
    values = np.concatenate([np.sqrt(edges.rest), roots, edges.signs * roots])
    # An edge contributes √|w| (e_i + sign(w) e_j) times its transpose to Q, and the rest is diagonal: a root with two
    # entries per edge and no fill-in.
    root = Entries(np.concatenate([rows, i, j]), np.concatenate([count + rows, edge, edge]), values, n)
    return Gram(make_sparse(gram, layout), make_sparse(root, layout), count + n)


def _band_root(gram: Entries, width: int) -> Entries:
    """Cholesky's factor of a matrix with so many diagonals below its own."""
    from scipy.linalg import cholesky_banded

    lower = gram.i >= gram.j
    band = np.zeros((width + 1, gram.rows))
    band[gram.i[lower] - gram.j[lower], gram.j[lower]] = gram.values[lower]
    band = cholesky_banded(band, lower=True)
    below, column = np.nonzero(band)
    return Entries(column + below, column, band[below, column], gram.rows)


@by_types(**KERNEL)
def draw_field(factor, s, noise, work, out):
    """out = α ~ N(Qs, Q) for s in {0, 1}."""

    def harmonium(factor, s, noise, work, out):
        product(factor.transposed, s, work)
        add_scaled(noise, zeros(work) + work.dtype.type(1), work, factor.root.rows, work)
        product(factor.root, work, out)

    def gram(factor, s, noise, work, out):
        product(factor.root, noise, out)
        product(factor.gram, s, work)
        add_scaled(out, zeros(out) + out.dtype.type(1), work, factor.gram.rows, out)

    return harmonium if factor.instance_class is Harmonium else gram
