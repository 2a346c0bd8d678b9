"""Matrices and their products with tiles of chains (`tiles`); a matrix's type decides what is compiled.

Dense, of many chains: blocks of ten rows, whose sums stay in registers while the columns pass; each entry is read once
a tile, spread over the lanes by the multiplication itself. Two multiplications a cycle are the limit, 10⁴ / 2 cycles at
N = 100, for 16 chains in float32 and 8 in float64.

Dense, of one chain: panels of 64 rows (32 in float64) of a matrix stored by columns, whose sums stay in registers, too;
of 16 (8) where there are fewer than 64. The limit is reading the matrix: 700 vectors at N = 100 in float32, 1300 in
float64, two a cycle from the first-level cache (48 KB) and about one in two cycles from the second.

Banded, such as W + D and its Cholesky factor on a lattice: one multiplication and addition an entry of a diagonal, in
sequence: on a 10×10 grid 5 and 11 diagonals in place of 100 and 50, so that nothing of a step is read from beyond the
first-level cache. Sparse: the same for entries anywhere, which one chain gathers.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from spinbench.backends.numba.relaxed.tiles import KERNEL, Layout, coefficient, stride, unit, zeros
from spinbench.backends.numba.simd import (
    Array,
    add_panel,
    add_rows,
    address,
    by_types,
    gather_indexed,
    load,
    load_row,
    load_vector,
    smaller,
    store_row,
    store_sums,
    zero_sums,
    zeros_aligned,
)

# Rows of a block for many chains: ten sums hide the latency of multiply-add and leave registers (of 32) for the column
# and the entry.
ROWS = 10
# Vectors of a panel for one chain, rows times columns: eight sums hide a latency of four cycles at two operations a
# cycle.
SUMS = 8
_BLOCK, _ROW = (0,) * ROWS, (0,)
_SUMS, _PANEL, _NARROW = (0,) * SUMS, (0,) * 4, (0,)


class Dense(NamedTuple):
    """(n, m). For many chains `values` is the matrix; for one chain it holds column after column, (m rounded up to a
    multiple of 8, n rounded up to whole vectors), with zeros around. `rows` is n."""

    values: Array
    rows: int


class Banded(NamedTuple):
    """Entry (i, i + offsets_k) of an (n, m) matrix is values_ki; offsets (K,) int64; values (K, n rounded up).

    Zeros surround the tiles that it multiplies, as many as the band is wide.
    """

    offsets: npt.NDArray[np.int64]
    values: Array
    rows: int


class Sparse(NamedTuple):
    """Entry (i, places_ki) of an (n, m) matrix is values_ki, both (K, n rounded up); 0 beyond a row's own entries."""

    places: npt.NDArray[np.uint32]
    values: Array
    rows: int


class Entries(NamedTuple):
    """values_k at (i_k, j_k), each place once, of a matrix of so many rows."""

    i: Array
    j: Array
    values: Array
    rows: int


def entries(M: Array) -> Entries:
    """Those that are not zero."""
    i, j = np.nonzero(M)
    return Entries(i, j, M[i, j], len(M))


def make_dense(M: Array, layout: Layout) -> Dense:
    """For tiles of this layout."""
    n, m = M.shape
    if not layout.single:
        return Dense(np.ascontiguousarray(M, dtype=layout.real), n)
    values = zeros_aligned((-(-m // SUMS) * SUMS, layout.pad_rows(n)), layout.real)
    values[:m, :n] = M.T
    return Dense(values, n)


def count_diagonals(M: Array) -> int:
    """How many are not all zero."""
    i, j = np.nonzero(M)
    return int(np.unique(j - i).size)


def make_banded(nonzero: Entries, layout: Layout) -> Banded:
    """The diagonals that are not all zero."""
    offsets, k = np.unique(nonzero.j - nonzero.i, return_inverse=True)
    values = zeros_aligned((offsets.size, layout.pad_rows(nonzero.rows)), layout.real)
    values[k, nonzero.i] = nonzero.values
    return Banded(offsets.astype(np.int64), values, nonzero.rows)


def make_sparse(nonzero: Entries, layout: Layout) -> Sparse:
    """As many entries a row as the longest has."""
    order, counts = np.argsort(nonzero.i, kind="stable"), np.bincount(nonzero.i, minlength=nonzero.rows)
    k = np.arange(order.size) - np.repeat(np.cumsum(counts) - counts, counts)
    shape = int(counts.max(initial=0)), layout.pad_rows(nonzero.rows)
    places, values = zeros_aligned(shape, np.dtype(np.uint32)), zeros_aligned(shape, layout.real)
    places[k, nonzero.i[order]] = nonzero.j[order]
    values[k, nonzero.i[order]] = nonzero.values[order]
    return Sparse(places, values, nonzero.rows)


@by_types(**KERNEL)
def product(matrix, v, out):
    """out = Mv for tiles; `out` is not `v`."""
    kind = matrix.instance_class
    if kind is Dense:
        return _panel_product if v.ndim == 1 else _block_product
    return {Banded: _band_product, Sparse: _sparse_product}.get(kind)


@nb.njit(**KERNEL)
def _block(matrix, v, out, i, sums):
    """Rows i, i + 1, … of a product, as many as `sums` has entries."""
    table, x, to, width = address(matrix.values, 0), address(v, 0), address(out, 0), unit(v)
    m = matrix.values.shape[1]
    for j in range(m):
        sums = add_rows(sums, load_vector(x, j * width), table, i * m + j, m)
    store_sums(to, i * width, width, sums, sums)


def _block_product(matrix, v, out):
    n, sample = len(matrix.values), out[0, 0]
    if n < len(_BLOCK):
        for i in range(n):
            _block(matrix, v, out, i, zero_sums(sample, _ROW))
        return
    for i in range(0, n, len(_BLOCK)):
        # The last block begins earlier and repeats some rows: a shorter block would be compiled as a separate version.
        _block(matrix, v, out, smaller(i, n - len(_BLOCK)), zero_sums(sample, _BLOCK))


@nb.njit(**KERNEL)
def _panel(matrix, v, out, first, across):
    """Rows first, first + 1, … of a product, as many vectors of them as `across` has entries."""
    table, x, to = address(matrix.values, 0), address(v, 0), address(out, 0)
    m, width = matrix.values.shape
    sums = zero_sums(matrix.values[0, 0], _SUMS)
    for j in range(0, m, len(_SUMS) // len(across)):
        sums = add_panel(sums, across, table, first, width, x, j)
    store_sums(to, first, stride(v), sums, across)


def _panel_product(matrix, v, out):
    width, step = matrix.values.shape[1], stride(v)
    panel = step * len(_PANEL)
    if width < panel:
        for first in range(0, width, step):
            _panel(matrix, v, out, first, _NARROW)
        return
    for first in range(0, width, panel):
        # The last panel overlaps the one before, as the last block does.
        _panel(matrix, v, out, smaller(first, width - panel), _PANEL)


@nb.njit(**KERNEL)
def add_banded_product(band, v, i, total):
    """total + the vector of Mv that begins at row i."""
    weights, width = address(band.values, 0), band.values.shape[1]
    for k in range(band.offsets.size):
        total = total + coefficient(weights, k * width + i, v) * load_row(v, i + band.offsets[k])
    return total


def _band_product(matrix, v, out):
    for i in range(0, matrix.rows, stride(v)):
        store_row(out, i, add_banded_product(matrix, v, i, zeros(v)))


def _sparse_product(matrix, v, out):
    places, weights, x = address(matrix.places, 0), address(matrix.values, 0), address(v, 0)
    terms, width = matrix.values.shape
    for i in range(0, matrix.rows, stride(v)):
        total = zeros(v)
        for k in range(terms):
            at = k * width + i
            # The number of axes is part of the type: Numba compiles only one branch.
            others = gather_indexed(x, places, at) if v.ndim == 1 else load_row(v, load(places, at))
            total = total + coefficient(weights, at, v) * others
        store_row(out, i, total)


@nb.njit(**KERNEL)
def add_scaled(x, scale, y, n, out):
    """out = x + scale · y, `scale` a number or in vectors, y a tile or a column; out may be x."""
    right = address(y, 0)
    for i in range(0, n, stride(x)):
        # The operand is vector or coefficient by its type: Numba compiles only one branch.
        other = coefficient(right, i, x) if y.ndim == 1 else load_row(y, i)
        store_row(out, i, load_row(x, i) + scale * other)
