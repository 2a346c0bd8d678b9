"""Cholesky factors of block matrices as of `elimination.Blocks`, and the systems that they solve.

Left-looking: a column of blocks takes in those before it that have a block in its row, and is finished then. Blocks of
b × b entries stand one after the other, columns slowest, each of them filled up by a zero to a vector.
"""

from __future__ import annotations

import math

from numba import njit

from spinbench.backends.numba.exact.options import ONCE
from spinbench.backends.numba.simd.memory import address
from spinbench.backends.numba.simd.vector_memory import load_sum_words, store_sum_vector
from spinbench.backends.numba.simd.vectors import total

NONE = -1
TWO, FOUR = (0, 0), (0, 0, 0, 0)
"""As many lanes."""


@njit(**ONCE)
def lanes(b):
    """Entries from one column of a block to the next."""
    return 2 if b == 2 else 4


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
    blocks = address(matrix, 0)
    for k in range(first.size - 1):
        for t in range(first[k], first[k + 1]):
            where[rows[t]] = t
        j = columns[0, k]
        while j != NONE:
            following, at = columns[1, j], columns[2, j]
            if b == 2:
                _take_two(blocks, matrix, rows, where, at, first[j + 1])
            else:
                _take_three(blocks, matrix, rows, where, at, first[j + 1])
            _wait(j, at + 1, first, rows, columns)
            j = following
        if not _finish(blocks, matrix, b, first[k], first[k + 1]):
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


@njit(**ONCE)
def _take_two(blocks, m, rows, where, at, end):
    """Takes a column's blocks from `at` on, times the transpose of that one, from the column of its row."""
    p, q, r, s = m[4 * at], m[4 * at + 1], m[4 * at + 2], m[4 * at + 3]
    for t in range(at, end):
        to = 4 * where[rows[t]]
        one, two = load_sum_words(blocks, 4 * t, TWO), load_sum_words(blocks, 4 * t + 2, TWO)
        left, right = load_sum_words(blocks, to, TWO), load_sum_words(blocks, to + 2, TWO)
        store_sum_vector(blocks, to, left - (one * p + two * r))
        store_sum_vector(blocks, to + 2, right - (one * q + two * s))


@njit(**ONCE)
def _take_three(blocks, m, rows, where, at, end):
    """As `_take_two`, of 3 × 3 blocks."""
    a = 12 * at
    p0, p1, p2, q0, q1, q2 = m[a], m[a + 1], m[a + 2], m[a + 4], m[a + 5], m[a + 6]
    r0, r1, r2 = m[a + 8], m[a + 9], m[a + 10]
    for t in range(at, end):
        to = 12 * where[rows[t]]
        one, two = load_sum_words(blocks, 12 * t, FOUR), load_sum_words(blocks, 12 * t + 4, FOUR)
        three = load_sum_words(blocks, 12 * t + 8, FOUR)
        x, y, z = (
            load_sum_words(blocks, to, FOUR),
            load_sum_words(blocks, to + 4, FOUR),
            load_sum_words(blocks, to + 8, FOUR),
        )
        store_sum_vector(blocks, to, x - (one * p0 + two * q0 + three * r0))
        store_sum_vector(blocks, to + 4, y - (one * p1 + two * q1 + three * r1))
        store_sum_vector(blocks, to + 8, z - (one * p2 + two * q2 + three * r2))


@njit(**ONCE)
def _finish(blocks, m, b, begin, end):
    """Blocks of a column that has taken in all others become those of the factor."""
    lead = lanes(b)
    diagonal = begin * b * lead
    for j in range(b):
        for k in range(j):
            p = m[diagonal + k * lead + j]
            for i in range(j, b):
                m[diagonal + j * lead + i] -= p * m[diagonal + k * lead + i]
        if not 0.0 < m[diagonal + j * (lead + 1)] < math.inf:
            return False
        scale = 1.0 / math.sqrt(m[diagonal + j * (lead + 1)])
        for i in range(j, b):
            m[diagonal + j * lead + i] *= scale
    if b == 2:
        _below_two(blocks, m, begin, end)
    else:
        _below_three(blocks, m, begin, end)
    return True


@njit(**ONCE)
def _below_two(blocks, m, begin, end):
    """Blocks of a column below its diagonal one times the inverse transpose of that."""
    at = 4 * begin
    p, q, r = 1.0 / m[at], m[at + 1], 1.0 / m[at + 3]
    for t in range(4 * begin + 4, 4 * end, 4):
        one = load_sum_words(blocks, t, TWO) * p
        store_sum_vector(blocks, t, one)
        store_sum_vector(blocks, t + 2, (load_sum_words(blocks, t + 2, TWO) - one * q) * r)


@njit(**ONCE)
def _below_three(blocks, m, begin, end):
    """As `_below_two`, of 3 × 3 blocks."""
    at = 12 * begin
    p, q, r, s, u, v = 1.0 / m[at], m[at + 1], m[at + 2], 1.0 / m[at + 5], m[at + 6], 1.0 / m[at + 10]
    for t in range(12 * begin + 12, 12 * end, 12):
        one = load_sum_words(blocks, t, FOUR) * p
        two = (load_sum_words(blocks, t + 4, FOUR) - one * q) * s
        store_sum_vector(blocks, t, one)
        store_sum_vector(blocks, t + 4, two)
        store_sum_vector(blocks, t + 8, (load_sum_words(blocks, t + 8, FOUR) - one * r - two * u) * v)


@njit(**ONCE)
def solve(first, rows, b, factor, x):
    """Overwrites a right hand side by the solution: (E·lanes,), b of `lanes` entries an edge, the last 0 if there is
    one more."""
    if b == 2:
        _solve_two(first, rows, factor, address(factor, 0), x, address(x, 0))
    else:
        _solve_three(first, rows, factor, address(factor, 0), x, address(x, 0))


@njit(**ONCE)
def _solve_two(first, rows, m, blocks, x, entries):
    for k in range(first.size - 1):
        at, to = 4 * first[k], 2 * k
        x[to] /= m[at]
        x[to + 1] = (x[to + 1] - m[at + 1] * x[to]) / m[at + 3]
        p, q = x[to], x[to + 1]
        for t in range(first[k] + 1, first[k + 1]):
            moved = load_sum_words(blocks, 4 * t, TWO) * p + load_sum_words(blocks, 4 * t + 2, TWO) * q
            store_sum_vector(entries, 2 * rows[t], load_sum_words(entries, 2 * rows[t], TWO) - moved)
    for k in range(first.size - 2, -1, -1):
        at, to = 4 * first[k], 2 * k
        zero = load_sum_words(entries, to, TWO) * 0.0
        one, two = zero, zero
        for t in range(first[k] + 1, first[k + 1]):
            known = load_sum_words(entries, 2 * rows[t], TWO)
            one = one + load_sum_words(blocks, 4 * t, TWO) * known
            two = two + load_sum_words(blocks, 4 * t + 2, TWO) * known
        x[to + 1] = (x[to + 1] - total(two)) / m[at + 3]
        x[to] = (x[to] - total(one) - m[at + 1] * x[to + 1]) / m[at]


@njit(**ONCE)
def _solve_three(first, rows, m, blocks, x, entries):
    for k in range(first.size - 1):
        at, to = 12 * first[k], 4 * k
        x[to] /= m[at]
        x[to + 1] = (x[to + 1] - m[at + 1] * x[to]) / m[at + 5]
        x[to + 2] = (x[to + 2] - m[at + 2] * x[to] - m[at + 6] * x[to + 1]) / m[at + 10]
        p, q, r = x[to], x[to + 1], x[to + 2]
        for t in range(first[k] + 1, first[k + 1]):
            moved = load_sum_words(blocks, 12 * t, FOUR) * p + load_sum_words(blocks, 12 * t + 4, FOUR) * q
            moved = moved + load_sum_words(blocks, 12 * t + 8, FOUR) * r
            store_sum_vector(entries, 4 * rows[t], load_sum_words(entries, 4 * rows[t], FOUR) - moved)
    for k in range(first.size - 2, -1, -1):
        at, to = 12 * first[k], 4 * k
        zero = load_sum_words(entries, to, FOUR) * 0.0
        one, two, three = zero, zero, zero
        for t in range(first[k] + 1, first[k + 1]):
            known = load_sum_words(entries, 4 * rows[t], FOUR)
            one = one + load_sum_words(blocks, 12 * t, FOUR) * known
            two = two + load_sum_words(blocks, 12 * t + 4, FOUR) * known
            three = three + load_sum_words(blocks, 12 * t + 8, FOUR) * known
        x[to + 2] = (x[to + 2] - total(three)) / m[at + 10]
        x[to + 1] = (x[to + 1] - total(two) - m[at + 6] * x[to + 2]) / m[at + 5]
        x[to] = (x[to] - total(one) - m[at + 1] * x[to + 1] - m[at + 2] * x[to + 2]) / m[at]
