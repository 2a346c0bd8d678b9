"""A bucket at work (`tree_kernels`): its block of the clique's table, multiplied from the bucket's pieces.

Arrays that the functions share, besides those of `buckets` (states, start, scope, bucket, held):

    store     numbers of all pieces, from offset (T + n + 1,) on; reach (T + n,) the largest |log| of each
    axis      (n,) the axis of a position in the bucket at work; card (A,) the states of its axes
    small     what pieces over axis 0 and at most one more multiply to, (K_0, K_a) from small_at[a] on
    piece     (P, 5) a row for each larger piece, columns as named below; stride (P, A), 0 where it lacks an axis
    pattern   (Q, B) uint64, offsets within a block: of pieces that are gathered, and of children
    base      (K B,) the product of all that lies within a block, at each state; block (B,) the block at work
    digit     (A,) the present state of the axes outside the block; scale (A, K) products of `small` over them
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from spinbench.backends.numba.exact.buckets import BLOCK

REACH = 600.0
SCALAR, ALONG, GATHERED = range(3)
SOURCE, LEAD, KIND, AT, TARGETS = range(5)
"""Columns of `piece`: offset; first axis after 0; how it is read; offset at the present block; entries of a child's
message within a block."""


@njit(cache=True, error_model="numpy")
def centre(part, begin, end):
    """Scales positive numbers so that their logarithms lie around 0; zeros stay.

    Returns the log of the divisor and the largest |log| after it; (-inf, 0) if all are zero.
    """
    largest, smallest = 0.0, math.inf
    for i in range(begin, end):
        largest = max(largest, part[i])
        smallest = min(smallest, part[i] if part[i] > 0 else math.inf)
    if largest == 0:
        return -math.inf, 0.0
    high, low = math.log(largest), math.log(smallest)
    middle = (high + low) / 2
    factor = math.exp(-middle)
    for i in range(begin, end):
        part[i] *= factor
    return middle, (high - low) / 2


@njit(cache=True, error_model="numpy")
def prepare(
    p, states, start, scope, bucket, held, store, offset, reach, axis, card, small, small_at, small_reach, piece, stride
):
    """Sets up bucket p. Returns axes, larger pieces, the log of what was taken out, a bound on |log| of products."""
    message = start.size - 1 - states.size + p
    axes = start[message + 1] - start[message] + 1
    card[0] = states[p]
    axis[p] = small_at[0] = 0
    small_at[1] = states[p]
    small_reach[0] = bound = taken = 0.0
    for a in range(1, axes):
        u = scope[start[message] + a - 1]
        axis[u] = a
        card[a] = states[u]
        small_at[a + 1] = small_at[a] + card[0] * card[a]
        small_reach[a] = 0.0
    for i in range(small_at[axes]):
        small[i] = 1.0
    pieces = 0
    for k in range(bucket[p], bucket[p + 1]):
        i = held[k]
        first, last = start[i], start[i + 1] - 1
        if last - first > 1:
            for a in range(axes):
                stride[pieces, a] = 0
            step, lead = 1, axes
            for m in range(last, first - 1, -1):
                a = axis[scope[m]]
                stride[pieces, a] = step
                step *= card[a]
                if a > 0:
                    lead = min(lead, a)
            piece[pieces, SOURCE], piece[pieces, LEAD] = offset[i], lead
            pieces += 1
            bound += reach[i]
            continue
        left, right = axis[scope[first]], axis[scope[last]]
        a = max(left, right)
        others = card[a] if a > 0 else 1
        if small_reach[a] + reach[i] > REACH / 2:  # many pieces on one pair: only what they make together counts
            more, small_reach[a] = centre(small, small_at[a], small_at[a] + card[0] * others)
            taken += more
        small_reach[a] += reach[i]
        for x in range(card[0]):
            for y in range(others):
                entry = x * others + y if left == 0 else y * card[0] + x
                small[small_at[a] + x * others + y] *= store[offset[i] + entry]
    for a in range(axes):
        bound += small_reach[a]
    return axes, pieces, taken, bound


@njit(cache=True, error_model="numpy")
def _pattern(q, low, axes, card, stride, out):
    """Offsets of piece q over the axes from `low` on; SCALAR or ALONG where none are needed."""
    step, along, scalar = 1, True, True
    for a in range(axes - 1, low - 1, -1):
        along &= stride[q, a] == step
        scalar &= stride[q, a] == 0
        step *= card[a]
    if scalar:
        return SCALAR
    if along:
        return ALONG
    out[0] = 0
    size = 1
    for a in range(axes - 1, low - 1, -1):
        for k in range(1, card[a]):
            shift = np.uint64(k * stride[q, a])
            part = out[k * size :]
            for i in range(size):
                part[i] = out[i] + shift
        size *= card[a]
    return GATHERED


@njit(cache=True, error_model="numpy")
def _multiply(row, size, source, kind, pattern):
    if kind == GATHERED:
        for i in range(size):
            row[i] *= source[pattern[i]]
    else:
        for i in range(size):
            row[i] *= source[i]


@njit(cache=True, error_model="numpy")
def make_base(axes, pieces, store, card, small, small_at, piece, stride, pattern, index, base):
    """Builds the product of what lies within a block, axis by axis from the last, and reads the other pieces' patterns.

    Returns the first axis within the block, and its entries.
    """
    low, block = axes, 1
    while low > 1 and (block == 1 or block * card[low - 1] <= BLOCK):
        low -= 1
        block *= card[low]
    for x in range(card[0]):
        base[x * block] = small[x]
    size = 1
    for a in range(axes - 1, low - 1, -1):
        for x in range(card[0]):
            row = base[x * block :]
            for k in range(card[a] - 1, -1, -1):
                factor = small[small_at[a] + x * card[a] + k]
                part = row[k * size :]
                for i in range(size):
                    part[i] = row[i] * factor
        size *= card[a]
        for q in range(pieces):
            if piece[q, LEAD] == a:
                kind = _pattern(q, a, axes, card, stride, index)
                for x in range(card[0]):
                    _multiply(base[x * block :], size, store[piece[q, SOURCE] + x * stride[q, 0] :], kind, index)
    for q in range(pieces):
        if piece[q, LEAD] < low:
            piece[q, KIND] = _pattern(q, low, axes, card, stride, pattern[q])
            piece[q, AT] = piece[q, SOURCE]
    return low, block


@njit(cache=True, error_model="numpy")
def make_scales(a, low, card, small, small_at, digit, scale):
    """Products of the small tables over the outer axes, anew from axis a on; with a = 0 from the first block."""
    if a == 0:
        for x in range(card[0]):
            scale[0, x] = 1.0
        for outer in range(1, low):
            digit[outer] = 0
    for outer in range(max(a, 1), low):
        at = small_at[outer] + digit[outer]
        for x in range(card[0]):
            scale[outer, x] = scale[outer - 1, x] * small[at + x * card[outer]]


@njit(cache=True, error_model="numpy")
def next_block(low, rows, card, piece, stride, digit):
    """To the next block: the outer axes count up, the last one fastest. Returns the axis that moved, 0 at the end."""
    a = low - 1
    while a > 0 and digit[a] == card[a] - 1:
        for q in range(rows):
            piece[q, AT] -= digit[a] * stride[q, a]
        digit[a] = 0
        a -= 1
    if a > 0:
        digit[a] += 1
        for q in range(rows):
            piece[q, AT] += stride[q, a]
    return a


@njit(cache=True, error_model="numpy")
def make_block(x, low, size, pieces, store, scale, base, block, piece, stride, pattern):
    """The present block at state x of the bucket's variable, into `block`."""
    factor = scale[low - 1, x]
    for q in range(pieces):
        if piece[q, LEAD] < low and piece[q, KIND] == SCALAR:
            factor *= store[piece[q, AT] + x * stride[q, 0]]
    row = base[x * size :]
    for i in range(size):
        block[i] = row[i] * factor
    for q in range(pieces):
        if piece[q, LEAD] < low and piece[q, KIND] != SCALAR:
            _multiply(block, size, store[piece[q, AT] + x * stride[q, 0] :], piece[q, KIND], pattern[q])
