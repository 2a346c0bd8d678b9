"""Dense products with states and vectors of all chains, (N, C) and contiguous.

With many chains they are BLAS's. For one chain, where reading the matrix is the limit, LLVM's own loops are as fast and
start sooner, and can skip what is zero.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from spinbench.backends.numba.functions import ZERO, flat
from spinbench.backends.numba.memory import address, load_sum, load_table, store_sum
from spinbench.backends.numba.units import KERNEL, OUTER

FIRST_LEVEL_CACHE = 48 * 1024
"""Bytes; for larger matrices, reading is what limits a product with one vector."""


@nb.njit(**KERNEL)
def _matvec(M, v, out):
    """out = Mv for one chain, as sums of products, eight rows at a time for each reading of v."""
    n = v.size
    whole = n - n % 8
    for i in range(0, whole, 8):
        row0, row1, row2, row3 = M[i], M[i + 1], M[i + 2], M[i + 3]
        row4, row5, row6, row7 = M[i + 4], M[i + 5], M[i + 6], M[i + 7]
        sum0 = sum1 = sum2 = sum3 = sum4 = sum5 = sum6 = sum7 = ZERO(v[0])
        for j in range(n):
            x = v[j]
            sum0 += row0[j] * x
            sum1 += row1[j] * x
            sum2 += row2[j] * x
            sum3 += row3[j] * x
            sum4 += row4[j] * x
            sum5 += row5[j] * x
            sum6 += row6[j] * x
            sum7 += row7[j] * x
        out[i], out[i + 1], out[i + 2], out[i + 3] = sum0, sum1, sum2, sum3
        out[i + 4], out[i + 5], out[i + 6], out[i + 7] = sum4, sum5, sum6, sum7
    for i in range(whole, n):
        out[i] = _dot(M[i], v)


@nb.njit(**KERNEL)
def _dot(x, y):
    total = ZERO(y[0])
    for j in range(y.size):
        total += x[j] * y[j]
    return total


@nb.njit(**KERNEL)
def _lower_matvec(M, v, out):
    """out = Mv for one chain and an M that is zero above the diagonal."""
    n = v.size
    whole = n - n % 4
    for i in range(0, whole, 4):
        row0, row1, row2, row3, x = M[i], M[i + 1], M[i + 2], M[i + 3], v[: i + 4]
        sum0 = sum1 = sum2 = sum3 = ZERO(x[0])
        for j in range(x.size):
            sum0 += row0[j] * x[j]
            sum1 += row1[j] * x[j]
            sum2 += row2[j] * x[j]
            sum3 += row3[j] * x[j]
        out[i], out[i + 1], out[i + 2], out[i + 3] = sum0, sum1, sum2, sum3
    for i in range(whole, n):
        out[i] = _dot(M[i], v)


@nb.njit(**KERNEL)
def _symmetric_matvec(M, v, out):
    """out = Mv for one chain and symmetric M, from its upper triangle: half the reading, for the price of stores."""
    n = v.size
    whole = n - n % 4
    for j in range(n):
        out[j] = ZERO(v[0])
    for i in range(0, whole, 4):
        end = i + 4
        row0, row1, row2, row3 = M[i, end:], M[i + 1, end:], M[i + 2, end:], M[i + 3, end:]
        x, to, x0, x1, x2, x3 = v[end:], out[end:], v[i], v[i + 1], v[i + 2], v[i + 3]
        sum0 = sum1 = sum2 = sum3 = ZERO(x0)
        for j in range(x.size):
            sum0 += row0[j] * x[j]
            sum1 += row1[j] * x[j]
            sum2 += row2[j] * x[j]
            sum3 += row3[j] * x[j]
            to[j] += (row0[j] * x0 + row1[j] * x1) + (row2[j] * x2 + row3[j] * x3)
        for j in range(i, end):
            out[j] += (M[j, i] * x0 + M[j, i + 1] * x1) + (M[j, i + 2] * x2 + M[j, i + 3] * x3)
        out[i] += sum0
        out[i + 1] += sum1
        out[i + 2] += sum2
        out[i + 3] += sum3
    for i in range(whole, n):
        for j in range(whole, n):
            out[i] += M[i, j] * v[j]


@nb.njit(**OUTER)
def _add_rows(M, s, out):
    """out = Mᵀs for one chain and s in {0, 1}: the sum of the chosen rows, eight at a time."""
    n, m = M.shape
    chosen = np.empty(n + 1, dtype=np.int64)
    count = 0
    for i in range(n):
        chosen[count] = i * m
        count += s[i] != ZERO(s[i])
    rows, to, zero = address(M, 0), address(out, 0), ZERO(s[0])
    for j in range(m):
        store_sum(to, j, zero)
    whole = count - count % 8
    for k in range(0, whole, 8):
        row0, row1, row2, row3 = chosen[k], chosen[k + 1], chosen[k + 2], chosen[k + 3]
        row4, row5, row6, row7 = chosen[k + 4], chosen[k + 5], chosen[k + 6], chosen[k + 7]
        for j in range(m):
            left = (load_table(rows, row0 + j) + load_table(rows, row1 + j)) + load_table(rows, row2 + j)
            right = (load_table(rows, row4 + j) + load_table(rows, row5 + j)) + load_table(rows, row6 + j)
            both = (left + load_table(rows, row3 + j)) + (right + load_table(rows, row7 + j))
            store_sum(to, j, load_sum(to, j) + both)
    for k in range(whole, count):
        row0 = chosen[k]
        for j in range(m):
            store_sum(to, j, load_sum(to, j) + load_table(rows, row0 + j))


@nb.njit(**OUTER)
def _multiply(M, v, out):
    """BLAS's matrix product."""
    np.dot(M, v, out)


@nb.njit(**KERNEL)
def product(M, v, out):
    """out = Mv, (N, C)."""
    if v.shape[1] == 1:
        _matvec(M, flat(v), flat(out))
    else:
        _multiply(M, v, out)


@nb.njit(**KERNEL)
def symmetric_product(M, v, out):
    """out = Mv for a symmetric M."""
    if v.shape[1] == 1 and M.size * M.itemsize > FIRST_LEVEL_CACHE:
        _symmetric_matvec(M, flat(v), flat(out))
    else:
        product(M, v, out)


@nb.njit(**KERNEL)
def lower_product(M, v, out):
    """out = Mv for a lower triangular M."""
    if v.shape[1] == 1:
        _lower_matvec(M, flat(v), flat(out))
    else:
        _multiply(M, v, out)


@nb.njit(**KERNEL)
def binary_product(M, M_t, s, out):
    """out = M_t s for s in {0, 1}; M is its transpose."""
    if s.shape[1] == 1:
        _add_rows(M, flat(s), flat(out))
    else:
        _multiply(M_t, s, out)
