"""A bucket at work (`tree_kernels`): its block of the clique's table, multiplied from the bucket's pieces."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from spinbench.backends.numba.exact.buckets import BLOCK
from spinbench.backends.numba.exact.shared import ONCE, SHARED, centre, widen
from spinbench.reference.network import FloatArray, IntArray

REACH = 600.0
SCALAR, ALONG, GATHERED, RUNS, REPEATED = range(5)
"""How a piece is read within a block: one entry; in sequence; entry by entry; in runs of as many entries as its last
axes have, a long piece of sequence or one entry again and again."""
SHORT = 8
"""Entries of a run below which each entry is looked up."""
SOURCE, LEAD, KIND, RUN, AT, TARGETS = range(6)
"""Columns of `Work.piece`: offset; first axis after 0; how it is read, and its run; offset at the present block;
entries of a child's message within a block."""


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
    """Room for a bucket at work, with K states and A axes at most, P larger pieces, and blocks of B entries.

    Attributes:
        axis: (n,) the axis of a position in the bucket at work; card: (A,) the states of its axes.
        small: what pieces over axis 0 and at most one more multiply to, (K_0, K_a) from small_at[a] on, (A + 1,);
            small_reach: (A,) the largest |log| of each.
        piece: (P, 6) a row for each larger piece; stride: (P, A), 0 where it lacks an axis.
        pattern: (Q, B) uint64, offsets within a block: of pieces that are gathered, and of children; offsets: (B,) one
            more.
        base: (K B,) the product of all that lies within a block, at each state; block: (B,) the block at work.
        digit: (A,) the present state of the axes outside the block; scale: (A, K) products of `small` over them.
    """

    axis: IntArray
    card: IntArray
    small: FloatArray
    small_at: IntArray
    small_reach: FloatArray
    piece: IntArray
    stride: IntArray
    pattern: npt.NDArray[np.uint64]
    offsets: npt.NDArray[np.uint64]
    base: FloatArray
    block: FloatArray
    digit: IntArray
    scale: FloatArray


@njit(**ONCE)
def _set_axes(p, plan, work):
    """Enters the axes of bucket p, with small tables of ones. Returns how many there are."""
    message = plan.start.size - 1 - plan.states.size + p
    axes = plan.start[message + 1] - plan.start[message] + 1
    axis, card, small_at, small_reach = work.axis, work.card, work.small_at, work.small_reach
    card[0] = plan.states[p]
    axis[p] = small_at[0] = 0
    small_at[1] = plan.states[p]
    small_reach[0] = 0.0
    for a in range(1, axes):
        u = plan.scope[plan.start[message] + a - 1]
        axis[u] = a
        card[a] = plan.states[u]
        small_at[a + 1] = small_at[a] + card[0] * card[a]
        small_reach[a] = 0.0
    for i in range(small_at[axes]):
        work.small[i] = 1.0
    return axes


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
    piece[q, SOURCE] = piece[q, AT] = source
    piece[q, LEAD] = lead


@njit(**ONCE)
def _absorb(i, plan, numbers, work):
    """Multiplies piece i, over one or two positions, into a small table. Returns the log of what was taken out."""
    card, small, small_at, small_reach = work.card, work.small, work.small_at, work.small_reach
    left, right = work.axis[plan.scope[plan.start[i]]], work.axis[plan.scope[plan.start[i + 1] - 1]]
    a = max(left, right)
    others = card[a] if a > 0 else 1
    taken = 0.0
    if small_reach[a] + numbers.reach[i] > REACH / 2:  # many pieces on one pair: only what they make together counts
        part, size = small[small_at[a] :], card[0] * others
        largest, smallest = widen(part, size, 0.0, math.inf)
        taken, small_reach[a] = centre(part, size, largest, smallest, 0.0)
    small_reach[a] += numbers.reach[i]
    source = plan.offset[i]
    for x in range(card[0]):
        for y in range(others):
            entry = x * others + y if left == 0 else y * card[0] + x
            small[small_at[a] + x * others + y] *= numbers.store[source + entry]
    return taken


@njit(**SHARED)
def prepare(p, plan, numbers, work):
    """Sets up bucket p. Returns axes, larger pieces, the log of what was taken out, a bound on |log| of products."""
    axes = _set_axes(p, plan, work)
    bound = taken = 0.0
    pieces = np.int64(0)  # not a literal, for which `enter` would be compiled once more
    for k in range(plan.bucket[p], plan.bucket[p + 1]):
        i = plan.held[k]
        if plan.start[i + 1] - plan.start[i] > 2:
            enter(i, pieces, plan.offset[i], axes, plan, work)
            pieces += 1
            bound += numbers.reach[i]
        else:
            taken += _absorb(i, plan, numbers, work)
    for a in range(axes):
        bound += work.small_reach[a]
    return axes, pieces, taken, bound


@njit(**SHARED)
def _pattern(q, low, axes, work, out):
    """Offsets of piece q over the axes from `low` on, one a run; none for SCALAR and ALONG. Returns kind and run."""
    card, stride = work.card, work.stride
    step, along, scalar = 1, True, True
    for a in range(axes - 1, low - 1, -1):
        along &= stride[q, a] == step
        scalar &= stride[q, a] == 0
        step *= card[a]
    if scalar:
        return SCALAR, step
    if along:
        return ALONG, step
    repeats = stride[q, axes - 1] == 0
    kind, run, end = REPEATED if repeats else RUNS, 1, axes
    while end > low and stride[q, end - 1] == (0 if repeats else run):
        end -= 1
        run *= card[end]
    if run < SHORT:
        kind, run, end = GATHERED, 1, axes
    out[0] = 0
    size = 1
    for a in range(end - 1, low - 1, -1):
        for k in range(1, card[a]):
            shift = np.uint64(k * stride[q, a])
            part = out[k * size :]
            for i in range(size):
                part[i] = out[i] + shift
        size *= card[a]
    return kind, run


@njit(**SHARED)
def _multiply(row, size, source, kind, run, pattern):
    """Multiplies row[:size] by a piece that is read from `source` on."""
    if kind == ALONG:
        for i in range(size):
            row[i] *= source[i]
    elif kind == GATHERED:
        for i in range(size):
            row[i] *= source[pattern[i]]
    else:
        for j in range(size // run):
            part, entries = row[j * run :], source[pattern[j] :]
            if kind == RUNS:
                for i in range(run):
                    part[i] *= entries[i]
            else:
                factor = entries[0]
                for i in range(run):
                    part[i] *= factor


@njit(**SHARED)
def make_base(axes, pieces, store, work):
    """Builds the product of what lies within a block, axis by axis from the last, and reads the other pieces' patterns.

    Returns the first axis within the block, and its entries.
    """
    card, base, piece = work.card, work.base, work.piece
    low, block = axes, 1
    while low > 1 and (block == 1 or block * card[low - 1] <= BLOCK):
        low -= 1
        block *= card[low]
    for x in range(card[0]):
        base[x * block] = work.small[x]
    size = 1
    for a in range(axes - 1, low - 1, -1):
        _grow(a, size, block, work)
        size *= card[a]
        for q in range(pieces):
            if piece[q, LEAD] == a:
                kind, run = _pattern(q, a, axes, work, work.offsets)
                for x in range(card[0]):
                    source = store[piece[q, SOURCE] + x * work.stride[q, 0] :]
                    _multiply(base[x * block :], size, source, kind, run, work.offsets)
    for q in range(pieces):
        if piece[q, LEAD] < low:
            piece[q, KIND], piece[q, RUN] = _pattern(q, low, axes, work, work.pattern[q])
    return low, block


@njit(**ONCE)
def _grow(a, size, block, work):
    """From `size` entries of the base at each state to those over axis a, too."""
    card, small, first = work.card, work.small, work.small_at[a]
    for x in range(card[0]):
        row = work.base[x * block :]
        for k in range(card[a] - 1, -1, -1):
            factor = small[first + x * card[a] + k]
            part = row[k * size :]
            for i in range(size):
                part[i] = row[i] * factor


@njit(**SHARED)
def make_scales(a, low, work):
    """Products of the small tables over the outer axes, anew from axis a on; with a = 0 from the first block."""
    card, digit, scale = work.card, work.digit, work.scale
    if a == 0:
        for x in range(card[0]):
            scale[0, x] = 1.0
        for outer in range(1, low):
            digit[outer] = 0
    for outer in range(max(a, 1), low):
        at = work.small_at[outer] + digit[outer]
        for x in range(card[0]):
            scale[outer, x] = scale[outer - 1, x] * work.small[at + x * card[outer]]


@njit(**SHARED)
def next_block(low, rows, work):
    """To the next block: the outer axes count up, the last one fastest, and `piece` and `scale` follow."""
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
    make_scales(max(a, 1), low, work)


@njit(**SHARED)
def make_block(x, low, size, pieces, store, work):
    """The present block at state x of the bucket's variable, into `block`."""
    block, piece, stride = work.block, work.piece, work.stride
    factor = work.scale[low - 1, x]
    for q in range(pieces):
        if piece[q, LEAD] < low and piece[q, KIND] == SCALAR:
            factor *= store[piece[q, AT] + x * stride[q, 0]]
    row, fresh = work.base[x * size :], True
    for q in range(pieces):
        if piece[q, LEAD] < low and piece[q, KIND] != SCALAR:
            source = store[piece[q, AT] + x * stride[q, 0] :]
            if fresh and piece[q, KIND] == ALONG:
                for i in range(size):
                    block[i] = row[i] * factor * source[i]
            else:
                if fresh:
                    _scale(block, row, size, factor)
                _multiply(block, size, source, piece[q, KIND], piece[q, RUN], work.pattern[q])
            fresh = False
    if fresh:
        _scale(block, row, size, factor)


@njit(**SHARED)
def _scale(block, row, size, factor):
    for i in range(size):
        block[i] = row[i] * factor
