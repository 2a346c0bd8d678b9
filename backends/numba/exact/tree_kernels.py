"""Compiled bucket elimination in plain arithmetic: messages and marginals of any discrete model.

The table of a bucket is never stored. A block of it that fits the first-level cache is multiplied from its pieces,
summed over the bucket's variable and added to the message; on the way back it is made again. What is kept is a message
a bucket, 1 / K of the tables. Pieces over one or two variables cost next to nothing: they enter while the block is
built axis by axis, each step as long as what is built so far. The others cost one multiplication an entry, read in
sequence where they have all axes of the block, else gathered. So the limit is a load and a few multiplications an entry
of the clique tables.

Sums of positive numbers lose nothing but what underflows. Every piece is scaled so that the logarithms of its entries
lie evenly around 0; where the sum of their largest passes REACH, `forward` gives up and the caller turns to logarithms.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from spinbench.backends.numba.exact.bucket_kernels import (
    AT,
    REACH,
    SOURCE,
    TARGETS,
    centre,
    enter,
    make_base,
    make_block,
    make_scales,
    next_block,
    prepare,
)
from spinbench.backends.numba.exact.options import CALLED, ONCE, SHARED
from spinbench.reference.network import FloatArray, IntArray


class Beliefs(NamedTuple):
    """What `backward` fills.

    Attributes:
        prior: (messages in all,) work: p(x_S) of each bucket, then divided by its message.
        sums: (K B,) work: the blocks of a bucket, summed.
        marginals: flat; at: (n,) where those of a position start.
    """

    prior: FloatArray
    sums: FloatArray
    marginals: FloatArray
    at: IntArray


@njit(**CALLED)
def forward(plan, numbers, work, stop):
    """All messages, their reach and their shifts; gives up once stop[0] is not 0.

    Returns:
        log of the sum; -inf if there is no weight, NaN where the range of float64 might not do.
    """
    tables = plan.start.size - 1 - plan.states.size
    total = lost = 0.0  # Neumaier's sum
    for p in range(plan.states.size):
        axes, pieces, taken, bound = prepare(p, plan, numbers, work)
        if bound > REACH or stop[0]:
            return math.nan
        begin = plan.offset[tables + p]
        end = begin + _entries(tables + p, plan)  # not the next offset: places are used again
        _sum_out(axes, pieces, begin, end, numbers.store, work)
        shift, numbers.reach[tables + p] = centre(numbers.store, begin, end)
        if shift == -math.inf:
            return shift
        numbers.shifts[p] = shift
        term = taken + shift
        fresh = total + term
        lost += (total - fresh) + term if abs(total) >= abs(term) else (term - fresh) + total
        total = fresh
    return total + lost


@njit(**ONCE)
def _entries(piece, plan):
    """Of the table of a piece."""
    entries = 1
    for k in range(plan.start[piece], plan.start[piece + 1]):
        entries *= plan.states[plan.scope[k]]
    return entries


@njit(**ONCE)
def _sum_out(axes, pieces, begin, end, store, work):
    """The message of the bucket at work, from its blocks, into store[begin:end]."""
    low, size = make_base(axes, pieces, store, work)
    make_scales(np.int64(0), low, work)
    block = work.block
    for at in range(begin, end, size):
        part = store[at:]
        for x in range(work.card[0]):
            make_block(x, low, size, pieces, store, work)
            if x == 0:
                for i in range(size):
                    part[i] = block[i]
            else:
                for i in range(size):
                    part[i] += block[i]
        next_block(low, pieces, work)


@njit(**SHARED)
def _targets(q, low, axes, work, out):
    """Of the axes from `low` on: offsets in the block of the entries that child q has, then of those it sums over.

    Returns the number of the former; there is nothing to read where it is 1 or all.
    """
    card, stride = work.card, work.stride
    targets, block = 1, 1
    for a in range(low, axes):
        targets *= card[a] if stride[q, a] > 0 else 1
        block *= card[a]
    if targets in (1, block):
        return targets
    begin = 0
    for kept in (True, False):
        size, step = 1, 1
        out[begin] = 0
        for a in range(axes - 1, low - 1, -1):
            if (stride[q, a] > 0) == kept:
                for k in range(1, card[a]):
                    for i in range(size):
                        out[begin + k * size + i] = out[begin + i] + np.uint64(k * step)
                size *= card[a]
            step *= card[a]
        begin = targets
    return targets


@njit(fastmath={"reassoc", "contract"}, **SHARED)
def _project(block, size, out, targets, pattern):
    """Adds a block to a child's share, summed over what the child lacks."""
    if targets == size:
        for i in range(size):
            out[i] += block[i]
    elif targets == 1:
        total = 0.0
        for i in range(size):
            total += block[i]
        out[0] += total
    elif targets >= 8:
        for other in range(targets, targets + size // targets):
            part = block[pattern[other] :]
            for i in range(targets):
                out[i] += part[pattern[i]]
    else:
        rest = pattern[targets:]
        for i in range(targets):
            part = block[pattern[i] :]
            total = 0.0
            for other in range(size // targets):
                total += part[rest[other]]
            out[i] += total


@njit(**CALLED)
def backward(plan, numbers, work, beliefs, stop):
    """Marginals of all variables, once `forward` has left its messages; gives up once stop[0] is not 0."""
    card, sums = work.card, beliefs.sums
    tables = plan.start.size - 1 - plan.states.size
    origin = plan.offset[tables]
    for p in range(plan.states.size - 1, -1, -1):
        if stop[0]:
            return
        axes, pieces, _, _ = prepare(p, plan, numbers, work)
        low, size = make_base(axes, pieces, numbers.store, work)
        make_scales(np.int64(0), low, work)
        begin, end = plan.offset[tables + p], plan.offset[tables + p + 1]
        ratio = beliefs.prior[begin - origin : end - origin]
        if axes == 1:
            ratio[0] = 1.0
        _divide(ratio, numbers.store[begin:end], numbers.shifts[p])
        rows = _enter_children(p, low, axes, pieces, plan, work, beliefs.prior)
        _sum_blocks(ratio, low, size, pieces, rows, numbers.store, work, beliefs)
        _sum_axes(p, low, axes, size, rows, plan, work, beliefs)
        total = 0.0
        for x in range(card[0]):
            total += sums[x * size]
        for x in range(card[0]):
            beliefs.marginals[beliefs.at[p] + x] = sums[x * size] / total


@njit(**ONCE)
def _divide(ratio, message, shift):
    """p(x_S) over the message, which was divided by exp(shift), in place of p(x_S)."""
    unit = math.exp(-shift)
    for i in range(ratio.size):
        ratio[i] = ratio[i] / message[i] * unit if message[i] > 0 else 0.0


@njit(**ONCE)
def _enter_children(p, low, axes, pieces, plan, work, prior):
    """Clears the shares of the children of bucket p, and enters those that reach out of the block as further rows.

    Returns the rows in all.
    """
    tables = plan.start.size - 1 - plan.states.size
    origin = plan.offset[tables]
    rows = pieces
    for k in range(plan.bucket[p], plan.bucket[p + 1]):
        i = plan.held[k]
        if i < tables:
            continue
        for at in range(plan.offset[i] - origin, plan.offset[i + 1] - origin):
            prior[at] = 0.0
        if plan.start[i + 1] - plan.start[i] > 1 and work.axis[plan.scope[plan.start[i] + 1]] < low:
            enter(i, rows, plan.offset[i] - origin, axes, plan, work)
            work.piece[rows, TARGETS] = _targets(rows, low, axes, work, work.pattern[rows])
            rows += 1
    return rows


@njit(**ONCE)
def _sum_blocks(ratio, low, size, pieces, rows, store, work, beliefs):
    """Sums the blocks of the bucket at work, times `ratio`, into `sums`, and into the shares of rows of children."""
    card, block, piece = work.card, work.block, work.piece
    for i in range(card[0] * size):
        beliefs.sums[i] = 0.0
    for at in range(0, ratio.size, size):
        part = ratio[at:]
        for x in range(card[0]):
            make_block(x, low, size, pieces, store, work)
            row = beliefs.sums[x * size :]
            for i in range(size):
                block[i] *= part[i]
                row[i] += block[i]
            for q in range(pieces, rows):
                share = beliefs.prior[piece[q, AT] + x * work.stride[q, 0] :]
                _project(block, size, share, piece[q, TARGETS], work.pattern[q])
        next_block(low, rows, work)


@njit(**ONCE)
def _sum_axes(p, low, axes, size, row, plan, work, beliefs):
    """Sums `sums` axis by axis, to its first entry at each state of bucket p; children whose first axis is next get
    their share. `row` of `piece` is free."""
    tables = plan.start.size - 1 - plan.states.size
    card, sums = work.card, beliefs.sums
    left = size
    for a in range(low, axes + 1):
        for k in range(plan.bucket[p], plan.bucket[p + 1]):
            i = plan.held[k]
            members = plan.start[i + 1] - plan.start[i]
            if i < tables or (axes if members == 1 else work.axis[plan.scope[plan.start[i] + 1]]) != a:
                continue
            enter(i, row, plan.offset[i] - plan.offset[tables], axes, plan, work)
            targets = _targets(row, a, axes, work, work.offsets)
            for x in range(card[0]):
                share = beliefs.prior[work.piece[row, SOURCE] + x * work.stride[row, 0] :]
                _project(sums[x * size :], left, share, targets, work.offsets)
        if a < axes:
            left //= card[a]
            for x in range(card[0]):
                row_of_state = sums[x * size :]
                for k in range(1, card[a]):
                    part = row_of_state[k * left :]
                    for i in range(left):
                        row_of_state[i] += part[i]
