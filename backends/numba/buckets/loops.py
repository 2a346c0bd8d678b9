"""Maps and both passes as loops over entries; what they compute stands in `spinbench.methods.buckets.passes`."""

from __future__ import annotations

import math
from typing import Any

import numba as nb
import numpy as np

OPTIONS: dict[str, Any] = {"cache": True, "error_model": "numpy", "fastmath": {"contract", "arcp", "nsz", "reassoc"}}
"""Infinities stay what they are."""


@nb.njit(cache=True, error_model="numpy")
def fill(shape, strides, out):
    """The index along `strides` of each entry of a table of this shape, in C order."""
    out[0] = 0
    done = 1
    for axis in range(len(shape) - 1, -1, -1):
        for x in range(1, shape[axis]):
            shift = x * strides[axis]
            for i in range(done):
                out[x * done + i] = out[i] + shift
        done *= shape[axis]


@nb.njit(cache=True, error_model="numpy")
def fill_maps(scope_starts, shapes, clique, starts, strides, entries):
    """All maps, one after another."""
    size = 0
    for c in clique:
        size += entries[c + 1] - entries[c]
    out = np.empty(size, np.int32)
    done = 0
    for k in range(len(clique)):
        c = clique[k]
        more = entries[c + 1] - entries[c]
        part = out[done : done + more]
        fill(shapes[scope_starts[c] : scope_starts[c + 1]], strides[starts[k] : starts[k + 1]], part)
        done += more
    return out


@nb.njit(cache=True, error_model="numpy")
def fill_base(scope_starts, shapes, clique, starts, strides, base, entries, values):
    """The factors' log weights."""
    total = np.zeros(entries[-1])
    largest = 0
    for c in clique:
        largest = max(largest, entries[c + 1] - entries[c])
    index = np.empty(largest, np.int32)
    for k in range(len(clique)):
        c = clique[k]
        fill(shapes[scope_starts[c] : scope_starts[c + 1]], strides[starts[k] : starts[k + 1]], index)
        for i in range(entries[c + 1] - entries[c]):
            total[entries[c] + i] += values[base[k] + index[i]]
    return total


@nb.njit(**OPTIONS)
def forward(at, theta, weights, logs, probabilities, messages):
    """The bound; conditionals and messages are written."""
    total = at.constant
    for c in range(len(at.variable)):
        begin, size, card = at.entries[c], at.entries[c + 1] - at.entries[c], at.cards[at.variable[c]]
        _gather(at, c, begin, size, theta, messages, logs)
        weight, sent = weights[c], at.messages[c]
        for r in range(size // card):
            messages[sent + r] = weight * _row(logs, probabilities, begin + r * card, card, 1.0 / weight)
        if at.parent[c] < 0:
            total += messages[sent]
    return total


@nb.njit(**OPTIONS)
def _gather(at, c, begin, size, theta, messages, logs):
    """ψ_c, into `logs`."""
    for i in range(size):
        logs[begin + i] = at.base[begin + i]
    for k in range(at.child_starts[c], at.child_starts[c + 1]):
        sent, place = at.messages[at.children[k]], at.child_maps[k]
        for i in range(size):
            logs[begin + i] += messages[sent + at.maps[place + i]]
    place = at.shift_maps[c]
    if place >= 0:
        for i in range(size):
            logs[begin + i] += theta[at.shifts[c] + at.maps[place + i]]


@nb.njit(**OPTIONS)
def _row(logs, probabilities, at, card, inverse):
    """log Σ exp(ψ / w) of one row, of which the conditionals and their logs are written."""
    sign, top = 1.0 if inverse > 0 else -1.0, -np.inf
    for i in range(at, at + card):
        top = max(top, sign * logs[i])
    top *= sign
    if top == -np.inf:
        for i in range(at, at + card):
            probabilities[i] = 0.0
        return -np.inf
    total = 0.0
    for i in range(at, at + card):
        logs[i] = (logs[i] - top) * inverse
        probabilities[i] = math.exp(logs[i])
        total += probabilities[i]
    log, share = math.log(total), 1.0 / total
    for i in range(at, at + card):
        logs[i] -= log
        probabilities[i] *= share
    return top * inverse + log


@nb.njit(**OPTIONS)
def backward(at, logs, probabilities, upward, shifts, entropies):
    """The gradient: g_c in place of the conditionals, and its marginals."""
    upward[:] = 0.0
    shifts[:] = 0.0
    for c in range(len(at.variable) - 1, -1, -1):
        begin, size, card = at.entries[c], at.entries[c + 1] - at.entries[c], at.cards[at.variable[c]]
        sent, parent = at.messages[c], at.parent[c]
        if parent < 0:
            upward[sent] = 1.0
        else:
            above, place = at.entries[parent], at.parent_map[c]
            for i in range(at.entries[parent + 1] - above):
                upward[sent + at.maps[place + i]] += probabilities[above + i]
        entropy = 0.0
        for r in range(size // card):
            share = upward[sent + r]
            for i in range(begin + r * card, begin + (r + 1) * card):
                g = probabilities[i] * share
                probabilities[i] = g
                if g > 0.0:
                    entropy -= g * logs[i]
        entropies[c] = entropy
        place = at.shift_maps[c]
        if place >= 0:
            for i in range(size):
                shifts[at.shifts[c] + at.maps[place + i]] += probabilities[begin + i]
