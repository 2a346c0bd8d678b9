"""Compiled bucket elimination in plain arithmetic: messages, marginals and samples of any discrete model.

The table of a bucket is never stored. A block of it that fits the first-level cache is multiplied from its pieces,
summed over the bucket's variable and added to the message; on the way back it is made again. What is kept is a message
a bucket, 1 / K of the tables. Pieces over one or two variables cost next to nothing: they enter while the block is
built axis by axis, each step as long as what is built so far. The others cost one multiplication an entry, read in
sequence where they have all axes of the block, else gathered. So the limit is a load and a few multiplications an entry
of the clique tables.

Sums of positive numbers lose nothing but what underflows. Every piece is scaled so that the logarithms of its entries
lie evenly around 0; where the sum of their largest passes REACH, `forward` gives up and the caller turns to logarithms.

Arrays that the functions share, besides those of `exact_buckets` (states, start, scope, bucket, held):

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

from spinbench.backends.numba.exact_buckets import BLOCK

REACH = 600.0
SCALAR, ALONG, GATHERED = range(3)
SOURCE, LEAD, KIND, AT, TARGETS = range(5)
"""Columns of `piece`: offset; first axis after 0; how it is read; offset at the present block; entries of a child's
message within a block."""


@njit(cache=True, error_model="numpy")
def _centre(part, begin, end):
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
            more, small_reach[a] = _centre(small, small_at[a], small_at[a] + card[0] * others)
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
def _base(axes, pieces, store, card, small, small_at, piece, stride, pattern, index, base):
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
def _scales(a, low, card, small, small_at, digit, scale):
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
def _next(low, rows, card, piece, stride, digit):
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
def _product(x, low, size, pieces, store, scale, base, block, piece, stride, pattern):
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
        low, size = _base(axes, pieces, store, card, small, small_at, piece, stride, pattern, index, base)
        _scales(0, low, card, small, small_at, digit, scale)
        begin, end = offset[tables + p], offset[tables + p + 1]
        for at in range(begin, end, size):
            part = store[at:]
            for x in range(card[0]):
                _product(x, low, size, pieces, store, scale, base, block, piece, stride, pattern)
                if x == 0:
                    for i in range(size):
                        part[i] = block[i]
                else:
                    for i in range(size):
                        part[i] += block[i]
            _scales(max(_next(low, pieces, card, piece, stride, digit), 1), low, card, small, small_at, digit, scale)
        shift, reach[tables + p] = _centre(store, begin, end)
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
        low, size = _base(axes, pieces, store, card, small, small_at, piece, stride, pattern, index, base)
        _scales(0, low, card, small, small_at, digit, scale)
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
                _product(x, low, size, pieces, store, scale, base, block, piece, stride, pattern)
                row = sums[x * size :]
                for i in range(size):
                    block[i] *= part[i]
                    row[i] += block[i]
                for q in range(pieces, rows):
                    _project(block, size, prior[piece[q, AT] + x * stride[q, 0] :], piece[q, TARGETS], pattern[q])
            _scales(max(_next(low, rows, card, piece, stride, digit), 1), low, card, small, small_at, digit, scale)
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
