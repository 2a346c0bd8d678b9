"""Both passes as loops over entries; what they compute stands in `spinbench.methods.buckets.passes`."""

from __future__ import annotations

from typing import Any

import numpy as np

from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.simd.functions import exp, log

OPTIONS: dict[str, Any] = {"cache": True, "error_model": "numpy", "fastmath": {"contract", "arcp", "nsz", "reassoc"}}
"""Infinities stay what they are."""
LEAST = -708.0
"""Of what is less the exponential counts as 0."""


@njit(**OPTIONS)
def forward(at, theta, weights, work):
    """The bound; conditionals and messages are written."""
    logs, probabilities, messages = work.logs, work.probabilities, work.messages
    total, most = at.constant, 0
    for c in range(len(at.variable)):
        most = max(most, at.messages[c + 1] - at.messages[c])
    tops, sums = np.empty(most), np.empty(most)
    for c in range(len(at.variable)):
        begin, end, card = at.entries[c], at.entries[c + 1], at.cards[at.variable[c]]
        _gather(at, c, begin, end - begin, theta, messages, logs)
        first, last = at.messages[c], at.messages[c + 1]
        rows = logs[begin:end], probabilities[begin:end], messages[first:last]
        if card == 2:  # a literal, so that its loops over rows are vectors
            _rows(*rows, 2, weights[c], tops, sums)
        else:
            _rows(*rows, card, weights[c], tops, sums)
        if at.parent[c] < 0:
            total += messages[first]
    return total


@njit(**OPTIONS)
def _gather(at, c, begin, size, theta, messages, logs):
    """ψ_c, into `logs`."""
    for i in range(size):
        logs[begin + i] = at.base[begin + i]
    for k in range(at.child_starts[c], at.child_starts[c + 1]):
        sent, place = at.messages[at.children[k]], at.parent_map[at.children[k]]
        for i in range(size):
            logs[begin + i] += messages[sent + at.maps[place + i]]
    place = at.shift_maps[c]
    if place >= 0:
        for i in range(size):
            logs[begin + i] += theta[at.shifts[c] + at.maps[place + i]]


@njit(forceinline=True, **OPTIONS)
def _rows(logs, probabilities, messages, card, weight, tops, sums):
    """w log Σ exp(ψ / w) of each row, of which the conditionals and their logs are written; ψ stands in `logs`."""
    inverse, sign, count = 1.0 / weight, 1.0 if weight > 0 else -1.0, len(messages)
    for r in range(count):
        top = sign * logs[r * card]
        for x in range(1, card):
            top = max(top, sign * logs[r * card + x])
        tops[r] = 0.0 if top == -np.inf else sign * top
    for r in range(count):
        for x in range(card):
            logs[r * card + x] = (logs[r * card + x] - tops[r]) * inverse
    for i in range(count * card):
        probabilities[i] = exp(logs[i]) if logs[i] > LEAST else 0.0
    for r in range(count):
        sums[r] = 0.0
        for x in range(card):
            sums[r] += probabilities[r * card + x]
    for r in range(count):
        possible = sums[r] > 0.0
        shift = log(sums[r]) if possible else 0.0
        messages[r] = tops[r] + weight * shift if possible else -np.inf
        tops[r], sums[r] = shift, 1.0 / sums[r] if possible else 0.0
    for r in range(count):
        for x in range(card):
            logs[r * card + x] -= tops[r]
            probabilities[r * card + x] *= sums[r]


@njit(**OPTIONS)
def backward(at, work):
    """The gradient: g_c in place of the conditionals, and its marginals."""
    logs, probabilities, upward, shifts = work.logs, work.probabilities, work.upward, work.shifts
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
        work.entropies[c] = entropy
        place = at.shift_maps[c]
        if place >= 0:
            for i in range(size):
                shifts[at.shifts[c] + at.maps[place + i]] += probabilities[begin + i]
