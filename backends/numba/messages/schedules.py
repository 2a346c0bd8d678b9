"""Sum-product on any factor graph in compiled code, with three schedules.

Messages are stored as in `graphs.message_layouts`, one row of the arrays a chain. Sums over a factor's states run
in the linear domain with cavities scaled to a maximum of 1, wherever the smallest product that can occur is far from
underflow; otherwise in the log domain.

Compiled functions take the fields of `Factors` one by one: taking an array out of a tuple counts references, which in
the innermost loops costs more than a message.
"""

from __future__ import annotations

import math
from typing import Any

import numba as nb
import numpy as np

from spinbench.backends.numba.messages.tables import (
    CARD,
    EARLIER,
    FACTOR,
    LATER,
    MESSAGE,
    ROW,
    START,
    STRIDE,
    TABLE,
    VARIABLE,
)

INLINED: dict[str, Any] = {"error_model": "numpy", "forceinline": True}


@nb.njit(**INLINED)
def _pair_message(slots, factors, scales, values, limit, slot, totals, messages):
    """(whether it is safe, log ratio) of a message between binary variables."""
    t = slots[slot, FACTOR]
    other = 2 * factors[t, START] + 1 - slot
    c = totals[slots[other, ROW]] - messages[slots[other, MESSAGE]]
    if scales[t, 0] - abs(c) <= limit:
        return False, c
    base, step, across = factors[t, TABLE], slots[slot, STRIDE], slots[other, STRIDE]
    small = math.exp(-abs(c))
    p0, p1 = (small, 1.0) if c > 0 else (1.0, small)
    above = values[base + step] * p0 + values[base + 3] * p1
    return True, math.log(above / (values[base] * p0 + values[base + across] * p1))


@nb.njit(error_model="numpy", cache=True)
def _any_message(slots, factors, scales, logs, values, limit, slot, totals, messages, p, begin, out):
    """out[1 …] = log ratios of the factor's new message to `slot`."""
    t = slots[slot, FACTOR]
    first, last = factors[t, START], factors[t + 1, START]
    size, low = 0, 1.0 * scales[t, 0]
    for k in range(first, last):
        begin[k - first] = size
        if k == slot:
            continue
        top = bottom = p[size] = 0.0
        for x in range(1, slots[k, CARD]):
            c = 1.0 * totals[slots[k, ROW] + x - 1] - messages[slots[k, MESSAGE] + x - 1]
            p[size + x] = c
            top, bottom = max(top, c), min(bottom, c)
        for x in range(slots[k, CARD]):
            p[size + x] -= top
        low += bottom - top
        size += slots[k, CARD]
    base, end = factors[t, TABLE], factors[t + 1, TABLE]
    card, stride = slots[slot, CARD], slots[slot, STRIDE]
    linear = low > limit
    if linear:
        for x in range(size):
            p[x] = math.exp(p[x])
    out[:card] = 0.0
    out[card : 2 * card] = 0.0 if linear else -np.inf  # the largest logarithms
    for turn in range(2):
        if linear and turn == 0:
            continue
        for index in range(end - base):
            total = 1.0 * (values[base + index] if linear else logs[base + index])
            for k in range(first, last):
                if k != slot:
                    factor = p[begin[k - first] + (index // slots[k, STRIDE]) % slots[k, CARD]]
                    total = total * factor if linear else total + factor
            x = (index // stride) % card
            if linear:
                out[x] += total
            elif turn == 0:
                out[card + x] = max(out[card + x], total)
            else:
                out[x] += math.exp(total - out[card + x])
    for x in range(card - 1, -1, -1):
        out[x] = (math.log(out[x]) + out[card + x]) - (math.log(out[0]) + out[card])


@nb.njit(**INLINED)
def _message(slots, factors, scales, logs, values, limit, slot, totals, messages, p, begin, out):
    """out[1 …] = log ratios of the factor's new message to `slot`; returns the largest change."""
    t = slots[slot, FACTOR]
    done = False
    if factors[t + 1, TABLE] - factors[t, TABLE] == 4 and factors[t + 1, START] - factors[t, START] == 2:
        done, out[1] = _pair_message(slots, factors, scales, values, limit, slot, totals, messages)
    if not done:
        _any_message(slots, factors, scales, logs, values, limit, slot, totals, messages, p, begin, out)
    return _change(slots, slot, messages, out)


@nb.njit(**INLINED)
def _change(slots, slot, messages, out):
    """Largest change of the message of `slot`, were it replaced by `out`."""
    change = 0.0
    for x in range(1, slots[slot, CARD]):
        change = max(change, abs(out[x] - messages[slots[slot, MESSAGE] + x - 1]) / max(1.0, abs(out[x])))
    return change


@nb.njit(**INLINED)
def _store(slots, slot, messages, out, damping):
    for x in range(1, slots[slot, CARD]):
        k = slots[slot, MESSAGE] + x - 1
        messages[k] = out[x] if damping == 0 else damping * messages[k] + (1 - damping) * out[x]


@nb.njit(**INLINED)
def _sum_up(slots, scales, variables, at, theta, v, messages, totals):
    """totals of one variable."""
    row = variables[v, 0]
    for x in range(variables[v + 1, 0] - row):
        total = 1.0 * theta[row + x]
        for k in range(variables[v, 1], variables[v + 1, 1]):
            slot = at[k]
            total += scales[slots[slot, FACTOR], 1] * messages[slots[slot, MESSAGE] + x]
        totals[row + x] = total


@nb.njit(cache=True, error_model="numpy")
def sum_up_all(slots, factors, scales, logs, values, variables, at, theta, limit, messages, totals):
    """totals (R,) of messages (M,)."""
    for v in range(len(variables) - 1):
        _sum_up(slots, scales, variables, at, theta, v, messages, totals)


@nb.njit(cache=True, error_model="numpy")
def parallel_sweep(
    slots, factors, scales, logs, values, variables, at, theta, limit, messages, totals, damping, p, begin, out, fresh
):
    """All messages from the old ones; the largest change. `fresh` (M,) is work space."""
    change = 0.0
    for slot in range(len(slots)):
        moved = _message(slots, factors, scales, logs, values, limit, slot, totals, messages, p, begin, out)
        change = max(change, moved)
        for x in range(1, slots[slot, CARD]):
            fresh[slots[slot, MESSAGE] + x - 1] = out[x]
    for k in range(messages.size):
        messages[k] = fresh[k] if damping == 0 else damping * messages[k] + (1 - damping) * fresh[k]
    for v in range(len(variables) - 1):
        _sum_up(slots, scales, variables, at, theta, v, messages, totals)
    return change


@nb.njit(cache=True, error_model="numpy")
def sequential_sweep(
    slots, factors, scales, logs, values, variables, at, theta, limit, messages, totals, damping, p, begin, out
):
    """Variables in ascending order, each receiving from factors with lower ones; then back. The largest change.

    A pair sends one message on the way forth and the other on the way back, as in Kolmogorov's TRW-S (2006).
    """
    change = 0.0
    n = len(variables) - 1
    for turn in range(2):
        for q in range(n):
            v = q if turn == 0 else n - 1 - q
            touched = False
            for k in range(variables[v, 1], variables[v + 1, 1]):
                slot = at[k]
                if slots[slot, EARLIER if turn == 0 else LATER]:
                    moved = _message(slots, factors, scales, logs, values, limit, slot, totals, messages, p, begin, out)
                    change = max(change, moved)
                    _store(slots, slot, messages, out, damping)
                    touched = True
            if touched:
                _sum_up(slots, scales, variables, at, theta, v, messages, totals)
    return change


@nb.njit(**INLINED)
def _sift(heap, place, priority, k):
    """Moves the slot at heap[k] to where its priority belongs; the largest is at the root."""
    slot, key = heap[k], priority[heap[k]]
    while k > 0 and priority[heap[(k - 1) // 2]] < key:
        heap[k] = heap[(k - 1) // 2]
        place[heap[k]] = k
        k = (k - 1) // 2
    while 2 * k + 1 < heap.size:
        child = 2 * k + 1
        if child + 1 < heap.size and priority[heap[child + 1]] > priority[heap[child]]:
            child += 1
        if priority[heap[child]] <= key:
            break
        heap[k] = heap[child]
        place[heap[k]] = k
        k = child
    heap[k] = slot
    place[slot] = k


@nb.njit(cache=True, error_model="numpy")
def residual_sweep(
    slots,
    factors,
    scales,
    logs,
    values,
    variables,
    at,
    theta,
    limit,
    messages,
    totals,
    damping,
    p,
    begin,
    out,
    fresh,
    heap,
    place,
    priority,
    begun,
    tolerance,
):
    """As many updates as there are messages, always of the one that would change most; its change in the end.

    `begun`: whether heap, place, priority (S,) and the proposed messages `fresh` (M,) are those of the last sweep.
    """
    count = len(slots)
    for slot in range(0 if begun else count):
        heap[slot] = place[slot] = slot
        priority[slot] = 0.0
    for update in range(-1 if not begun else 0, count):
        # The slots whose factors see the last update; at first all.
        low, high, source, v = 0, 1, -1, -1
        if update >= 0:
            slot = heap[0]
            if priority[slot] <= tolerance:
                break
            for x in range(1, slots[slot, CARD]):
                out[x] = fresh[slots[slot, MESSAGE] + x - 1]
            _store(slots, slot, messages, out, damping)
            source, v = slots[slot, FACTOR], slots[slot, VARIABLE]
            _sum_up(slots, scales, variables, at, theta, v, messages, totals)
            priority[slot] = _change(slots, slot, messages, out)
            _sift(heap, place, priority, 0)
            low, high = variables[v, 1], variables[v + 1, 1]
        for k in range(low, high):
            first, last = 0, count
            if update >= 0:
                t = slots[at[k], FACTOR]
                first, last = (0, 0) if t == source else (factors[t, START], factors[t + 1, START])
            for slot in range(first, last):
                if slots[slot, VARIABLE] == v:
                    continue
                priority[slot] = _message(
                    slots, factors, scales, logs, values, limit, slot, totals, messages, p, begin, out
                )
                for x in range(1, slots[slot, CARD]):
                    fresh[slots[slot, MESSAGE] + x - 1] = out[x]
                _sift(heap, place, priority, place[slot])
    return priority[heap[0]] if count else 0.0
