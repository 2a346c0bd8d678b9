"""Compiled inner loops of the frontier elimination on grids (`spinbench.reference.grid` drives them)."""

from __future__ import annotations

import math

from numba import njit

from spinbench.backends.numba.functions import OPTIONS, exp, log1p


@njit(cache=True, error_model="numpy")
def columns(front, start, stop, first, last, step, coefficients):
    """Takes columns first, first + step, … (last left out) of a row to the next row, in place.

    Args:
        front: (2^C,) float64; bit c of the index is the spin in column c. front[start:stop] is worked on, a stretch
            that the columns' bits do not lead out of.
        coefficients: (C, 2, 2, 2) float64 [column, left spin, to, from]; column 0 reads left = 0.
    """
    for c in range(first, last, step):
        bit = 1 << c
        run = max(bit >> 1, 1)  # stretch over which the left neighbour's bit stays the same
        for block in range(start, stop, 2 * bit):
            for left in range(bit // run):
                a00 = coefficients[c, left, 0, 0]
                a01 = coefficients[c, left, 0, 1]
                a10 = coefficients[c, left, 1, 0]
                a11 = coefficients[c, left, 1, 1]
                for i in range(block + left * run, block + left * run + run):
                    x, y = front[i], front[i + bit]
                    front[i] = a00 * x + a01 * y
                    front[i + bit] = a10 * x + a11 * y


@njit(**OPTIONS)
def _log_add(u, v):
    """log(e^u + e^v)."""
    return (u if u > v else v) + log1p(exp(-abs(u - v)))


@njit(cache=True, error_model="numpy")
def columns_log(front, start, stop, first, last, step, coefficients):
    """The same in log space: exp(front) and exp(coefficients) are what is multiplied."""
    for c in range(first, last, step):
        bit = 1 << c
        run = max(bit >> 1, 1)
        for block in range(start, stop, 2 * bit):
            for left in range(bit // run):
                a00 = coefficients[c, left, 0, 0]
                a01 = coefficients[c, left, 0, 1]
                a10 = coefficients[c, left, 1, 0]
                a11 = coefficients[c, left, 1, 1]
                for i in range(block + left * run, block + left * run + run):
                    x, y = front[i], front[i + bit]
                    front[i] = _log_add(a00 + x, a01 + y)
                    front[i + bit] = _log_add(a10 + x, a11 + y)


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
