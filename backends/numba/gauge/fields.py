"""Coordinate ascent of mean field on a Forney model, by the rules of `spinbench.methods.gauge.ascent.mean_field`."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from spinbench.backends.numba.exact.options import CALLED, ONCE
from spinbench.backends.numba.gauge.network import Network, flat, network_of
from spinbench.methods.gauge.ascent import mean_field
from spinbench.models.forney.model import ForneyModel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


class Field(NamedTuple):
    """A model as sweeps read it.

    Attributes:
        net: its graph.
        order: (E,) edges as they are updated.
        ends: (E, 2) the two slots of each edge.
        node: of each slot.
        logs: log tables, finite.
        room: for the largest table.
        constant: log_constant.
    """

    net: Network
    order: IntArray
    ends: IntArray
    node: IntArray
    logs: FloatArray
    room: FloatArray
    constant: float


def field_of(model: ForneyModel) -> Field:
    """Of a model, whose zeros get the logarithms that they have in `mean_field`."""
    net = network_of(model)
    ends = np.argsort(net.own, kind="stable").reshape(-1, 2)
    order = np.argsort(mean_field.edge_colours(model), kind="stable")
    node = np.repeat(np.arange(len(net.degree)), net.degree)
    room = np.empty(2 ** int(net.degree.max(initial=0)))
    logs = flat(mean_field.finite_logs(model))
    return Field(net, order, ends, node, logs, room, model.log_constant)


@njit(**CALLED)
def sweeps(field, q, tolerance, most, last):
    """At most so many sweeps over q (R, E) of runs whose last sweep changed more than the tolerance.

    Args:
        field: the model.
        q: overwritten.
        tolerance: at which a run ends.
        most: sweeps.
        last: (R,) the largest change of each run's last sweep, at first infinite; overwritten.

    Returns:
        The number of sweeps.
    """
    for done in range(most):
        going = False
        for r in range(len(q)):
            if last[r] > tolerance:
                going, last[r] = True, _sweep(field, q[r])
        if not going:
            return done
    return most


@njit(**ONCE)
def _sweep(field, q):
    """Updates every edge once; the largest change."""
    change = 0.0
    for e in field.order:
        pull = _gain(field, field.ends[e, 0], q) + _gain(field, field.ends[e, 1], q)
        fresh = 1.0 / (1.0 + math.exp(-min(max(pull, -700.0), 700.0)))
        change = max(change, abs(fresh - q[e]))
        q[e] = fresh
    return change


@njit(error_model="numpy")
def _gain(field, slot, q):
    """E[log f | x = 1] - E[log f | x = 0] of the edge of a slot."""
    net, a, room = field.net, field.node[slot], field.room
    d, first = net.degree[a], net.slot[a]
    flip = 1 << (d - 1 - (slot - first))
    count = 0
    for x in range(1 << d):
        if not x & flip:
            at = net.table[a] + x
            room[count] = field.logs[at + flip] - field.logs[at]
            count += 1
    for k in range(first, first + d):
        if k != slot:
            one, count = q[net.own[k] // 2], count // 2
            for x in range(count):
                room[x] = (1.0 - one) * room[x] + one * room[x + count]
    return room[0]


@njit(**CALLED)
def values(field, q, found):
    """Writes the bounds (R,) at q (R, E), for comparisons."""
    smallest, net = np.finfo(np.float64).tiny, field.net
    for r in range(len(q)):
        total = field.constant
        for one in q[r]:
            p, rest = max(one, smallest), max(1.0 - one, smallest)
            total -= p * math.log(p) + rest * math.log(rest)
        for a in range(net.degree.size):
            count = 1 << net.degree[a]
            for x in range(count):
                field.room[x] = field.logs[net.table[a] + x]
            for k in range(net.slot[a], net.slot[a] + net.degree[a]):
                one, count = q[r, net.own[k] // 2], count // 2
                for x in range(count):
                    field.room[x] = (1.0 - one) * field.room[x] + one * field.room[x + count]
            total += field.room[0]
        found[r] = total
