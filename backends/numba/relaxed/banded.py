"""Matrices of few diagonals, such as W + D and its Cholesky factor on a lattice, and their products with tiles.

A product takes one multiplication and addition an entry of a diagonal, in sequence: on a 10×10 grid 5 and 11 diagonals
in place of 100 and 50, so that nothing of a step is read from beyond the first-level cache.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from spinbench.backends.numba.relaxed.tiles import Layout, coefficient, stride, unit, zeros
from spinbench.backends.numba.relaxed.units import KERNEL
from spinbench.backends.numba.simd.memory import address, aligned_zeros, load_vector, store

Array = npt.NDArray[Any]


class Diagonals(NamedTuple):
    """Entry (i, i + offsets_k) of an (n, m) matrix is values_ki; offsets (K,) int64; values (K, n rounded up)."""

    offsets: npt.NDArray[np.int64]
    values: Array
    rows: int


def count_diagonals(M: Array) -> int:
    """How many are not all zero."""
    i, j = np.nonzero(M)
    return int(np.unique(j - i).size)


def make_diagonals(M: Array, layout: Layout) -> Diagonals:
    """The diagonals that are not all zero; for products with tiles whose margin is as wide as the band."""
    i, j = np.nonzero(M)
    return collect_diagonals(i, j, M[i, j], len(M), layout)


def collect_diagonals(i: Array, j: Array, entries: Array, rows: int, layout: Layout) -> Diagonals:
    """As `make_diagonals`, from the entries (i, j)."""
    offsets, k = np.unique(j - i, return_inverse=True)
    values = aligned_zeros((offsets.size, layout.padded(rows)), layout.real)
    values[k, i] = entries
    return Diagonals(offsets.astype(np.int64), values, rows)


@nb.njit(**KERNEL)
def add_diagonals(band, v, begin, i, total):
    """total + the vector of Mv that begins at row i, where v is rows begin, begin + 1, … of a tile."""
    weights, x, width = address(band.values, 0), address(v, 0), band.values.shape[1]
    for k in range(band.offsets.size):
        weight = coefficient(v, weights, k * width + i)
        total = total + weight * load_vector(x, (begin + i + band.offsets[k]) * unit(v))
    return total


@nb.njit(**KERNEL)
def banded_product(band, v, out):
    """out = Mv; zeros surround v."""
    to = address(out, 0)
    for i in range(0, band.rows, stride(v)):
        store(to, i * unit(v), add_diagonals(band, v, 0, i, zeros(v)))
