"""Compiled frontier elimination on grids (`grid` drives it): sweeps over the rows, down and up.

The factor that makes the largest entry 1 again is taken into the first column of the next row. What limits a sweep is
how a frontier gets over a row. The frontier (2^C,) has a bit for each column. Column c joins all pairs of entries that
differ in its bit, by four products and two sums a pair, with coefficients that depend on the spin to its left. The
limit is the arithmetic, three operations an entry and site, with one load and one store of it. What reaches it:

    low columns, up to LOW, block by block of 2^LOW entries. A column's pairs are neighbours on the way in, and its new
    spin goes to the top of the index on the way out (the other way round for the way back up), so that after all of
    them the order is the old one, loops are long at every column, and coefficients are constant over each half
    high columns in place, one pass over the frontier each
"""

from __future__ import annotations

import math

import numpy as np

from spinbench.backends.numba.exact.buckets import SHARED
from spinbench.backends.numba.kernel_cache import CALLEE, Options, njit
from spinbench.backends.numba.simd import address, empty_array, larger, load, smaller, store, zero_array

# Two blocks of 2^LOW entries of 8 bytes fit a first-level cache of 32 kB.
LOW = 11
COLUMN: Options = {**SHARED, "fastmath": {"contract"}}


@njit(**COLUMN)
def _in_place(front, bit, coefficients):
    """The column whose spin is `bit` of the index and stays there; the spin to its left has the bit below.

    Args:
        front: (2^C,) float64.
        bit: power of two.
        coefficients: (2, 2, 2) [left spin, to, from]; the same for both where there is none to the left.
    """
    # The left neighbour's spin, and with it the coefficients, is constant over `run` entries.
    entries, run = address(front, 0), larger(bit >> 1, 1)
    for begin in range(0, front.size, 2 * bit):
        for left in range(bit // run):
            a00, a01 = coefficients[left, 0, 0], coefficients[left, 0, 1]
            a10, a11 = coefficients[left, 1, 0], coefficients[left, 1, 1]
            for i in range(begin + left * run, begin + (left + 1) * run):
                x, y = load(entries, i), load(entries, i + bit)
                store(entries, i, a00 * x + a01 * y)
                store(entries, i + bit, a10 * x + a11 * y)


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
        origin = address(source, begin)
        for k in range(low):
            goal = address(target, begin) if k == low - 1 else address(copy, (k & 1) * size)
            _turn(origin, goal, size, coefficients[k if up is None else low - 1 - k], up)
            origin = goal


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


LOG_2 = math.log(2.0)
# Relative rounding error of a field whose terms cancel: as in `Pairwise.fields`, such a field is set to exactly 0.
NOISE = 8 * np.finfo(np.float64).eps


@njit(fastmath={"nnan", "nsz"}, **SHARED)
def _extremes(front):
    """The largest and the smallest of numbers >= 0, none of them NaN."""
    largest = smallest = front[0]
    for i in range(front.size):
        largest, smallest = max(largest, front[i]), min(smallest, front[i])
    return largest, smallest


@njit(error_model="numpy", **CALLEE)
def _weigh(site, biases, edges, couplings, coefficients):
    """The factors of the sites in the ±1 form h·σ + Σ J σσ, the largest of each 1.

    Args:
        site: (R, C) int64, the variables of the sites.
        biases, edges, couplings: (N,), (E, 2), (E,) of the model over {0, 1}.
        coefficients: gets (R, C, 2, 2, 2) [row, column, left spin, to, from].

    Returns:
        log of all that was taken out.
    """
    columns, sites, to_factors = site.shape[1], address(site, 0), address(coefficients, 0)
    place = empty_array(site.size, np.int64)
    for i in range(site.size):
        place[load(sites, i)] = i
    # per site: sums of couplings and of their absolute values, and J to the neighbours on the left and above
    pull, scale = zero_array(site.size, np.float64), zero_array(site.size, np.float64)
    left, up = zero_array(site.size, np.float64), zero_array(site.size, np.float64)
    for e in range(couplings.size):
        i, j = place[edges[e, 0]], place[edges[e, 1]]
        (up if abs(i - j) == columns else left)[larger(i, j)] = couplings[e] / 4
        for k in (i, j):
            pull[k] += couplings[e]
            scale[k] += abs(couplings[e])
    # Neumaier's compensated sum: on a large grid a plain one of all the terms loses digits of log Z.
    total = lost = 0.0
    for i in range(site.size):
        bias = biases[load(sites, i)]
        field = bias / 2 + pull[i] / 4
        if abs(field) <= NOISE * (abs(bias) + scale[i]):  # as in `Pairwise.fields`
            field = 0.0
        peak = abs(field) + abs(left[i]) + abs(up[i])
        for k in range(8):
            beside, to, above = 2 * (k >> 2) - 1, 2 * (k >> 1 & 1) - 1, 2 * (k & 1) - 1
            value = to * (field + left[i] * beside + up[i] * above) - peak
            store(to_factors, 8 * i + k, math.exp(value))
        for term in (peak, bias / 2, left[i], up[i]):
            grown = total + term
            lost += (total - grown) + term if abs(total) >= abs(term) else (term - grown) + total
            total = grown
    return total + lost


@njit(**SHARED)
def _scale(coefficients, peak, turned, work):
    """The coefficients of a row that also divide by `peak`; `turned`: [from, to]."""
    row, to = address(coefficients, 0), address(work, 0)
    for k in range(work.size):
        value = load(row, k & ~3 | (k & 1) << 1 | k >> 1 & 1 if turned else k)
        # Scaling the 8 coefficients of column 0 replaces a pass over the frontier.
        store(to, k, value / peak if k < 8 else value)


@njit(cache=True, error_model="numpy")
def forward(site, biases, edges, couplings, coefficients, fronts, copy, floor):
    """From a row of free spins down over all rows.

    Args:
        site, biases, edges, couplings, coefficients: as for `_weigh`.
        fronts: (R + 1, 2^C) gets the frontier after each row, or (1, 2^C) if they are not kept; each up to a factor.
        copy: as for `cross`.
        floor: an entry below it may have lost something.

    Returns:
        log Z; NaN if an entry fell below the floor.
    """
    rows, width = site.shape
    work = empty_array((width, 2, 2, 2), np.float64)
    front = fronts[0]
    for i in range(front.size):
        front[i] = 1.0
    # above the first row lies a fictitious row of free spins
    total = _weigh(site, biases, edges, couplings, coefficients) - width * LOG_2
    peak = 1.0
    for r in range(rows):
        above, front = front, fronts[r + 1 if fronts.shape[0] > 1 else 0]
        total += math.log(peak)
        _scale(coefficients[r], peak, False, work)
        cross(above, front, None, copy, work)
        peak, least = _extremes(front)
        if least < floor:
            return math.nan
    rest = 0.0
    for i in range(front.size):
        rest += front[i]
    return total + math.log(rest)


@njit(cache=True, error_model="numpy")
def backward(site, coefficients, fronts, copy, back, both, floor):
    """Marginals of all sites, once `forward` has kept its fronts.

    Args:
        site, coefficients, copy: as for `forward`.
        back: (2^C,) work.
        both: (2N,) gets p(s = 0) and p(s = 1) of each variable.

    Returns:
        Whether all entries stayed above the floor.
    """
    rows, width = site.shape
    ones, work = empty_array(width, np.float64), empty_array((width, 2, 2, 2), np.float64)
    for i in range(back.size):
        back[i] = 1.0
    peak = 1.0
    for r in range(rows - 1, -1, -1):
        _row_marginals(fronts[r + 1], back, copy, ones)
        for c in range(width):
            both[2 * site[r, c]], both[2 * site[r, c] + 1] = 1.0 - ones[c], ones[c]
        if r > 0:
            _scale(coefficients[r], peak, True, work)
            cross(back, back, True, copy, work)
            peak, least = _extremes(back)
            if least < floor:
                return False
    return True


@njit(fastmath={"reassoc", "contract"}, **SHARED)
def _row_marginals(front, back, sums, ones):
    """P(bit c = 1) for each bit of the index of front · back, block by block."""
    width = ones.size
    low = smaller(width, LOW)
    for c in range(width):
        ones[c] = 0.0
    for i in range(1 << low):
        sums[i] = 0.0
    for block in range(front.size >> low):
        left, right = address(front, block << low), address(back, block << low)
        total = 0.0
        for i in range(1 << low):
            joint = load(left, i) * load(right, i)
            sums[i] += joint
            total += joint
        for c in range(low, width):
            if block >> (c - low) & 1:
                ones[c] += total
    for c in range(low - 1, -1, -1):
        upper = sums[1 << c :]
        total = 0.0
        for i in range(1 << c):
            total += upper[i]
            sums[i] += upper[i]
        ones[c] = total
    for c in range(width):
        ones[c] /= sums[0]
