"""A bucket at work (`tree_kernels`): its block of the clique's table, multiplied from the bucket's pieces."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from spinbench.backends.numba.exact.buckets import BLOCK, ONCE, SHARED, centre, widen
from spinbench.reference.network import FloatArray, IntArray

# Largest |log| of a product. exp(709) is the end of float64, which leaves room for sums of up to e^100 products.
REACH = 600.0
# How a piece is read within a block: a single entry; consecutive entries; gathered entries.
SCALAR, ALONG, GATHERED = range(3)
# Columns of `Work.piece`: offset; first axis after 0; access kind; offset at the current block; entries of the child's
# message within a block; row of `Work.pattern`.
SOURCE, LEAD, KIND, AT, TARGETS, PATTERN = range(6)


class Numbers(NamedTuple):
    """Entries of the pieces of a `Plan`, T tables and then n messages, and their sizes.

    Attributes:
        store: all entries, those of piece i from plan.offset[i] on.
        reach: (T + n,) the largest |log| of each piece.
        shifts: (n,) the log of what each message was divided by.
    """

    store: FloatArray
    reach: FloatArray
    shifts: FloatArray


class Work(NamedTuple):
    """Room for a bucket at work, with K states and A axes at most, P pieces, and blocks of B entries.

    Attributes:
        axis: (n,) the axis of a position in the bucket at work; card: (A,) the states of its axes.
        piece: (P, 6) a row for each piece; stride: (P, A), 0 where it lacks an axis.
        pattern: (Q, B) uint64, offsets within a block: of pieces that are gathered, and of children; offsets: (B,) one
            more.
        base: (K B,) the product of all that lies within a block, at each state; block: (B,) the block at work.
        digit: (A,) the present state of the axes outside the block.
    """

    axis: IntArray
    card: IntArray
    piece: IntArray
    stride: IntArray
    pattern: npt.NDArray[np.uint64]
    offsets: npt.NDArray[np.uint64]
    base: FloatArray
    block: FloatArray
    digit: IntArray


@njit(**SHARED)
def prepare(p, plan, work):
    """Enters the axes and the pieces of bucket p. Returns how many there are of both."""
    message = plan.start.size - 1 - plan.states.size + p
    axes = plan.start[message + 1] - plan.start[message] + 1
    work.axis[p], work.card[0] = 0, plan.states[p]
    for a in range(1, axes):
        u = plan.scope[plan.start[message] + a - 1]
        work.axis[u], work.card[a] = a, plan.states[u]
    # np.int64 and not a literal 0, for whose type Numba would compile `enter` a second time.
    pieces = np.int64(0)
    for k in range(plan.bucket[p], plan.bucket[p + 1]):
        enter(plan.piece[k], pieces, plan.offset[plan.piece[k]], axes, plan, work)
        pieces += 1
    return axes, pieces


@njit(**SHARED)
def enter(i, q, source, axes, plan, work):
    """Enters piece i, whose entries start at `source`, as row q of `piece` and `stride`."""
    axis, card, stride, piece = work.axis, work.card, work.stride, work.piece
    for a in range(axes):
        stride[q, a] = 0
    step, lead = 1, axes
    for m in range(plan.start[i + 1] - 1, plan.start[i] - 1, -1):
        a = axis[plan.scope[m]]
        stride[q, a] = step
        step *= card[a]
        if a > 0:
            lead = min(lead, a)
    piece[q, SOURCE], piece[q, LEAD] = source, lead
    piece[q, PATTERN] = piece[q - 1, PATTERN] if q > 0 else 0
    # Other pieces have a single entry in a block, or all their axes within it, and need no pattern.
    if plan.start[i + 1] - plan.start[i] > 2:
        piece[q, PATTERN] += 1


@njit(**SHARED)
def _pattern(q, low, axes, work, out):
    """Offsets of piece q over the axes from `low` on, where it is GATHERED. Returns its kind."""
    card, stride = work.card, work.stride
    step, along, scalar = 1, True, True
    for a in range(axes - 1, low - 1, -1):
        along &= stride[q, a] == step
        scalar &= stride[q, a] == 0
        step *= card[a]
    if scalar or along:
        return SCALAR if scalar else ALONG
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


@njit(**SHARED)
def _multiply(row, size, source, kind, pattern):
    """Multiplies row[:size] by a piece that is read from `source` on."""
    if kind == SCALAR:
        factor = source[0]
        for i in range(size):
            row[i] *= factor
    elif kind == ALONG:
        for i in range(size):
            row[i] *= source[i]
    else:
        for i in range(size):
            row[i] *= source[pattern[i]]


@njit(**SHARED)
def make_base(p, axes, pieces, plan, numbers, work):
    """Builds the product of what lies within a block, axis by axis from the last, and reads the other pieces' patterns.

    Returns the first axis within the block, its entries, the log of what was taken out, and a bound on logarithms.
    """
    card, base, piece = work.card, work.base, work.piece
    low, block = axes, 1
    # A block has at least one axis, whatever its number of states, and further axes while it fits the first-level
    # cache.
    while low > 1 and (block == 1 or block * card[low - 1] <= BLOCK):
        low -= 1
        block *= card[low]
    for x in range(card[0]):
        base[x * block] = 1.0
    size, shift_sum, bound = 1, 0.0, 0.0
    for a in range(axes, low - 1, -1):
        if a < axes:
            _repeat(a, size, block, work)
            size *= card[a]
        for q in range(pieces):
            if piece[q, LEAD] == a:
                reach = numbers.reach[plan.piece[plan.bucket[p] + q]]
                # Only the product of all pieces has to stay in range: it is scaled back to around 1 before its bound
                # exceeds the range.
                if REACH / 2 - reach < bound <= REACH:
                    shift, bound = _scale_base_around_one(size, block, work)
                    shift_sum += shift
                bound += reach
                kind = _pattern(q, a, axes, work, work.offsets)
                for x in range(card[0]):
                    source = numbers.store[piece[q, SOURCE] + x * work.stride[q, 0] :]
                    _multiply(base[x * block :], size, source, kind, work.offsets)
    for q in range(pieces):
        if piece[q, LEAD] < low:
            bound += numbers.reach[plan.piece[plan.bucket[p] + q]]
            piece[q, KIND] = _pattern(q, low, axes, work, work.pattern[piece[q, PATTERN]])
    rewind_blocks(low, pieces, work)
    return low, block, shift_sum, bound


@njit(**ONCE)
def _repeat(a, size, block, work):
    """From `size` entries of the base at each state to those over axis a, too."""
    for x in range(work.card[0]):
        row = work.base[x * block :]
        for k in range(1, work.card[a]):
            part = row[k * size :]
            for i in range(size):
                part[i] = row[i]


@njit(**SHARED)
def _scale_base_around_one(size, block, work):
    """As `centre`, of what is built so far."""
    largest, smallest, shift, reach = 0.0, math.inf, 0.0, 0.0
    for x in range(work.card[0]):
        largest, smallest = widen(work.base[x * block :], size, largest, smallest)
    for x in range(work.card[0]):
        shift, reach = centre(work.base[x * block :], size, largest, smallest, 0.0)
    return shift, reach


@njit(**SHARED)
def rewind_blocks(low, rows, work):
    """To the first block."""
    for a in range(1, low):
        work.digit[a] = 0
    for q in range(rows):
        work.piece[q, AT] = work.piece[q, SOURCE]


@njit(**SHARED)
def next_block(low, rows, work):
    """To the next block: the outer axes count up, the last one fastest, and `piece` follows."""
    card, digit, piece, stride = work.card, work.digit, work.piece, work.stride
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


@njit(**SHARED)
def make_block(x, low, size, pieces, store, work):
    """The present block at state x of the bucket's variable, into `block`."""
    block, piece = work.block, work.piece
    # Pieces with one entry in the block are multiplied into a single factor.
    factor = 1.0
    for q in range(pieces):
        if piece[q, LEAD] < low and piece[q, KIND] == SCALAR:
            factor *= store[piece[q, AT] + x * work.stride[q, 0]]
    row = work.base[x * size :]
    for i in range(size):
        block[i] = row[i] * factor
    for q in range(pieces):
        if piece[q, LEAD] < low and piece[q, KIND] != SCALAR:
            source = store[piece[q, AT] + x * work.stride[q, 0] :]
            _multiply(block, size, source, piece[q, KIND], work.pattern[piece[q, PATTERN]])
