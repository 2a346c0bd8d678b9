"""Coordinate ascent of mean field on a Forney model, all edges of one colour at a time.

log Z_MF = max_q Σ_a Σ_x q_a(x) log f_a(x) + Σ_e H(q_e) <= log Z with q_a = Π q_e; the maximum in one q_e has

    logit q_e(1) = Σ over both ends of E[log f | x_e = 1] - E[log f | x_e = 0].
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from spinbench.api import Array, ForneyModel, Namespace, Precision
from spinbench.foundation.arithmetic import take
from spinbench.mathematics.graphs.colouring import colouring
from spinbench.methods.gauge.ascent.derivatives import FloatArray, IntArray, slot_products

# Stands for log 0 during the iteration: exp(FLOOR) is far below rounding, also in Z. Where finite entries are as low as
# that, log 0 is `DEEPER` times the lowest. `bound` evaluates the tables with their exact zeros.
FLOOR, DEEPER = -1e5, 4.0
# Where tables have zeros, q within this distance of 0 or 1 is set to 0 or 1: any remaining weight on a zero would make
# the bound -∞.
CERTAIN = 1e-12

# Converged when no probability changes by more in a sweep: the bound is stationary in q, so that its error is of second
# order.
TOLERANCE = 1e-9


class Slot(NamedTuple):
    """The nodes of one degree whose slot k has an edge of one colour.

    Attributes:
        others: (m, d - 1) the nodes' other edges.
        gains: (2**(d-1), m, 1) log f(x_k = 1) - log f(x_k = 0).
    """

    others: IntArray
    gains: FloatArray


class Colour(NamedTuple):
    """Edges that share no node.

    Attributes:
        edges: (c,).
        slots: all of their ends.
        ends: (2, c) where the two ends of each edge stand in the rows of `slots`, one after the other.
    """

    edges: IntArray
    slots: tuple[Slot, ...]
    ends: IntArray


class Node(NamedTuple):
    """The nodes of one degree: edges (d, n) and log tables (2**d, n, 1), `FLOOR` or lower at zeros."""

    edges: IntArray
    log_tables: FloatArray


class FieldTables(NamedTuple):
    """What the iteration needs of a model.

    Attributes:
        colours: partition the edges.
        nodes: by degree.
        constant: () log_constant.
    """

    colours: tuple[Colour, ...]
    nodes: tuple[Node, ...]
    constant: FloatArray


def field_tables(model: ForneyModel) -> FieldTables:
    """The tables of `sweep` and `value`."""
    log_tables = _finite_logs(model)
    colour_of = _edge_colours(model)
    colours = []
    for c in range(int(colour_of.max(initial=-1)) + 1):
        slots, owners = [], []
        for group, logs in zip(model.groups, log_tables, strict=True):
            for k in range(group.degree):
                rows = np.flatnonzero(colour_of[group.edges[:, k]] == c)
                if not len(rows):
                    continue
                split = logs[rows].reshape(len(rows), 2**k, 2, -1)
                gains = (split[:, :, 1] - split[:, :, 0]).reshape(len(rows), -1)
                slots.append(Slot(np.delete(group.edges[rows], k, axis=1), np.ascontiguousarray(gains.T)[..., None]))
                owners.append(group.edges[rows, k])
        ends = np.argsort(np.concatenate(owners), kind="stable").reshape(-1, 2).T
        colours.append(Colour(np.flatnonzero(colour_of == c), tuple(slots), ends))
    nodes = tuple(Node(g.edges.T, logs.T[..., None]) for g, logs in zip(model.groups, log_tables, strict=True))
    return FieldTables(tuple(colours), nodes, np.array(model.log_constant))


def sweep(
    tables: FieldTables, q: Array, xp: Namespace = np, update: Callable[[Array, Array, Array], Array] | None = None
) -> Array:
    """q (E, R) after one update of every edge.

    Args:
        tables: of the model.
        q: q_e(1), R runs side by side.
        xp: array namespace.
        update: (array, index, rows) -> a copy with array[index] = rows; NumPy's by default.
    """
    put = update or _replace_rows
    for colour in tables.colours:
        pulls = []
        for slot in colour.slots:
            # Axes of `expected`: (2**j, m, R), over the j edges that are not summed yet.
            expected = slot.gains
            for k in range(slot.others.shape[1]):
                other_q = xp.take(q, slot.others[:, k], axis=0)
                half = expected.shape[0] // 2
                expected = (1.0 - other_q) * expected[:half, ...] + other_q * expected[half:, ...]
            pull = expected[0, ...]
            pulls.append(pull if pull.shape[1] == q.shape[1] else xp.broadcast_to(pull, (pull.shape[0], q.shape[1])))
        pull = xp.concat(pulls)
        field = xp.take(pull, colour.ends[0, :], axis=0) + xp.take(pull, colour.ends[1, :], axis=0)
        # In float32 the exponential overflows, and its inverse is the correct 0.
        with np.errstate(over="ignore"):
            q = put(q, colour.edges, 1.0 / (1.0 + xp.exp(-xp.clip(field, -700.0, 700.0))))
    return q


def value(tables: FieldTables, q: Array, xp: Namespace = np, precision: Precision = "float64") -> Array:
    """(R,) the bound at q (E, R) to the backend's rounding, with finite entries for zeros: for comparisons."""
    smallest = float(np.finfo(precision).tiny)
    p = xp.clip(q, smallest, 1.0)
    r = xp.clip(1.0 - q, smallest, 1.0)
    total = tables.constant - xp.sum(p * xp.log(p) + r * xp.log(r), axis=0)
    for node in tables.nodes:
        weights = slot_products(take(xp, q, node.edges), xp)
        total = total + xp.sum(weights * node.log_tables, axis=(0, 1))
    return total


def bound(model: ForneyModel, q: FloatArray) -> float:
    """The bound at q (E,) on the tables as they are, to rounding in float64; -inf where q has weight on a zero."""
    p, r = q[q > 0], 1.0 - q[q < 1]
    total = model.log_constant - float((p * np.log(p)).sum() + (r * np.log(r)).sum())
    for group in model.groups:
        weights = slot_products(q[group.edges].T).T
        total += float(weights[weights > 0] @ group.log_tables[weights > 0])
    return total


def round_near_certain(model: ForneyModel, q: FloatArray) -> FloatArray:
    """q (E,) as it is, or 0 and 1 where it is next to them and the model has zeros, which allow no rest of weight."""
    if model.has_zeros:
        return np.where(q < CERTAIN, 0.0, np.where(q > 1.0 - CERTAIN, 1.0, q))
    return q


def ascend(
    tables: FieldTables, q: FloatArray, tolerance: float = TOLERANCE, limit: int = 1000
) -> Iterator[tuple[FloatArray, float]]:
    """(q, largest change) after each sweep, until it is below the tolerance."""
    for _ in range(limit):
        fresh = sweep(tables, q)
        change = float(np.abs(fresh - q).max(initial=0.0))
        q = fresh
        yield q, change
        if change < tolerance:
            return


def _finite_logs(model: ForneyModel) -> list[FloatArray]:
    """Log tables by degree, with finite entries for zeros, below all others."""
    tables = [group.log_tables for group in model.groups]
    lowest = min([float(logs[logs > -np.inf].min(initial=0.0)) for logs in tables], default=0.0)
    return [np.where(logs > -np.inf, logs, min(FLOOR, DEEPER * lowest)) for logs in tables]


def _replace_rows(q: FloatArray, index: IntArray, rows: FloatArray) -> FloatArray:
    q = q.copy()
    q[index] = rows
    return q


def _edge_colours(model: ForneyModel) -> IntArray:
    """(E,) colours of edges, those at a node all different."""
    pairs = [
        np.stack([group.edges[:, k], group.edges[:, m]], axis=1)
        for group in model.groups
        for k in range(group.degree)
        for m in range(k + 1, group.degree)
    ]
    if not pairs:
        return np.zeros(model.num_edges, dtype=np.int64)
    return colouring(model.num_edges, np.unique(np.sort(np.concatenate(pairs), axis=1), axis=0))
