"""Cholesky factors of block matrices as of `elimination.Blocks`, and the systems that they solve.

Left-looking: a column of blocks takes in those before it that have a block in its row, and is finished then. Blocks of
b × b entries, columns slowest, stand one after the other, so that a block is a vector or two.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from spinbench.backends.numba.exact.options import ONCE

NONE = -1


@njit(**ONCE)
def factorise(first, rows, b, matrix, columns, where):
    """Overwrites the lower half of a symmetric matrix by its Cholesky factor; False where it is not positive definite.

    Args:
        first, rows: as of `Blocks`.
        b: rows of a block, 2 or 3.
        matrix: blocks, of which the upper half of diagonal ones is not read.
        columns: (3, E) int64 for its own use: the first column that waits for each row, the next one that waits for the
            same, and the block of each column that is next.
        where: (E,) int64 for its own use.
    """
    columns[0, :] = NONE
    for k in range(first.size - 1):
        for t in range(first[k], first[k + 1]):
            where[rows[t]] = t
        j = columns[0, k]
        while j != NONE:
            following, at = columns[1, j], columns[2, j]
            if b == 2:
                _take_two(matrix, rows, where, at, first[j + 1])
            else:
                _take_three(matrix, rows, where, at, first[j + 1])
            _wait(j, at + 1, first, rows, columns)
            j = following
        if not _finish(matrix, b, first[k], first[k + 1]):
            return False
        _wait(k, first[k] + 1, first, rows, columns)
    return True


@njit(**ONCE)
def _wait(j, at, first, rows, columns):
    """Column j waits for the row of its block `at`, if it has so many."""
    if at < first[j + 1]:
        columns[2, j] = at
        columns[1, j] = columns[0, rows[at]]
        columns[0, rows[at]] = j


@njit(error_model="numpy", fastmath={"contract"})
def _take_two(m, rows, where, at, end):
    """Takes a column's blocks from `at` on, times the transpose of that one, from the column of its row."""
    p, q, r, s = m[4 * at], m[4 * at + 1], m[4 * at + 2], m[4 * at + 3]
    for t in range(at, end):
        to = 4 * where[rows[t]]
        a, b, c, d = m[4 * t], m[4 * t + 1], m[4 * t + 2], m[4 * t + 3]
        e, f, g, h = m[to], m[to + 1], m[to + 2], m[to + 3]
        e, f, g, h = e - a * p - c * r, f - b * p - d * r, g - a * q - c * s, h - b * q - d * s
        m[to], m[to + 1], m[to + 2], m[to + 3] = e, f, g, h


@njit(error_model="numpy", fastmath={"contract"})
def _take_three(m, rows, where, at, end):
    """As `_take_two`, of 3 × 3 blocks, a column at a time."""
    for j in range(3):
        p, q, r = m[9 * at + j], m[9 * at + 3 + j], m[9 * at + 6 + j]
        for t in range(at, end):
            to = 9 * where[rows[t]] + 3 * j
            x, y, z = m[9 * t], m[9 * t + 1], m[9 * t + 2]
            x, y, z = x * p + m[9 * t + 3] * q, y * p + m[9 * t + 4] * q, z * p + m[9 * t + 5] * q
            x, y, z = x + m[9 * t + 6] * r, y + m[9 * t + 7] * r, z + m[9 * t + 8] * r
            m[to], m[to + 1], m[to + 2] = m[to] - x, m[to + 1] - y, m[to + 2] - z


@njit(**ONCE)
def _finish(m, b, begin, end):
    """Blocks of a column that has taken in all others become those of the factor."""
    size, diagonal = b * b, begin * b * b
    for j in range(b):
        for k in range(j):
            p = m[diagonal + k * b + j]
            for i in range(j, b):
                m[diagonal + j * b + i] -= p * m[diagonal + k * b + i]
        if not 0.0 < m[diagonal + j * (b + 1)] < np.inf:
            return False
        scale = 1.0 / math.sqrt(m[diagonal + j * (b + 1)])
        for i in range(j, b):
            m[diagonal + j * b + i] *= scale
    for at in range(diagonal + size, end * size, size):
        for j in range(b):
            scale = 1.0 / m[diagonal + j * (b + 1)]
            for i in range(b):
                total = m[at + j * b + i]
                for k in range(j):
                    total -= m[diagonal + k * b + j] * m[at + k * b + i]
                m[at + j * b + i] = total * scale
    return True


@njit(**ONCE)
def solve(first, rows, b, factor, x):
    """Overwrites a right hand side (E·b,) by the solution."""
    for k in range(first.size - 1):
        for j in range(b):
            at = first[k] * b * b + j * b
            one = x[b * k + j] / factor[at + j]
            x[b * k + j] = one
            for i in range(j + 1, b):
                x[b * k + i] -= factor[at + i] * one
        for t in range(first[k] + 1, first[k + 1]):
            for j in range(b):
                for i in range(b):
                    x[b * rows[t] + i] -= factor[(t * b + j) * b + i] * x[b * k + j]
    for k in range(first.size - 2, -1, -1):
        for t in range(first[k] + 1, first[k + 1]):
            for j in range(b):
                for i in range(b):
                    x[b * k + j] -= factor[(t * b + j) * b + i] * x[b * rows[t] + i]
        for j in range(b - 1, -1, -1):
            at = first[k] * b * b + j * b
            one = x[b * k + j]
            for i in range(j + 1, b):
                one -= factor[at + i] * x[b * k + i]
            x[b * k + j] = one / factor[at + j]
