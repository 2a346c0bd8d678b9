"""Products with Q⁻¹ where half of the variables touch only the other half, as on lattices.

Q = [[E, B], [Bᵀ, F]] with a diagonal E: with the Schur complement S = F - BᵀE⁻¹B,

    y₂ = S⁻¹ (x₂ - BᵀE⁻¹ x₁),    y₁ = E⁻¹ x₁ - E⁻¹B y₂    give y = Q⁻¹x.

S⁻¹ is the corner of Q⁻¹, dense, and half as wide: a quarter of the multiplications, and at N = 100 a matrix of 10 KB
(20 KB in float64) that stays in the first-level cache. B has few diagonals, or it is not worth it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba.extending import overload

from spinbench.backends.numba.relaxed.matrices import (
    Banded,
    Dense,
    add_diagonals,
    count_diagonals,
    entries,
    make_banded,
    make_dense,
    product,
)
from spinbench.backends.numba.relaxed.tiles import KERNEL, Layout, coefficient, stride, unit
from spinbench.backends.numba.simd.memory import address, load_vector, store
from spinbench.mathematics.graphs.colouring import colouring

Array = npt.NDArray[Any]
IntArray = npt.NDArray[np.int64]

MOST_DIAGONALS = 0.75
"""Of B, as a share of its rows, for which elimination is worth it."""
MOST_EDGES = 16
"""A variable, beyond which no two colours are looked for."""


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
    if len(edges) > MOST_EDGES * len(Q) or (colours := colouring(len(Q), edges)).max() != 1:
        return None
    first, second = (np.flatnonzero(colours == colour) for colour in (0, 1))
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
    return _eliminated_product if matrix.instance_class is Eliminated else None


def _eliminated_product(matrix, v, out):
    """out = Q⁻¹v; zeros surround v."""
    x, to, pivots, width = address(v, 0), address(out, 0), address(matrix.pivots, 0), unit(v)
    reduced, solved = address(matrix.reduced, 0), address(matrix.solved, 0)
    count, rest = matrix.up.rows, matrix.down.rows
    for i in range(0, rest, stride(v)):
        total = add_diagonals(matrix.down, v, i, load_vector(x, (count + i) * width))
        store(reduced, i * width, total)
    product(matrix.corner, matrix.reduced, matrix.solved)
    for i in range(0, count, stride(v)):
        own = coefficient(pivots, i, v) * load_vector(x, i * width)
        store(to, i * width, add_diagonals(matrix.up, matrix.solved, i, own))
    for i in range(0, rest, stride(v)):  # after the first rows, whose last vector reaches into these
        store(to, (count + i) * width, load_vector(solved, i * width))
