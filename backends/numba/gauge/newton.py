"""Newton's method with a line search in compiled code, by the rules of `spinbench.methods.gauge.ascent.newton`.

What an ascent remembers between steps is in `Point` and in the entries of `status`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from spinbench.backends.numba.exact.options import CALLED, ONCE
from spinbench.backends.numba.gauge.cholesky import factorise, lanes, solve
from spinbench.backends.numba.gauge.derivatives import derivatives
from spinbench.backends.numba.gauge.gauged import evaluate, sigmoid
from spinbench.backends.numba.simd.arrays import copy_into
from spinbench.methods.gauge.ascent.newton import (
    ENDS,
    FLAT,
    FLAT_STEPS,
    SLOW,
    SLOW_STEPS,
    SUFFICIENT,
    TRIALS,
)
from spinbench.methods.gauge.ascent.objectives import ANGLE_STEP, FAR_LOGIT, LOGIT_STEP

FloatArray = npt.NDArray[np.float64]

VALUE, SHIFT, FLATS, MARK, RESIDUAL, STEPS, STATUS = range(7)
"""Entries of `status`: the objective, λ, steps in a row that gained nothing, the value when slow progress was looked
for last, the residual, steps taken; and how many entries there are."""
FIRST_SHIFT = 1e-3
GOING, GRADIENT, FLAT_END, SLOW_END, STALLED, LIMIT = (
    ENDS.index(end) for end in ("", "gradient", "flat", "slow", "stalled", "limit")
)


class Point(NamedTuple):
    """Where an ascent stands; all arrays are float64.

    Attributes:
        z: angles (2E), and logits (E) in G-MF.
        q: (E,) in G-MF, (0,) in G-BP.
        given: tables.
        tables: gauged ones at z.
        status: (STATUS,).
    """

    z: FloatArray
    q: FloatArray
    given: FloatArray
    tables: FloatArray
    status: FloatArray


class Room(NamedTuple):
    """What a step writes into, kept from one to the next: coordinates (E·b,), tables and the blocks of a matrix; the
    other members are what `cholesky.factorise`, `derivatives` and `gauged.evaluate` use for themselves.

    Attributes:
        solution: (E·lanes,).
        entries: (ROWS, 2**d) with the highest degree d.
        turns: (2, E).
        axes: (2, 2E).
    """

    gradient: FloatArray
    move: FloatArray
    trial: FloatArray
    found: FloatArray
    matrix: FloatArray
    factor: FloatArray
    columns: npt.NDArray[np.int64]
    where: npt.NDArray[np.int64]
    solution: FloatArray
    entries: FloatArray
    turns: FloatArray
    axes: FloatArray


@njit(**CALLED)
def begin(net, weights, point, room):
    """Looks at the start; an index into `ENDS`."""
    point.status[:] = 0.0
    point.status[VALUE], _ = evaluate(net, point.z, point.q, weights, point.given, point.z[:0], point.tables, room.axes)
    point.status[SHIFT], point.status[MARK], point.status[RESIDUAL] = FIRST_SHIFT, point.status[VALUE], np.inf
    return GOING if np.isfinite(point.status[VALUE]) else STALLED


@njit(**CALLED)
def step(net, blocks, weights, tolerance, limit, patience, point, room):
    """One Newton step, or the end: an index into `ENDS`."""
    status = point.status
    if _slow(status, patience):
        return SLOW_END
    for e in range(point.q.size):
        point.q[e] = sigmoid(point.z[2 * point.q.size + e])
    derivatives(net, blocks, point.z, point.q, weights, point.tables, room)
    _hold(blocks, point, room)
    largest = _largest(blocks, room)
    if not largest < np.inf:
        return STALLED
    status[RESIDUAL] = largest
    if status[RESIDUAL] < tolerance:
        return GRADIENT
    if status[STEPS] >= limit:
        return LIMIT
    status[STEPS] += 1
    rise = _direction(blocks, status, room)
    value, length = _search(net, blocks.place, weights, point, room, rise)
    if value == -np.inf:
        status[SHIFT] *= 100.0
        return STALLED if status[SHIFT] > 1e8 else GOING
    gain = value - status[VALUE]
    copy_into(point.z, room.trial)
    copy_into(point.tables, room.found)
    status[VALUE] = value
    if length == 1.0:
        status[SHIFT] = max(0.2 * status[SHIFT], 1e-12)
    elif length < 0.2:
        status[SHIFT] = min(4.0 * status[SHIFT], 1e6)
    status[FLATS] = status[FLATS] + 1 if gain < FLAT * (1.0 + abs(value)) else 0
    return FLAT_END if status[FLATS] >= FLAT_STEPS else GOING


@njit(**ONCE)
def _largest(blocks, room):
    """Of the gradient's entries; infinite where one of them or of the matrix is not finite."""
    largest, size = 0.0, room.matrix.size // blocks.rows.size
    for slope in room.gradient:
        if not abs(slope) < np.inf:
            return np.inf
        largest = max(largest, abs(slope))
    for spot in blocks.pairs:  # the others are fill
        for at in range(size * max(spot, 0), size * (spot + 1)):
            if not abs(room.matrix[at]) < np.inf:
                return np.inf
    return largest


@njit(**ONCE)
def _slow(status, patience):
    """At every `SLOW_STEPS`-th step: whether those since the last time gained next to nothing."""
    if status[STEPS] % SLOW_STEPS:
        return False
    value, gain = status[VALUE], status[VALUE] - status[MARK]
    status[MARK] = value
    return status[STEPS] >= patience and gain < SLOW * (1.0 + abs(value))


@njit(**ONCE)
def _hold(blocks, point, room):
    """Logits that are far out and pushed outwards stay where they are: their equation becomes x = 0."""
    edges, gradient, matrix = point.q.size, room.gradient, room.matrix
    held = room.where
    some = False
    for e in range(edges):
        at = blocks.place[e]
        logit = point.z[2 * edges + e]
        held[at] = not (abs(logit) <= FAR_LOGIT or gradient[3 * at + 2] * logit < 0.0)
        if held[at]:
            some, gradient[3 * at + 2] = True, 0.0
    if not some:
        return
    for k in range(edges):
        for t in range(blocks.first[k], blocks.first[k + 1]):
            for i in range(3):
                if held[k]:
                    matrix[12 * t + 8 + i] = 0.0
                if held[blocks.rows[t]]:
                    matrix[12 * t + 4 * i + 2] = 0.0
        if held[k]:
            matrix[12 * blocks.first[k] + 10] = 1.0


@njit(**ONCE)
def _direction(blocks, status, room):
    """Writes (A + λD)⁻¹ times the gradient, with A minus the Hessian and D = |diag A|, no longer than steps may be,
    into `room.move`; λ rises until the matrix is positive definite. Returns the slope along it."""
    number = blocks.place.size
    b = room.gradient.size // number
    lead = lanes(b)
    while True:
        copy_into(room.factor, room.matrix)
        for k in range(number):
            for i in range(b):
                at = b * lead * blocks.first[k] + i * (lead + 1)
                room.factor[at] += status[SHIFT] * max(abs(room.matrix[at]), 1e-8)
        if factorise(blocks.first, blocks.rows, b, room.factor, room.columns, room.where):
            break
        status[SHIFT] = max(4.0 * status[SHIFT], 1e-6)
    for k in range(number):
        for i in range(lead):
            room.solution[lead * k + i] = room.gradient[b * k + i] if i < b else 0.0
    solve(blocks.first, blocks.rows, b, room.factor, room.solution)
    for k in range(number):
        for i in range(b):
            room.move[b * k + i] = room.solution[lead * k + i]
    longest = 1.0
    for k in range(room.move.size):
        longest = max(longest, abs(room.move[k]) / (ANGLE_STEP if k % b < 2 else LOGIT_STEP))
    rise = 0.0
    for k in range(room.move.size):
        room.move[k] /= longest
        rise += room.move[k] * room.gradient[k]
    return rise


@njit(**ONCE)
def _search(net, place, weights, point, room, rise):
    """Writes the first point along the move that gains enough into `room.trial`. Returns the objective there, -inf
    where there is none, and the share of the move."""
    number = place.size
    b = room.move.size // number
    length = 1.0
    for _ in range(TRIALS):
        for e in range(number):
            for i in range(b):
                to = 2 * e + i if i < 2 else 2 * number + e
                room.trial[to] = point.z[to] + length * room.move[place[e] * b + i]
        value, share = evaluate(net, room.trial, point.q, weights, point.given, point.tables, room.found, room.axes)
        if value >= point.status[VALUE] + SUFFICIENT * length * rise:
            return value, length
        length *= share
    return -np.inf, length
