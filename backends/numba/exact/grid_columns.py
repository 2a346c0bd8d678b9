"""How the frontier of a grid (`grid_kernels`) goes from one row to the next, column by column.

The frontier (2^C,) has a bit for each column. Column c joins all pairs of entries that differ in its bit, by four
products and two sums a pair, with coefficients that depend on the spin to its left. The limit is the arithmetic, three
operations an entry and site, with one load and one store of it from the first-level cache, and two passes over memory a
row. What reaches it:

    low columns, up to LOW, block by block of 2^LOW entries. A column's pairs are neighbours on the way in, and its new
    spin goes to the top of the index on the way out (the other way round for the way back up), so that after all of
    them the order is the old one, vectors are full at every column, and coefficients are constant over each half
    high columns in strips: 2^STRIP_BITS neighbouring entries of each block, copied together, so that strides of powers
    of two do not throw each other out of the cache

All is there twice: for numbers, and in log space, where products are sums.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from spinbench.backends.numba.simd.functions import OPTIONS, at_least, exp, log1p, magnitude
from spinbench.backends.numba.simd.memory import address, load_field, store_field
from spinbench.backends.numba.simd.vector_memory import (
    load_field_vector,
    store_field_vector,
)
from spinbench.backends.numba.simd.vectors import (
    every_second,
    spread,
)

LOW = 11
"""Two blocks of 2^LOW entries lie in the first-level cache."""
STRIP_BITS = 6
LANES = 8
COLUMN: Any = {"error_model": "numpy", "fastmath": {"contract"}, "_nrt": False}


@intrinsic
def _two_products(typing_context, a, x, b, y):
    """a x + b y, of numbers or vectors, fused."""

    def generate(context, builder, signature, arguments):
        a, x, b, y = arguments
        fused = ("contract",)
        return builder.fadd(builder.fmul(a, x, flags=fused), builder.fmul(b, y, flags=fused), flags=fused)

    return x(a, x, b, y), generate


@intrinsic
def _zipped(typing_context, left, right, upper):
    """left_0, right_0, left_1, right_1, … of the lower or (literal 1) the upper halves of two vectors."""
    if not isinstance(upper, types.IntegerLiteral):
        return None
    kind, first = left, upper.literal_value * left.lanes // 2

    def generate(context, builder, signature, arguments):
        lanes = [ir.IntType(32)(first + k // 2 + k % 2 * kind.lanes) for k in range(kind.lanes)]
        return builder.shuffle_vector(
            arguments[0], arguments[1], ir.Constant(ir.VectorType(ir.IntType(32), kind.lanes), lanes)
        )

    return kind(left, right, upper), generate


@njit(**OPTIONS)
def _plain(a, x, b, y):
    return _two_products(a, x, b, y)


@njit(**OPTIONS)
def _logs(a, x, b, y):
    """log(e^(a + x) + e^(b + y))."""
    u, v = a + x, b + y
    return at_least(u, v) + log1p(exp(-magnitude(u - v)))


def _make(mix: Any) -> tuple[Any, Any, Any]:
    """`column`, `_down` and `_up` in one of the two arithmetics."""

    @njit(**COLUMN)
    def column(front, size, bit, beside, left, coefficients):
        """One column, whose spin is `bit` of the index and stays there, in place.

        Args:
            front: (size, …) float64.
            beside: whether the column to the left is the next lower bit; else its spin is `left`.
            coefficients: (2, 2, 2) [left spin, to, from].
        """
        run = bit >> 1 if beside else bit  # stretch over which the left neighbour stays the same
        for begin in range(0, size, 2 * bit):
            for part in range(bit // run):
                here = part if beside else left
                a00, a01 = coefficients[here, 0, 0], coefficients[here, 0, 1]
                a10, a11 = coefficients[here, 1, 0], coefficients[here, 1, 1]
                at = begin + part * run
                down, up = front[at : at + run], front[at + bit : at + bit + run]
                for i in range(run):
                    x, y = down[i], up[i]
                    down[i] = mix(a00, x, a01, y)
                    up[i] = mix(a10, x, a11, y)

    @njit(**COLUMN)
    def down(source, target, size, coefficients):
        """The column at the lowest bit of `source`, which becomes the highest of `target`; pointers to floats."""
        half, quarter = size >> 1, size >> 2
        for left in range(2):
            begin, end = left * quarter, (left + 1) * quarter
            a00, a01 = coefficients[left, 0, 0], coefficients[left, 0, 1]
            a10, a11 = coefficients[left, 1, 0], coefficients[left, 1, 1]
            if quarter < LANES:
                for i in range(begin, end):
                    x, y = load_field(source, 2 * i), load_field(source, 2 * i + 1)
                    store_field(target, i, mix(a00, x, a01, y))
                    store_field(target, half + i, mix(a10, x, a11, y))
                continue
            w00, w01, w10, w11 = spread(a00), spread(a01), spread(a10), spread(a11)
            for i in range(begin, end, LANES):
                u, v = load_field_vector(source, 2 * i), load_field_vector(source, 2 * i + LANES)
                p, q = every_second(u, v, 0), every_second(u, v, 1)
                store_field_vector(target, i, mix(w00, p, w01, q))
                store_field_vector(target, half + i, mix(w10, p, w11, q))

    @njit(**COLUMN)
    def up(source, target, size, coefficients):
        """The column at the highest bit of `source`, which becomes the lowest of `target`."""
        half, quarter = size >> 1, size >> 2
        for left in range(2):
            begin, end = left * quarter, (left + 1) * quarter
            a00, a01 = coefficients[left, 0, 0], coefficients[left, 0, 1]
            a10, a11 = coefficients[left, 1, 0], coefficients[left, 1, 1]
            if quarter < LANES:
                for i in range(begin, end):
                    x, y = load_field(source, i), load_field(source, half + i)
                    store_field(target, 2 * i, mix(a00, x, a01, y))
                    store_field(target, 2 * i + 1, mix(a10, x, a11, y))
                continue
            w00, w01, w10, w11 = spread(a00), spread(a01), spread(a10), spread(a11)
            for i in range(begin, end, LANES):
                p, q = load_field_vector(source, i), load_field_vector(source, half + i)
                u, v = mix(w00, p, w01, q), mix(w10, p, w11, q)
                store_field_vector(target, 2 * i, _zipped(u, v, 0))
                store_field_vector(target, 2 * i + LANES, _zipped(u, v, 1))

    return column, down, up


_column, _down, _up = _make(_plain)
_column_logs, _down_logs, _up_logs = _make(_logs)


@njit(cache=True, **COLUMN)
def column(front, size, bit, beside, left, coefficients, logs):
    """See `_make`."""
    if logs:
        _column_logs(front, size, bit, beside, left, coefficients)
    else:
        _column(front, size, bit, beside, left, coefficients)


@njit(**COLUMN)
def _low_columns(source, target, low, step, copy, coefficients, logs):
    """Of each block; source and target may be the same."""
    size = 1 << low
    for begin in range(0, source.size, size):
        here = address(source, begin)
        for k in range(low):
            there = address(target, begin) if k == low - 1 else address(copy, (k & 1) * size)
            if step > 0 and logs:
                _down_logs(here, there, size, coefficients[k])
            elif step > 0:
                _down(here, there, size, coefficients[k])
            elif logs:
                _up_logs(here, there, size, coefficients[low - 1 - k])
            else:
                _up(here, there, size, coefficients[low - 1 - k])
            here = there


@njit(**COLUMN)
def _high_columns(front, low, width, step, copy, coefficients, logs):
    """In place."""
    strip = 1 << STRIP_BITS
    rows = front.size >> low
    for begin in range(0, 1 << low, strip):
        for r in range(rows):
            source, target = front[(r << low) + begin :], copy[r * strip :]
            for i in range(strip):
                target[i] = source[i]
        for k in range(low, width):
            c = k if step > 0 else width - 1 + low - k
            column(copy, rows * strip, strip << (c - low), c > low, begin >> (low - 1), coefficients[c], logs)
        for r in range(rows):
            target, source = front[(r << low) + begin :], copy[r * strip :]
            for i in range(strip):
                target[i] = source[i]


@njit(**COLUMN)
def cross(source, target, width, step, copy, coefficients, logs):
    """Takes the frontier over a row: down with step 1, up again with step -1.

    Args:
        source, target: (2^C,) float64; the same, or apart.
        copy: (`copy_size`,) float64 work.
        coefficients: (C, 2, 2, 2) [column, left spin, to, from]; those of column 0 are the same for both left spins.
        logs: whether entries and coefficients are logarithms.
    """
    low = min(width, LOW)
    if step < 0 and low < width:
        _high_columns(source, low, width, step, copy, coefficients, logs)
    _low_columns(source, target, low, step, copy, coefficients, logs)
    if step > 0 and low < width:
        _high_columns(target, low, width, step, copy, coefficients, logs)


def copy_size(width: int) -> int:
    """Entries of work that `cross` takes."""
    return 1 << max(min(width, LOW) + 1, width - LOW + STRIP_BITS)
