"""How the frontier of a grid (`grid_kernels`) goes from one row to the next, column by column.

The frontier (2^C,) has a bit for each column. Column c joins all pairs of entries that differ in its bit, by four
products and two sums a pair, with coefficients that depend on the spin to its left. The limit is the arithmetic, three
operations an entry and site, with one load and one store of it. What reaches it:

    low columns, up to LOW, block by block of 2^LOW entries. A column's pairs are neighbours on the way in, and its new
    spin goes to the top of the index on the way out (the other way round for the way back up), so that after all of
    them the order is the old one, loops are long at every column, and coefficients are constant over each half
    high columns in place, one pass over the frontier each

All is there twice: for numbers, and in log space, where products are sums.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from spinbench.backends.numba.exact.options import SHARED
from spinbench.backends.numba.simd.formulas import formula
from spinbench.backends.numba.simd.functions import at_least, exp, larger, log1p, magnitude, smaller
from spinbench.backends.numba.simd.memory import address, load_field, store_field

LOW = 11
"""Two blocks of 2^LOW entries lie in the first-level cache."""
COLUMN: Any = {**SHARED, "fastmath": {"contract"}}


@formula
def _plain(a, x, b, y):
    return a * x + b * y


@formula
def _logs(a, x, b, y):
    """log(e^(a + x) + e^(b + y))."""
    u, v = a + x, b + y
    return at_least(u, v) + log1p(exp(-magnitude(u - v)))


def _make_column(mix: Any) -> Any:
    """`column` in one of the two arithmetics."""

    @njit(**COLUMN)
    def column(front, bit, coefficients):
        entries, run = address(front, 0), larger(bit >> 1, 1)  # over which the left neighbour stays the same
        for begin in range(0, front.size, 2 * bit):
            for left in range(bit // run):
                a00, a01 = coefficients[left, 0, 0], coefficients[left, 0, 1]
                a10, a11 = coefficients[left, 1, 0], coefficients[left, 1, 1]
                for i in range(begin + left * run, begin + (left + 1) * run):
                    x, y = load_field(entries, i), load_field(entries, i + bit)
                    store_field(entries, i, mix(a00, x, a01, y))
                    store_field(entries, i + bit, mix(a10, x, a11, y))

    return column


def _make_turns(mix: Any) -> tuple[Any, Any]:
    """The column at the lowest bit of `source`, which becomes the highest of `target`, and the other way round.

    Both take pointers to `size` floats.
    """

    @njit(**COLUMN)
    def down(source, target, size, coefficients):
        half, quarter = size >> 1, size >> 2
        for left in range(2):
            a00, a01 = coefficients[left, 0, 0], coefficients[left, 0, 1]
            a10, a11 = coefficients[left, 1, 0], coefficients[left, 1, 1]
            for i in range(left * quarter, (left + 1) * quarter):
                x, y = load_field(source, 2 * i), load_field(source, 2 * i + 1)
                store_field(target, i, mix(a00, x, a01, y))
                store_field(target, half + i, mix(a10, x, a11, y))

    @njit(**COLUMN)
    def up(source, target, size, coefficients):
        half, quarter = size >> 1, size >> 2
        for left in range(2):
            a00, a01 = coefficients[left, 0, 0], coefficients[left, 0, 1]
            a10, a11 = coefficients[left, 1, 0], coefficients[left, 1, 1]
            for i in range(left * quarter, (left + 1) * quarter):
                x, y = load_field(source, i), load_field(source, half + i)
                store_field(target, 2 * i, mix(a00, x, a01, y))
                store_field(target, 2 * i + 1, mix(a10, x, a11, y))

    return down, up


_column, _column_logs = _make_column(_plain), _make_column(_logs)
(_down, _up), (_down_logs, _up_logs) = _make_turns(_plain), _make_turns(_logs)


@njit(**COLUMN)
def _column_of(front, bit, coefficients, logs):
    """The column whose spin is `bit` of the index and stays there, in place; the spin to its left has the bit below.

    Args:
        front: (2^C,) float64.
        coefficients: (2, 2, 2) [left spin, to, from]; the same for both where there is none to the left.
        logs: None, or entries and coefficients are logarithms.
    """
    if logs is not None:
        _column_logs(front, bit, coefficients)
    else:
        _column(front, bit, coefficients)


@njit(cache=True, error_model="numpy")
def column(front, bit, coefficients, logs):
    """`_column_of`, for Python."""
    _column_of(front, bit, coefficients, logs)


@njit(**COLUMN)
def _low_columns(source, target, low, up, copy, coefficients, logs):
    """Of each block; source and target may be the same."""
    size = 1 << low
    for begin in range(0, source.size, size):
        here = address(source, begin)
        for k in range(low):
            there = address(target, begin) if k == low - 1 else address(copy, (k & 1) * size)
            if up is None and logs is not None:
                _down_logs(here, there, size, coefficients[k])
            elif up is None:
                _down(here, there, size, coefficients[k])
            elif logs is not None:
                _up_logs(here, there, size, coefficients[low - 1 - k])
            else:
                _up(here, there, size, coefficients[low - 1 - k])
            here = there


@njit(**COLUMN)
def cross(source, target, up, copy, coefficients, logs):
    """Takes the frontier over a row.

    Args:
        up: None: down; else up again.
        source, target: (2^C,) float64; the same, or apart. Going up, high columns are crossed in `source`.
        copy: (`copy_size`,) float64 work.
        coefficients: (C, 2, 2, 2) [column, left spin, to, from]; those of column 0 are the same for both left spins.
        logs: None, or entries and coefficients are logarithms.
    """
    width = coefficients.shape[0]
    low = smaller(width, LOW)
    if up is not None:
        for c in range(width - 1, low - 1, -1):
            _column_of(source, 1 << c, coefficients[c], logs)
    _low_columns(source, target, low, up, copy, coefficients, logs)
    if up is None:
        for c in range(low, width):
            _column_of(target, 1 << c, coefficients[c], logs)


def copy_size(width: int) -> int:
    """Entries of work that `cross` takes."""
    return 2 << min(width, LOW)
