"""Compiled bucket elimination in plain arithmetic: messages and marginals of any discrete model.

The table of a bucket is never stored. A block of it that fits the first-level cache is multiplied from its pieces,
summed over the bucket's variable and added to the message; on the way back it is made again. What is kept is a message
a bucket, 1 / K of the tables. Pieces within the block cost next to nothing: they enter once, while it is built axis by
axis, each step as long as what is built so far; so do those that have one entry in a block. The others cost one
multiplication an entry, read in sequence where they have all axes of the block, else gathered. So the limit is a load
and a few multiplications an entry of the clique tables.

Sums of positive numbers lose nothing but what underflows. Every piece is scaled so that the logarithms of its entries
lie evenly around 0, large messages only once they have drifted away by `DRIFT`; where the sum of their largest passes
REACH, `forward` gives up and the caller turns to logarithms.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from spinbench.backends.numba.exact.bucket_kernels import (
    AT,
    LEAD,
    PATTERN,
    REACH,
    SOURCE,
    TARGETS,
    enter,
    make_base,
    make_block,
    next_block,
    prepare,
    rewind_blocks,
)
from spinbench.backends.numba.exact.buckets import CALLED, ONCE, SHARED, centre, widen
from spinbench.backends.numba.kernel_cache import njit
from spinbench.reference.network import FloatArray, IntArray

# Entries (256 kB) from which a message is read from memory or an outer cache, so that scaling it takes as long as
# computing it.
LARGE = 2**15
# Largest |log| of a large message before it is scaled: products of some thirty such messages stay within `REACH`.
DRIFT = 20.0


class Beliefs(NamedTuple):
    """What `backward` fills.

    Attributes:
        prior: work: p(x_S) of each bucket, from its parent on; place: (n,) where that of a position starts, at places
            that are used again.
        ratio: (B,) work: a block of p(x_S) over the message.
        sums: (K B,) work: the blocks of a bucket, summed.
        marginals: flat; at: (n,) where those of a position start.
    """

    prior: FloatArray
    place: IntArray
    ratio: FloatArray
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
    # Neumaier's compensated sum, of one term a variable.
    total = lost = 0.0
    for p in range(plan.states.size):
        axes, pieces = prepare(p, plan, work)
        low, size, shift_sum, bound = make_base(p, axes, pieces, plan, numbers, work)
        if bound > REACH or stop[0]:
            return math.nan
        begin = plan.offset[tables + p]
        # The length is computed from the scope: memory is shared, so that the next offset may lie anywhere.
        message = numbers.store[begin : begin + _entries(tables + p, plan)]
        largest, smallest = _sum_out(low, size, pieces, message, numbers.store, work)
        drift = DRIFT if message.size > LARGE else 0.0
        shift, numbers.reach[tables + p] = centre(message, message.size, largest, smallest, drift)
        if shift == -math.inf:
            return shift
        numbers.shifts[p] = shift
        term = shift_sum + shift
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
def _sum_out(low, size, pieces, message, store, work):
    """The message of the bucket at work, from its blocks. Returns its largest and its smallest positive entry."""
    largest, smallest = 0.0, math.inf
    block = work.block
    for at in range(0, message.size, size):
        part = message[at:]
        for x in range(work.card[0]):
            make_block(x, low, size, pieces, store, work)
            if x == 0:
                for i in range(size):
                    part[i] = block[i]
            else:
                for i in range(size):
                    part[i] += block[i]
        largest, smallest = widen(part, size, largest, smallest)
        next_block(low, pieces, work)
    return largest, smallest


@njit(**SHARED)
def _targets(q, low, axes, work, out):
    """Of the axes from `low` on: offsets in the block of the entries that child q has, then of those it sums over.

    Returns the number of the former, with nothing to read where it is 1 or all.
    """
    card, stride = work.card, work.stride
    targets, block = 1, 1
    for a in range(low, axes):
        targets *= card[a] if stride[q, a] > 0 else 1
        block *= card[a]
    if targets in (1, block):
        return targets
    begin = 0
    for is_kept in (True, False):
        size, step = 1, 1
        out[begin] = 0
        for a in range(axes - 1, low - 1, -1):
            if (stride[q, a] > 0) == is_kept:
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
    # The vectorised loop must be the long one: over the target entries if there are many, otherwise over the summed
    # entries.
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
    for p in range(plan.states.size - 1, -1, -1):
        if stop[0]:
            return
        axes, pieces = prepare(p, plan, work)
        low, size, _, _ = make_base(p, axes, pieces, plan, numbers, work)
        if axes == 1:
            beliefs.prior[beliefs.place[p]] = 1.0
        rows = _enter_children(p, low, axes, pieces, plan, work, beliefs)
        _sum_blocks(p, low, size, pieces, rows, plan, numbers, work, beliefs)
        for q in range(pieces, rows):
            if work.piece[q, LEAD] >= low:
                targets = _targets(q, low, axes, work, work.offsets)
                for x in range(card[0]):
                    share = beliefs.prior[work.piece[q, SOURCE] + x * work.stride[q, 0] :]
                    _project(sums[x * size :], size, share, targets, work.offsets)
        marginal, total = beliefs.marginals[beliefs.at[p] :], 0.0
        for x in range(card[0]):
            marginal[x] = 0.0
            _project(sums[x * size :], size, marginal[x:], 1, work.offsets)
            total += marginal[x]
        for x in range(card[0]):
            marginal[x] /= total


@njit(**ONCE)
def _enter_children(p, low, axes, pieces, plan, work, beliefs):
    """Clears the shares of the children of bucket p, and enters them as further rows. Returns the rows in all."""
    tables = plan.start.size - 1 - plan.states.size
    rows = pieces
    for k in range(plan.bucket[p], plan.bucket[p + 1]):
        i = plan.piece[k]
        if i < tables:
            continue
        place = beliefs.place[i - tables]
        for at in range(place, place + plan.offset[i + 1] - plan.offset[i]):
            beliefs.prior[at] = 0.0
        enter(i, rows, place, axes, plan, work)
        if work.piece[rows, LEAD] < low:
            work.piece[rows, TARGETS] = _targets(rows, low, axes, work, work.pattern[work.piece[rows, PATTERN]])
        rows += 1
    rewind_blocks(low, rows, work)
    return rows


@njit(**ONCE)
def _sum_blocks(p, low, size, pieces, rows, plan, numbers, work, beliefs):
    """Sums the blocks of the bucket at work, times p(x_S) over the message, into `sums`, and into the shares of
    children that reach out of a block."""
    card, block, piece, ratio = work.card, work.block, work.piece, beliefs.ratio
    message = plan.start.size - 1 - plan.states.size + p
    messages = numbers.store[plan.offset[message] : plan.offset[message + 1]]
    # The message was multiplied by `unit`; the ratio below needs p(x_S) over the unscaled message.
    prior, unit = beliefs.prior[beliefs.place[p] :], math.exp(-numbers.shifts[p])
    for i in range(card[0] * size):
        beliefs.sums[i] = 0.0
    for at in range(0, messages.size, size):
        share, part = prior[at:], messages[at:]
        for i in range(size):
            # States without weight have a message of 0, and a share of 0.
            ratio[i] = share[i] / part[i] * unit if part[i] > 0 else 0.0
        for x in range(card[0]):
            make_block(x, low, size, pieces, numbers.store, work)
            row = beliefs.sums[x * size :]
            for i in range(size):
                block[i] *= ratio[i]
                row[i] += block[i]
            for q in range(pieces, rows):
                if piece[q, LEAD] < low:
                    share = beliefs.prior[piece[q, AT] + x * work.stride[q, 0] :]
                    _project(block, size, share, piece[q, TARGETS], work.pattern[piece[q, PATTERN]])
        next_block(low, rows, work)
