"""Products with Q⁻¹ where half of the variables touch only the other half, as on lattices.

Q = [[E, B], [Bᵀ, F]] with a diagonal E: with the Schur complement S = F - BᵀE⁻¹B,

    y₂ = S⁻¹ (x₂ - BᵀE⁻¹ x₁),    y₁ = E⁻¹ x₁ - E⁻¹B y₂    give y = Q⁻¹x.

S⁻¹ is the corner of Q⁻¹, dense, and half as wide: a quarter of the multiplications, and at N = 100 a matrix of 10 KB
(20 KB in float64) that stays in the first-level cache. B has few diagonals, or it is not worth it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from spinbench.backends.numba.relaxed.banded import Diagonals, add_diagonals, count_diagonals, make_diagonals
from spinbench.backends.numba.relaxed.products import Matrix, make_matrix, product
from spinbench.backends.numba.relaxed.tiles import Layout, coefficient, stride, unit
from spinbench.backends.numba.relaxed.units import KERNEL
from spinbench.backends.numba.simd.memory import address, load_vector, store
from spinbench.mathematics.graphs.colouring import colouring

Array = npt.NDArray[Any]
IntArray = npt.NDArray[np.int64]

MOST_DIAGONALS = 0.75
"""Of B, as a share of its rows, for which elimination is worth it."""
MOST_EDGES = 16
"""A variable, beyond which no two colours are looked for."""


class Eliminated(NamedTuple):
    """E⁻¹ as a column, -BᵀE⁻¹, S⁻¹ and -E⁻¹B, and two tiles of work space; the first rows of tiles are eliminated."""

    pivots: Array
    down: Diagonals
    corner: Matrix
    up: Diagonals
    reduced: Array
    solved: Array


def two_colours(Q: Array) -> tuple[IntArray, IntArray] | None:
    """The variables of either colour, if Q couples none of the same colour and both are many; else None."""
    edges = np.argwhere(np.triu(Q, 1))
    if len(edges) > MOST_EDGES * len(Q) or (colours := colouring(len(Q), edges)).max() != 1:
        return None
    first, second = (np.flatnonzero(colours == colour) for colour in (0, 1))
    if min(first.size, second.size) < 0.4 * len(Q):
        return None
    few = MOST_DIAGONALS * min(first.size, second.size)
    return (first, second) if count_diagonals(Q[np.ix_(first, second)]) <= few else None


def make_eliminated(Q: Array, inverse: Array, colours: tuple[IntArray, IntArray], layout: Layout) -> Eliminated:
    """From Q and Q⁻¹ (N, N) and the `two_colours` of Q, which `layout.order` has one after the other."""
    first, second = colours
    pivots = 1.0 / np.diag(Q)
    up = -pivots[first, None] * Q[np.ix_(first, second)]
    return Eliminated(
        pivots=layout.column(pivots),
        down=make_diagonals(up.T, layout),
        corner=make_matrix(inverse[np.ix_(second, second)], layout),
        up=make_diagonals(up, layout),
        reduced=layout.tile(second.size),
        solved=layout.tile(second.size),
    )


@nb.njit(**KERNEL)
def eliminated_product(factor, v, out):
    """out = Q⁻¹v; zeros surround v."""
    x, to, pivots, width = address(v, 0), address(out, 0), address(factor.pivots, 0), unit(v)
    reduced, solved = address(factor.reduced, 0), address(factor.solved, 0)
    count, rest = factor.up.rows, factor.down.rows
    for i in range(0, rest, stride(v)):
        total = add_diagonals(factor.down, v, 0, i, load_vector(x, (count + i) * width))
        store(reduced, i * width, total)
    product(factor.corner, factor.reduced, factor.solved)
    for i in range(0, count, stride(v)):
        own = coefficient(v, pivots, i) * load_vector(x, i * width)
        store(to, i * width, add_diagonals(factor.up, factor.solved, 0, i, own))
    for i in range(0, rest, stride(v)):  # after the first rows, whose last vector reaches into these
        store(to, (count + i) * width, load_vector(solved, i * width))
