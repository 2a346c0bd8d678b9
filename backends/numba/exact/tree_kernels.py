"""Compiled bucket elimination in plain arithmetic: messages, marginals and samples of any discrete model.

The table of a bucket is never stored. A block of it that fits the first-level cache is multiplied from its pieces,
summed over the bucket's variable and added to the message; on the way back it is made again. What is kept is a message
a bucket, 1 / K of the tables. Pieces over one or two variables cost next to nothing: they enter while the block is
built axis by axis, each step as long as what is built so far. The others cost one multiplication an entry, read in
sequence where they have all axes of the block, else gathered. So the limit is a load and a few multiplications an entry
of the clique tables.

Sums of positive numbers lose nothing but what underflows. Every piece is scaled so that the logarithms of its entries
lie evenly around 0; where the sum of their largest passes REACH, `forward` gives up and the caller turns to logarithms.

The functions share the arrays of `buckets` and of `bucket_kernels`.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from spinbench.backends.numba.exact.bucket_kernels import (
    AT,
    LEAD,
    REACH,
    SOURCE,
    TARGETS,
    centre,
    make_base,
    make_block,
    make_scales,
    next_block,
    prepare,
)


@njit(cache=True, error_model="numpy")
def forward(
    states, start, scope, bucket, held, store, offset, reach, axis, card, small, small_at, small_reach, piece, stride,
    pattern, index, base, block, digit, scale, shifts
):  # fmt: skip
    """All messages, into `store`, their reach, and in `shifts` (n,) the log of what each was divided by.

    Returns:
        log of the sum; -inf if there is no weight, NaN where the range of float64 might not do.
    """
    tables = start.size - 1 - states.size
    total = lost = 0.0  # Neumaier's sum
    for p in range(states.size):
        axes, pieces, taken, bound = prepare(
            p, states, start, scope, bucket, held, store, offset, reach,
            axis, card, small, small_at, small_reach, piece, stride
        )  # fmt: skip
        if bound > REACH:
            return math.nan
        low, size = make_base(axes, pieces, store, card, small, small_at, piece, stride, pattern, index, base)
        make_scales(0, low, card, small, small_at, digit, scale)
        begin, end = offset[tables + p], offset[tables + p + 1]
        for at in range(begin, end, size):
            part = store[at:]
            for x in range(card[0]):
                make_block(x, low, size, pieces, store, scale, base, block, piece, stride, pattern)
                if x == 0:
                    for i in range(size):
                        part[i] = block[i]
                else:
                    for i in range(size):
                        part[i] += block[i]
            make_scales(
                max(next_block(low, pieces, card, piece, stride, digit), 1), low, card, small, small_at, digit, scale
            )
        shift, reach[tables + p] = centre(store, begin, end)
        if shift == -math.inf:
            return shift
        shifts[p] = shift
        term = taken + shift
        fresh = total + term
        lost += (total - fresh) + term if abs(total) >= abs(term) else (term - fresh) + total
        total = fresh
    return total + lost


@njit(cache=True, error_model="numpy")
def _targets(q, low, axes, card, stride, out):
    """Of the axes from `low` on: offsets in the block of the entries that child q has, then of those it sums over.

    Returns the number of the former; there is nothing to read where it is 1 or all.
    """
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


@njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
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


@njit(cache=True, error_model="numpy")
def _ask(i, q, source, start, scope, axis, card, axes, piece, stride):
    """Enters message i of a child as row q."""
    for a in range(axes):
        stride[q, a] = 0
    step = 1
    for m in range(start[i + 1] - 1, start[i] - 1, -1):
        stride[q, axis[scope[m]]] = step
        step *= card[axis[scope[m]]]
    piece[q, SOURCE] = piece[q, AT] = source


@njit(cache=True, error_model="numpy")
def backward(
    states, start, scope, bucket, held, store, offset, reach, axis, card, small, small_at, small_reach, piece, stride,
    pattern, index, base, block, digit, scale, shifts, prior, sums, marginals, marginal_at
):  # fmt: skip
    """Marginals of all variables, once `forward` has left its messages.

    Args:
        prior: (messages in all,) work: p(x_S) of each bucket, then divided by its message.
        sums: (K B,) work: the blocks of a bucket, summed.
        marginals: flat; marginal_at: (n,) where those of a position start.
    """
    tables = start.size - 1 - states.size
    origin = offset[tables]
    for p in range(states.size - 1, -1, -1):
        axes, pieces, _, _ = prepare(
            p, states, start, scope, bucket, held, store, offset, reach,
            axis, card, small, small_at, small_reach, piece, stride
        )  # fmt: skip
        low, size = make_base(axes, pieces, store, card, small, small_at, piece, stride, pattern, index, base)
        make_scales(0, low, card, small, small_at, digit, scale)
        begin, end = offset[tables + p], offset[tables + p + 1]
        message, ratio = store[begin:end], prior[begin - origin : end - origin]
        if axes == 1:
            ratio[0] = 1.0
        unit = math.exp(-shifts[p])
        for i in range(ratio.size):
            ratio[i] = ratio[i] / message[i] * unit if message[i] > 0 else 0.0
        rows = pieces
        for k in range(bucket[p], bucket[p + 1]):
            i = held[k]
            if i < tables:
                continue
            for at in range(offset[i] - origin, offset[i + 1] - origin):
                prior[at] = 0.0
            if start[i + 1] - start[i] > 1 and axis[scope[start[i] + 1]] < low:
                _ask(i, rows, offset[i] - origin, start, scope, axis, card, axes, piece, stride)
                piece[rows, TARGETS] = _targets(rows, low, axes, card, stride, pattern[rows])
                rows += 1
        for i in range(card[0] * size):
            sums[i] = 0.0
        for at in range(0, end - begin, size):
            part = ratio[at:]
            for x in range(card[0]):
                make_block(x, low, size, pieces, store, scale, base, block, piece, stride, pattern)
                row = sums[x * size :]
                for i in range(size):
                    block[i] *= part[i]
                    row[i] += block[i]
                for q in range(pieces, rows):
                    _project(block, size, prior[piece[q, AT] + x * stride[q, 0] :], piece[q, TARGETS], pattern[q])
            make_scales(
                max(next_block(low, rows, card, piece, stride, digit), 1), low, card, small, small_at, digit, scale
            )
        # the sum of the blocks, axis by axis; children get theirs as soon as all axes before their first are gone
        left = size
        for a in range(low, axes + 1):
            for k in range(bucket[p], bucket[p + 1]):
                i = held[k]
                members = start[i + 1] - start[i]
                if i < tables or (axes if members == 1 else axis[scope[start[i] + 1]]) != a:
                    continue
                _ask(i, rows, offset[i] - origin, start, scope, axis, card, axes, piece, stride)
                targets = _targets(rows, a, axes, card, stride, index)
                for x in range(card[0]):
                    _project(sums[x * size :], left, prior[piece[rows, SOURCE] + x * stride[rows, 0] :], targets, index)
            if a < axes:
                left //= card[a]
                for x in range(card[0]):
                    row = sums[x * size :]
                    for k in range(1, card[a]):
                        part = row[k * left :]
                        for i in range(left):
                            row[i] += part[i]
        total = 0.0
        for x in range(card[0]):
            total += sums[x * size]
        for x in range(card[0]):
            marginals[marginal_at[p] + x] = sums[x * size] / total


@njit(cache=True, error_model="numpy")
def draw(
    states, start, scope, bucket, held, store, offset, reach, axis, card, small, small_at, small_reach, piece, stride,
    uniforms, weights, drawn
):  # fmt: skip
    """Independent samples, once `forward` has left its messages: each variable given those eliminated after it.

    Args:
        uniforms: (n, M) in [0, 1).
        weights: (K, M) work.
        drawn: (n, M) int64 states by position, filled from the last.
    """
    tables = start.size - 1 - states.size
    count = drawn.shape[1]
    for p in range(states.size - 1, -1, -1):
        axes, pieces, _, _ = prepare(
            p, states, start, scope, bucket, held, store, offset, reach,
            axis, card, small, small_at, small_reach, piece, stride
        )  # fmt: skip
        first = start[tables + p] - 1  # so that scope[first + a] is axis a
        for x in range(card[0]):
            for m in range(count):
                weights[x, m] = small[x]
            for a in range(1, axes):
                u, row = scope[first + a], small[small_at[a] + x * card[a] :]
                for m in range(count):
                    weights[x, m] *= row[drawn[u, m]]
            for q in range(pieces):
                for m in range(count):
                    at = piece[q, SOURCE] + x * stride[q, 0]
                    for a in range(piece[q, LEAD], axes):
                        if stride[q, a]:
                            at += stride[q, a] * drawn[scope[first + a], m]
                    weights[x, m] *= store[at]
        for m in range(count):
            total = 0.0
            for x in range(card[0]):
                total += weights[x, m]
            left = uniforms[p, m] * total
            chosen = -1
            for x in range(card[0]):
                if weights[x, m] > 0:  # rounding must not reach a state of weight zero
                    chosen = x
                    left -= weights[x, m]
                    if left < 0:
                        break
            drawn[p, m] = chosen
