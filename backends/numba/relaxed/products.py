"""Dense products with tiles of chains (`tiles`), accumulated in registers.

Of many chains: blocks of ten rows, whose sums stay in registers while the columns pass; each entry is read once a
tile, spread over the lanes by the multiplication itself. Two multiplications a cycle are the limit, 10⁴ / 2 cycles at
N = 100, for 16 chains in float32 and 8 in float64.

Of one chain: panels of 64 rows (32 in float64) of a matrix stored by columns, whose sums stay in registers, too; of
16 (8) where there are fewer than 64. The limit is reading the matrix: 700 vectors at N = 100 in float32, 1300 in
float64, two a cycle from the first-level cache (48 KB) and about one in two cycles from the second.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from spinbench.backends.numba.relaxed.tiles import Layout, stride, unit
from spinbench.backends.numba.relaxed.units import KERNEL
from spinbench.backends.numba.simd.functions import smaller
from spinbench.backends.numba.simd.memory import address, aligned_zeros, load_vector
from spinbench.backends.numba.simd.vector_sums import add_panel, add_rows, store_sums, zero_sums

Array = npt.NDArray[Any]

ROWS = 10
"""Of a block for many chains."""
SUMS = 8
"""Of a panel for one chain: vectors of rows times columns at once."""
_BLOCK, _ROW = (0,) * ROWS, (0,)
_SUMS, _PANEL, _NARROW = (0,) * SUMS, (0,) * 4, (0,)


class Matrix(NamedTuple):
    """(n, m). For many chains `values` is the matrix; for one chain it holds column after column, (m rounded up to a
    multiple of 8, n rounded up to whole vectors), with zeros around. `rows` is n."""

    values: Array
    rows: int


def make_matrix(M: Array, layout: Layout) -> Matrix:
    """For tiles of this layout."""
    n, m = M.shape
    if not layout.single:
        return Matrix(np.ascontiguousarray(M, dtype=layout.real), n)
    values = aligned_zeros((-(-m // SUMS) * SUMS, layout.padded(n)), layout.real)
    values[:m, :n] = M.T
    return Matrix(values, n)


@nb.njit(**KERNEL)
def _block(matrix, v, out, i, sums):
    """Rows i, i + 1, … of a product, as many as `sums` has entries."""
    table, x, to, width = address(matrix.values, 0), address(v, 0), address(out, 0), unit(v)
    m = matrix.values.shape[1]
    for j in range(m):
        sums = add_rows(sums, load_vector(x, j * width), table, i * m + j, m)
    store_sums(to, i * width, width, sums, sums)


@nb.njit(**KERNEL)
def _many_product(matrix, v, out):
    n, one = len(matrix.values), out[0, 0]
    if n < len(_BLOCK):
        for i in range(n):
            _block(matrix, v, out, i, zero_sums(one, _ROW))
        return
    for i in range(0, n, len(_BLOCK)):
        _block(matrix, v, out, smaller(i, n - len(_BLOCK)), zero_sums(one, _BLOCK))  # the last does some rows again


@nb.njit(**KERNEL)
def _panel(matrix, v, out, first, across):
    """Rows first, first + 1, … of a product, as many vectors of them as `across` has entries."""
    table, x, to = address(matrix.values, 0), address(v, 0), address(out, 0)
    m, width = matrix.values.shape
    sums = zero_sums(matrix.values[0, 0], _SUMS)
    for j in range(0, m, len(_SUMS) // len(across)):
        sums = add_panel(sums, across, table, first, width, x, j)
    store_sums(to, first, stride(v), sums, across)


@nb.njit(**KERNEL)
def _single_product(matrix, v, out):
    width, step = matrix.values.shape[1], stride(v)
    panel = step * len(_PANEL)
    if width < panel:
        for first in range(0, width, step):
            _panel(matrix, v, out, first, _NARROW)
        return
    for first in range(0, width, panel):
        _panel(matrix, v, out, smaller(first, width - panel), _PANEL)  # the last does some rows again


@nb.njit(**KERNEL)
def product(matrix, v, out):
    """out = Mv for tiles; `out` is not `v`."""
    if v.ndim == 1:  # Numba compiles the one branch alone
        _single_product(matrix, v, out)
    else:
        _many_product(matrix, v, out)
