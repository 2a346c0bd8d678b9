"""How the frontier of a grid (`grid_kernels`) goes from one row to the next, column by column.

The frontier (2^C,) has a bit for each column. Column c joins all pairs of entries that differ in its bit, by four
products and two sums a pair, with coefficients that depend on the spin to its left. The limit is the arithmetic, three
operations an entry and site, with one load and one store of it. What reaches it:

    low columns, up to LOW, block by block of 2^LOW entries. A column's pairs are neighbours on the way in, and its new
    spin goes to the top of the index on the way out (the other way round for the way back up), so that after all of
    them the order is the old one, loops are long at every column, and coefficients are constant over each half
    high columns in place, one pass over the frontier each
"""

from __future__ import annotations

from typing import Any

from spinbench.backends.numba.exact.options import SHARED
from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.simd.functions import larger, smaller
from spinbench.backends.numba.simd.memory import address, load, store

LOW = 11
"""Two blocks of 2^LOW entries lie in the first-level cache."""
COLUMN: Any = {**SHARED, "fastmath": {"contract"}}


@njit(**COLUMN)
def _in_place(front, bit, coefficients):
    """The column whose spin is `bit` of the index and stays there; the spin to its left has the bit below.

    Args:
        front: (2^C,) float64.
        bit: power of two.
        coefficients: (2, 2, 2) [left spin, to, from]; the same for both where there is none to the left.
    """
    entries, run = address(front, 0), larger(bit >> 1, 1)  # over which the left neighbour stays the same
    for begin in range(0, front.size, 2 * bit):
        for left in range(bit // run):
            a00, a01 = coefficients[left, 0, 0], coefficients[left, 0, 1]
            a10, a11 = coefficients[left, 1, 0], coefficients[left, 1, 1]
            for i in range(begin + left * run, begin + (left + 1) * run):
                x, y = load(entries, i), load(entries, i + bit)
                store(entries, i, a00 * x + a01 * y)
                store(entries, i + bit, a10 * x + a11 * y)


@njit(cache=True, error_model="numpy")
def column(front, bit, coefficients):
    """`_in_place`, for Python."""
    _in_place(front, bit, coefficients)


@njit(**COLUMN)
def _turn(source, target, size, coefficients, up):
    """The column at the lowest bit of `source`, which becomes the highest of `target`; or the other way round, `up`.

    Both are pointers to `size` floats.
    """
    half, quarter = size >> 1, size >> 2
    for left in range(2):
        a00, a01 = coefficients[left, 0, 0], coefficients[left, 0, 1]
        a10, a11 = coefficients[left, 1, 0], coefficients[left, 1, 1]
        for i in range(left * quarter, (left + 1) * quarter):
            low, high, even, odd = i, half + i, 2 * i, 2 * i + 1
            if up is None:
                x, y = load(source, even), load(source, odd)
                store(target, low, a00 * x + a01 * y)
                store(target, high, a10 * x + a11 * y)
            else:
                x, y = load(source, low), load(source, high)
                store(target, even, a00 * x + a01 * y)
                store(target, odd, a10 * x + a11 * y)


@njit(**COLUMN)
def _low_columns(source, target, low, up, copy, coefficients):
    """Of each block; source and target may be the same."""
    size = 1 << low
    for begin in range(0, source.size, size):
        here = address(source, begin)
        for k in range(low):
            there = address(target, begin) if k == low - 1 else address(copy, (k & 1) * size)
            _turn(here, there, size, coefficients[k if up is None else low - 1 - k], up)
            here = there


@njit(**COLUMN)
def cross(source, target, up, copy, coefficients):
    """Takes the frontier over a row.

    Args:
        up: None: down; else up again.
        source, target: (2^C,) float64; the same, or apart. Going up, high columns are crossed in `source`.
        copy: (`copy_size`,) float64 work.
        coefficients: (C, 2, 2, 2) [column, left spin, to, from]; those of column 0 are the same for both left spins.
    """
    width = coefficients.shape[0]
    low = smaller(width, LOW)
    if up is not None:
        for c in range(width - 1, low - 1, -1):
            _in_place(source, 1 << c, coefficients[c])
    _low_columns(source, target, low, up, copy, coefficients)
    if up is None:
        for c in range(low, width):
            _in_place(target, 1 << c, coefficients[c])


def copy_size(width: int) -> int:
    """Entries of work that `cross` takes."""
    return 2 << min(width, LOW)
