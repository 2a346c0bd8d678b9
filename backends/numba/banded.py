"""Matrices of few diagonals, such as W + D and its Cholesky factor on a lattice, and their products.

A product takes one multiplication and addition an entry of a diagonal, in sequence: on a 10×10 grid 5 and 11 diagonals
in place of 100 and 50, so that nothing of a step is read from beyond the first-level cache.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from spinbench.backends.numba.memory import address, load_state, load_sum, load_table, store_sum
from spinbench.backends.numba.units import KERNEL

Array = npt.NDArray[Any]

WORTH = 0.5
"""The share of diagonals of a lower triangle up to which they are stored in place of the matrix."""


class Diagonals(NamedTuple):
    """Entry (i, i + offsets_k) of an (N, N) matrix is values_ki; offsets (K,) int64, the first 0; values (K, N)."""

    offsets: npt.NDArray[np.int64]
    values: Array


def make_diagonals(M: Array, real: npt.DTypeLike) -> Diagonals:
    """The diagonals that are not all zero, and the main one."""
    n = len(M)
    i, j = np.nonzero(M)
    others = np.unique(j - i)
    offsets = np.concatenate([[0], others[others != 0]]).astype(np.int64)
    values = np.zeros((offsets.size, n), dtype=real)
    for row, offset in zip(values, offsets.tolist(), strict=True):
        begin, end = max(0, -offset), min(n, n - offset)
        row[begin:end] = np.diagonal(M, offset)
    return Diagonals(offsets, values)


@nb.njit(**KERNEL)
def banded_product(band, v, out):
    """out = Mv, (N, C); v and out apart."""
    n, chains = out.shape
    if chains == 1:
        to, whence, weights = address(out, 0), address(v, 0), address(band.values, 0)
        for i in range(n):
            store_sum(to, i, load_table(weights, i) * load_state(whence, i))
        for k in range(1, band.offsets.size):
            offset = band.offsets[k]
            for i in range(max(0, -offset), min(n, n - offset)):
                term = load_table(weights, k * n + i) * load_state(whence, i + offset)
                store_sum(to, i, load_sum(to, i) + term)
        return
    for i in range(n):
        row, x, weight = out[i], v[i], band.values[0, i]
        for c in range(chains):
            row[c] = weight * x[c]
        for k in range(1, band.offsets.size):
            j = i + band.offsets[k]
            if 0 <= j < n:
                x, weight = v[j], band.values[k, i]
                for c in range(chains):
                    row[c] += weight * x[c]
