"""Sum-product on any factor graph in compiled code, with three schedules.

Messages are stored as in `graphs.message_layouts`, one row of the arrays a chain. Sums over a factor's states run
in the linear domain with cavities scaled to a maximum of 1, wherever the smallest product that can occur is far from
underflow; otherwise in the log domain.

No function here allocates, so that they are compiled without Numba's runtime: with it, each array that is taken out of
`Factors` would be counted, which in the innermost loops costs more than a message.
"""

from __future__ import annotations

import math

import numpy as np

from spinbench.backends.numba.kernel_cache import CALLEE, Options, njit
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
from spinbench.backends.numba.simd import larger, smaller

UNCOUNTED: Options = {"error_model": "numpy", "_nrt": False}
INLINED: Options = {**UNCOUNTED, **CALLEE, "forceinline": True}


@njit(**INLINED)
def _pair_message(tables, slot, totals, messages):
    """(whether it is safe, log ratio) of a message between binary variables."""
    slots, values = tables.slots, tables.values
    t = slots[slot, FACTOR]
    # A pair has two consecutive slots, so that their numbers add up to 2 START + 1.
    other = 2 * tables.factors[t, START] + 1 - slot
    c = totals[slots[other, ROW]] - messages[slots[other, MESSAGE]]
    # This is the smallest product in the sums below: if it is in range, neither sum underflows to 0.
    if tables.scales[t, 0] - abs(c) <= tables.limit:
        return False, c
    base, step, across = tables.factors[t, TABLE], slots[slot, STRIDE], slots[other, STRIDE]
    small = math.exp(-abs(c))
    p0, p1 = (small, 1.0) if c > 0 else (1.0, small)
    # e^-|c| and 1 replace 1 and e^c, so that no product overflows, whatever the sign of c.
    above = values[base + step] * p0 + values[base + 3] * p1
    return True, math.log(above / (values[base] * p0 + values[base + across] * p1))


@njit(**INLINED)
def _cavities(tables, slot, totals, messages, work):
    """Log cavities of a factor's other variables in work.p, those of slot k from work.begin[k - first] on.

    Each has the largest entry 0. Returns their number and the smallest log product with an entry of the table.
    """
    slots, p = tables.slots, work.p
    t = slots[slot, FACTOR]
    first = tables.factors[t, START]
    size, low = 0, 1.0 * tables.scales[t, 0]
    for k in range(first, tables.factors[t + 1, START]):
        work.begin[k - first] = size
        if k == slot:
            continue
        top = bottom = p[size] = 0.0
        for x in range(1, slots[k, CARD]):
            c = 1.0 * totals[slots[k, ROW] + x - 1] - messages[slots[k, MESSAGE] + x - 1]
            p[size + x] = c
            top, bottom = larger(top, c), smaller(bottom, c)
        for x in range(slots[k, CARD]):
            p[size + x] -= top
        # The product's smallest entry is at least the smallest entry of the table times that of each cavity.
        low += bottom - top
        size += slots[k, CARD]
    return size, low


@njit(**INLINED)
def _term(tables, slot, scope, index, linear, work):
    """Entry `index` of a factor's table times the cavities of the other variables, or the sum of their logarithms.

    `scope`: the factor's first slot, the one after its last, and where its table begins.
    """
    slots, (first, last, base) = tables.slots, scope
    total = 1.0 * (tables.values[base + index] if linear else tables.logs[base + index])
    for k in range(first, last):
        if k != slot:
            factor = work.p[work.begin[k - first] + (index // slots[k, STRIDE]) % slots[k, CARD]]
            total = total * factor if linear else total + factor
    return total


@njit(**UNCOUNTED, **CALLEE)
def _any_message(tables, slot, totals, messages, work):
    """work.out[1 …] = log ratios of the factor's new message to `slot`."""
    slots, out = tables.slots, work.out
    size, low = _cavities(tables, slot, totals, messages, work)
    # Without a risk of underflow, one exponential per state of a neighbour replaces one per table entry.
    linear = low > tables.limit
    if linear:
        for x in range(size):
            work.p[x] = math.exp(work.p[x])
    factors, t = tables.factors, slots[slot, FACTOR]
    scope = factors[t, START], factors[t + 1, START], factors[t, TABLE]
    states = factors[t + 1, TABLE] - factors[t, TABLE]
    card, stride = slots[slot, CARD], slots[slot, STRIDE]
    out[:card] = 0.0
    # In the log domain this half of `out` collects each state's largest logarithm, which the second pass subtracts.
    out[card : 2 * card] = 0.0 if linear else -np.inf
    # In the log domain the first pass finds the largest terms, and the second sums all terms relative to them.
    for turn in range(1 if linear else 0, 2):
        for index in range(states):
            total = _term(tables, slot, scope, index, linear, work)
            x = (index // stride) % card
            if linear:
                out[x] += total
            elif turn == 0:
                out[card + x] = larger(out[card + x], total)
            else:
                out[x] += math.exp(total - out[card + x])
    top = -np.inf
    for x in range(card):
        out[x] = math.log(out[x]) + out[card + x]
        top = larger(top, out[x])
    # From the last state to the first, since out[0] enters every ratio and is overwritten last. The floor keeps
    # messages of states of weight 0 finite: their differences would be NaN.
    for x in range(card - 1, -1, -1):
        out[x] = larger(out[x] - top, tables.floor) - larger(out[0] - top, tables.floor)


@njit(**INLINED)
def _message(tables, slot, totals, messages, work):
    """work.out[1 …] = log ratios of the factor's new message to `slot`; returns the largest change."""
    factors, t = tables.factors, tables.slots[slot, FACTOR]
    done = False
    # Two variables with two states each; the table size alone would also match one variable with four states.
    if factors[t + 1, TABLE] - factors[t, TABLE] == 4 and factors[t + 1, START] - factors[t, START] == 2:
        done, work.out[1] = _pair_message(tables, slot, totals, messages)
    if not done:
        _any_message(tables, slot, totals, messages, work)
    return _change(tables.slots, slot, messages, work.out)


@njit(**INLINED)
def _change(slots, slot, messages, out):
    """Largest change of the message of `slot`, were it replaced by `out`."""
    change = 0.0
    for x in range(1, slots[slot, CARD]):
        # Relative for large messages: in float32 a message of 50 cannot settle to an absolute 1e-6.
        change = larger(change, abs(out[x] - messages[slots[slot, MESSAGE] + x - 1]) / larger(1.0, abs(out[x])))
    return change


@njit(**INLINED)
def _store(slots, slot, messages, out, damping):
    for x in range(1, slots[slot, CARD]):
        k = slots[slot, MESSAGE] + x - 1
        messages[k] = out[x] if damping == 0 else damping * messages[k] + (1 - damping) * out[x]


@njit(**INLINED)
def _sum_up(tables, v, messages, totals):
    """totals of one variable."""
    slots, variables = tables.slots, tables.variables
    row = variables[v, 0]
    for x in range(variables[v + 1, 0] - row):
        # The factor 1.0 promotes the sum to float64: cavities are differences of totals, and float32 sums would lose
        # their digits.
        total = 1.0 * tables.theta[row + x]
        for k in range(variables[v, 1], variables[v + 1, 1]):
            slot = tables.at[k]
            total += tables.scales[slots[slot, FACTOR], 1] * messages[slots[slot, MESSAGE] + x]
        totals[row + x] = total


@njit(**UNCOUNTED, cache=True)
def sum_up_all(tables, messages, totals):
    """totals (R,) of messages (M,)."""
    for v in range(len(tables.variables) - 1):
        _sum_up(tables, v, messages, totals)


@njit(**UNCOUNTED, cache=True)
def parallel_sweep(tables, messages, totals, damping, work, fresh):
    """All messages from the old ones; the largest change. `fresh` (M,) is work space."""
    slots, change = tables.slots, 0.0
    for slot in range(len(slots)):
        change = larger(change, _message(tables, slot, totals, messages, work))
        for x in range(1, slots[slot, CARD]):
            fresh[slots[slot, MESSAGE] + x - 1] = work.out[x]
    for k in range(messages.size):
        messages[k] = fresh[k] if damping == 0 else damping * messages[k] + (1 - damping) * fresh[k]
    for v in range(len(tables.variables) - 1):
        _sum_up(tables, v, messages, totals)
    return change


@njit(**UNCOUNTED, cache=True)
def sequential_sweep(tables, messages, totals, damping, work):
    """Variables in ascending order, each receiving from factors with lower ones; then back. The largest change.

    A pair sends one message on the way forth and the other on the way back, as in Kolmogorov's TRW-S (2006).
    """
    slots, variables = tables.slots, tables.variables
    change = 0.0
    n = len(variables) - 1
    for turn in range(2):
        for q in range(n):
            v = q if turn == 0 else n - 1 - q
            touched = False
            for k in range(variables[v, 1], variables[v + 1, 1]):
                slot = tables.at[k]
                if slots[slot, EARLIER if turn == 0 else LATER]:
                    change = larger(change, _message(tables, slot, totals, messages, work))
                    _store(slots, slot, messages, work.out, damping)
                    touched = True
            # Without a new message the totals of the variable are unchanged.
            if touched:
                _sum_up(tables, v, messages, totals)
    return change


@njit(**INLINED)
def _sift(queue, k):
    """Moves the slot at heap[k] to where its priority belongs; the largest is at the root."""
    heap, place, priority = queue.heap, queue.place, queue.priority
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


@njit(**UNCOUNTED, **CALLEE)
def _propose(tables, first, last, v, messages, totals, work, queue):
    """New proposals to the slots first, …, last - 1, but not to variable v."""
    slots = tables.slots
    for slot in range(first, last):
        # A message to v does not depend on the messages v receives.
        if slots[slot, VARIABLE] == v:
            continue
        queue.priority[slot] = _message(tables, slot, totals, messages, work)
        for x in range(1, slots[slot, CARD]):
            queue.fresh[slots[slot, MESSAGE] + x - 1] = work.out[x]
        _sift(queue, queue.place[slot])


@njit(**INLINED)
def _accept(tables, slot, messages, totals, damping, work, queue):
    """The message that the queue holds for `slot`, which is its root."""
    slots, out = tables.slots, work.out
    for x in range(1, slots[slot, CARD]):
        out[x] = queue.fresh[slots[slot, MESSAGE] + x - 1]
    _store(slots, slot, messages, out, damping)
    _sum_up(tables, slots[slot, VARIABLE], messages, totals)
    # Under damping a part of the change remains, so that the same message may stay the most urgent one.
    queue.priority[slot] = _change(slots, slot, messages, out)
    _sift(queue, 0)


@njit(**UNCOUNTED, cache=True)
def residual_sweep(tables, messages, totals, damping, work, queue, begun, tolerance):
    """As many updates as there are messages, always of the one that would change most; its change in the end.

    `begun`: whether the queue is that of the last sweep.
    """
    slots, factors, variables = tables.slots, tables.factors, tables.variables
    count = len(slots)
    if not begun:
        for slot in range(count):
            queue.heap[slot] = queue.place[slot] = slot
            queue.priority[slot] = 0.0
        _propose(tables, 0, count, -1, messages, totals, work, queue)
    for _ in range(count):
        slot = queue.heap[0]
        # The root of the heap has the largest change: no other message exceeds the tolerance either.
        if queue.priority[slot] <= tolerance:
            break
        _accept(tables, slot, messages, totals, damping, work, queue)
        v = slots[slot, VARIABLE]
        for k in range(variables[v, 1], variables[v + 1, 1]):
            t = slots[tables.at[k], FACTOR]
            # The factor that sent the message does not read the reply.
            if t != slots[slot, FACTOR]:
                _propose(tables, factors[t, START], factors[t + 1, START], v, messages, totals, work, queue)
    return queue.priority[queue.heap[0]] if count else 0.0
