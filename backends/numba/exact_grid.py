"""Compiled sweeps of the frontier elimination on grids (`spinbench.reference.grid` drives them).

The frontier (2^C,) has a bit for each column; a site updates all pairs of entries that differ in its column's bit, by
four multiplications and two additions. The limit is one load and one store an entry and site from the first-level
cache, and two passes over memory a row. What reaches it:

    low columns, up to LOW, block by block of 2^LOW entries; the lower half of these, whose pairs are too near for
    vector units, are done in a transposed copy of the block, where they are far apart
    high columns in strips: 2^STRIP_BITS neighbouring entries of each block, copied together, so that strides of powers
    of two do not throw each other out of the cache

The factor that makes the largest entry 1 again is taken into the first column of the next row.
"""

from __future__ import annotations

import math

from numba import njit

from spinbench.backends.numba.functions import OPTIONS, exp, log1p

LOW = 12
STRIP_BITS = 7


@njit(**OPTIONS)
def _log_add(u, v):
    """log(e^u + e^v)."""
    return (u if u > v else v) + log1p(exp(-abs(u - v)))


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def columns(front, size, first, last, step, lowest, shift, left, coefficients):
    """Takes columns first, first + step, … (last left out) of a row to the next row, in place.

    Args:
        front: (size, …) float64; column c has the bit shift + c - lowest of the index.
        lowest: the lowest column in `front`; left: the spin in the column before it.
        coefficients: (C, 2, 2, 2) [column, left spin, to, from].
    """
    for c in range(first, last, step):
        bit = 1 << (shift + c - lowest)
        run = bit >> 1 if c > lowest else bit  # stretch over which the left neighbour stays the same
        for begin in range(0, size, 2 * bit):
            for part in range(bit // run):
                beside = part if c > lowest else left
                a00 = coefficients[c, beside, 0, 0]
                a01 = coefficients[c, beside, 0, 1]
                a10 = coefficients[c, beside, 1, 0]
                a11 = coefficients[c, beside, 1, 1]
                at = begin + part * run
                down, up = front[at : at + run], front[at + bit : at + bit + run]
                for i in range(run):
                    x, y = down[i], up[i]
                    down[i] = a00 * x + a01 * y
                    up[i] = a10 * x + a11 * y


@njit(cache=True, error_model="numpy")
def columns_log(front, size, first, last, step, lowest, shift, left, coefficients):
    """The same in log space: exp(front) and exp(coefficients) are what is multiplied."""
    for c in range(first, last, step):
        bit = 1 << (shift + c - lowest)
        run = bit >> 1 if c > lowest else bit  # stretch over which the left neighbour stays the same
        for begin in range(0, size, 2 * bit):
            for part in range(bit // run):
                beside = part if c > lowest else left
                a00 = coefficients[c, beside, 0, 0]
                a01 = coefficients[c, beside, 0, 1]
                a10 = coefficients[c, beside, 1, 0]
                a11 = coefficients[c, beside, 1, 1]
                at = begin + part * run
                down, up = front[at : at + run], front[at + bit : at + bit + run]
                for i in range(run):
                    x, y = down[i], up[i]
                    down[i] = _log_add(a00 + x, a01 + y)
                    up[i] = _log_add(a10 + x, a11 + y)


@njit(cache=True, error_model="numpy")
def _columns(front, size, first, last, step, lowest, shift, left, coefficients, logs):
    if logs:
        columns_log(front, size, first, last, step, lowest, shift, left, coefficients)
    else:
        columns(front, size, first, last, step, lowest, shift, left, coefficients)


@njit(cache=True, error_model="numpy")
def _near_columns(block, size, near, step, copy, coefficients, logs):
    """The lowest columns of a block, in a copy in which they are the highest."""
    groups = size >> near
    for j in range(1 << near):
        row = copy[j * groups :]
        for g in range(groups):
            row[g] = block[(g << near) + j]
    bits = 0
    while 1 << bits < groups:
        bits += 1
    if step > 0:
        _columns(copy, size, 0, near, 1, 0, bits, 0, coefficients, logs)
    else:
        _columns(copy, size, near - 1, -1, -1, 0, bits, 0, coefficients, logs)
    for g in range(groups):
        row = block[g << near :]
        for j in range(1 << near):
            row[j] = copy[j * groups + g]


@njit(cache=True, error_model="numpy")
def _low_columns(front, near, low, step, copy, coefficients, logs):
    size = 1 << low
    for begin in range(0, front.size, size):
        block = front[begin : begin + size]
        if step > 0:
            _near_columns(block, size, near, step, copy, coefficients, logs)
            _columns(block, size, near, low, 1, 0, 0, 0, coefficients, logs)
        else:
            _columns(block, size, low - 1, near - 1, -1, 0, 0, 0, coefficients, logs)
            _near_columns(block, size, near, step, copy, coefficients, logs)


@njit(cache=True, error_model="numpy")
def _high_columns(front, low, width, step, copy, coefficients, logs):
    strip = 1 << STRIP_BITS
    rows = front.size >> low
    for begin in range(0, 1 << low, strip):
        for r in range(rows):
            source, target = front[(r << low) + begin :], copy[r * strip :]
            for i in range(strip):
                target[i] = source[i]
        first, last = (low, width) if step > 0 else (width - 1, low - 1)
        left = begin >> (low - 1)
        _columns(copy, rows * strip, first, last, step, low, STRIP_BITS, left, coefficients, logs)
        for r in range(rows):
            target, source = front[(r << low) + begin :], copy[r * strip :]
            for i in range(strip):
                target[i] = source[i]


@njit(cache=True, error_model="numpy")
def cross(front, width, step, copy, coefficients, logs):
    """Takes the frontier over a row, in place: down with step 1, up again with step -1.

    Args:
        copy: (2^max(LOW, C - LOW + STRIP_BITS),) float64 work.
        coefficients: (C, 2, 2, 2) as for `columns`.
    """
    low = min(width, LOW)
    near = (low + 1) // 2
    if step < 0 and low < width:
        _high_columns(front, low, width, step, copy, coefficients, logs)
    _low_columns(front, near, low, step, copy, coefficients, logs)
    if step > 0 and low < width:
        _high_columns(front, low, width, step, copy, coefficients, logs)


@njit(cache=True, error_model="numpy", fastmath={"nnan", "ninf", "nsz", "reassoc"})
def _extremes(front):
    largest = smallest = front[0]
    for i in range(front.size):
        largest = max(largest, front[i])
        smallest = min(smallest, front[i])
    return largest, smallest


@njit(cache=True, error_model="numpy")
def _scaled(coefficients, peak, work, logs):
    """The coefficients of a row that also divide by `peak`, which in log space is a logarithm."""
    for c in range(work.shape[0]):
        for k in range(8):
            value = coefficients[c, k >> 2, k >> 1 & 1, k & 1]
            if c == 0:
                value = value - peak if logs else value / peak
            work[c, k >> 2, k >> 1 & 1, k & 1] = value


@njit(cache=True, error_model="numpy")
def forward(coefficients, fronts, keep, copy, work, logs, floor):
    """From a row of free spins down over all rows.

    Args:
        coefficients: (R, C, 2, 2, 2) [row, column, left spin, to, from].
        fronts: (R + 1, 2^C) gets the frontier after each row, or (1, 2^C) if they are not kept; each up to a factor.
        copy: as for `cross`; work: (C, 2, 2, 2).
        floor: an entry below it may have lost something.

    Returns:
        log of the sum; NaN if an entry fell below the floor.
    """
    rows, width = coefficients.shape[:2]
    first = fronts[0]
    for i in range(first.size):
        first[i] = 0.0 if logs else 1.0
    total, peak = 0.0, 0.0 if logs else 1.0
    front = first
    for r in range(rows):
        if keep:
            above, front = fronts[r], fronts[r + 1]
            for i in range(front.size):
                front[i] = above[i]
        total += peak if logs else math.log(peak)
        _scaled(coefficients[r], peak, work, logs)
        cross(front, width, 1, copy, work, logs)
        peak, least = _extremes(front)
        if not logs and least < floor:
            return math.nan
    rest = 0.0
    for i in range(front.size):
        rest += math.exp(front[i] - peak) if logs else front[i]
    return total + math.log(rest) + (peak if logs else 0.0)


@njit(cache=True, error_model="numpy")
def backward(coefficients, fronts, back, copy, work, ones, logs, floor):
    """Marginals of all sites, once `forward` has kept its fronts.

    Args:
        coefficients: (R, C, 2, 2, 2) [row, column, left spin, from, to], turned.
        back: (2^C,) work; copy, work: as for `forward`.
        ones: (R, C) gets P(spin = +1).

    Returns:
        Whether all entries stayed above the floor.
    """
    rows, width = coefficients.shape[:2]
    for i in range(back.size):
        back[i] = 0.0 if logs else 1.0
    peak = 0.0 if logs else 1.0
    for r in range(rows - 1, -1, -1):
        _row_marginals(fronts[r + 1], back, copy, ones[r], logs)
        if r > 0:
            _scaled(coefficients[r], peak, work, logs)
            cross(back, width, -1, copy, work, logs)
            peak, least = _extremes(back)
            if not logs and least < floor:
                return False
    return True


@njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _row_marginals(front, back, sums, ones, logs):
    """P(bit c = 1) for each bit of the index of front · back, block by block."""
    width = ones.size
    low = min(width, LOW)
    top = -math.inf
    if logs:
        for i in range(front.size):
            top = max(top, front[i] + back[i])
    for c in range(width):
        ones[c] = 0.0
    for i in range(1 << low):
        sums[i] = 0.0
    for block in range(front.size >> low):
        left, right = front[block << low :], back[block << low :]
        total = 0.0
        for i in range(1 << low):
            joint = math.exp(left[i] + right[i] - top) if logs else left[i] * right[i]
            sums[i] += joint
            total += joint
        for c in range(low, width):
            if block >> (c - low) & 1:
                ones[c] += total
    for c in range(low - 1, -1, -1):
        upper = sums[1 << c :]
        for i in range(1 << c):
            ones[c] += upper[i]
            sums[i] += upper[i]
    for c in range(width):
        ones[c] /= sums[0]


@njit(cache=True, error_model="numpy")
def draw_above(fronts, coefficients, uniforms, drawn, log_space):
    """Draws the row above, given the row below it.

    Args:
        fronts: (C, 2^C), the frontier before each column of the row below.
        coefficients: (C, 2, 2, 2) [column, left spin, spin below, spin above], of the row below.
        uniforms: (M, C) in [0, 1).
        drawn: (M,) int64, spins of the row below as bits; replaced by those of the row above.
        log_space: whether fronts and coefficients are logarithms.
    """
    width = fronts.shape[0]
    for m in range(drawn.size):
        state = drawn[m]
        for c in range(width - 1, -1, -1):
            bit = 1 << c
            new = (state >> c) & 1
            left = (state >> (c - 1)) & 1 if c > 0 else 0
            down, up = state & ~bit, state | bit
            a0, a1 = coefficients[c, left, new, 0], coefficients[c, left, new, 1]
            if log_space:
                p = 1.0 / (1.0 + math.exp(a0 + fronts[c, down] - a1 - fronts[c, up]))
            else:
                p = a1 * fronts[c, up] / (a0 * fronts[c, down] + a1 * fronts[c, up])
            state = up if uniforms[m, c] < p else down
        drawn[m] = state
