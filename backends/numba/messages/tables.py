"""Flat tables of factors for compiled message passing and mean field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.backends.numba.simd import Array
from spinbench.mathematics.graphs.factor_tables import starts_of
from spinbench.mathematics.graphs.message_layouts import Graph, factors

# Smallest log of products in the linear domain: below exp(-87) float32 numbers lose digits, below exp(-708) float64
# numbers.
LOWEST = {"float32": -60.0, "float64": -600.0}
# Column numbers of `Factors.slots`.
VARIABLE, ROW, CARD, MESSAGE, STRIDE, FACTOR, EARLIER, LATER = range(8)
# Column numbers of `Factors.factors`.
START, TABLE = range(2)


class Factors(NamedTuple):
    """All factors with flat tables; a *slot* is a place of a variable in a factor.

    Attributes:
        slots: (S, 8) int64: variable, its first row and number of states, first entry of the factor's message to it,
            stride of its axis in the table, factor, and whether the factor has variables of lower, of higher index.
        factors: (F + 1, 2) int64, where the slots and the table of each factor begin.
        scales: (F, 2) real, the smallest finite entry of the log table, and the weight ρ.
        logs, values: (T,) real, log tables, the largest entry of each 0, and their exponentials.
        variables: (n + 1, 2) int64, first row, and where a variable's entries in `at` begin.
        at: (S,) int64, slots by variable.
        theta: (R,) real.
        limit: `LOWEST` of the precision.
        floor: of messages, see `message_layouts.Graph`.
    """

    slots: Array
    factors: Array
    scales: Array
    logs: Array
    values: Array
    variables: Array
    at: Array
    theta: Array
    limit: float
    floor: float


class Work(NamedTuple):
    """Work space of one message: cavities p and where each begins; out (2 K,), see `schedules`."""

    p: Array
    begin: Array
    out: Array


class Queue(NamedTuple):
    """Of the residual schedule: proposed messages (M,); a heap of slots, each one's place in it, and priorities (S,).

    Of one chain, or of all (r, …).
    """

    fresh: Array
    heap: Array
    place: Array
    priority: Array


def make_factors(graph: Graph, real: npt.DTypeLike) -> Factors:
    """The tables of a lowered model; all weights are 1."""
    columns, orders, sizes, logs, lowest = [], [], [], [], []
    for members, entries, tables in _pieces(graph):
        shape = np.array(tables.shape[1:])
        strides = np.append(np.cumprod(shape[:0:-1])[::-1], 1)
        column = np.empty((*members.shape, 8), dtype=np.int64)
        column[..., VARIABLE], column[..., ROW], column[..., MESSAGE] = members, graph.first[members], entries
        column[..., CARD], column[..., STRIDE] = shape, strides
        # A factor sends to all its variables but the lowest in the forward sweep, and to all but the highest in the
        # backward sweep.
        column[..., EARLIER] = members > members.min(axis=1, keepdims=True)
        column[..., LATER] = members < members.max(axis=1, keepdims=True)
        columns.append(column.reshape(-1, 8))
        orders.append(np.full(len(members), len(shape)))
        sizes.append(np.full(len(members), shape.prod()))
        flat = tables.reshape(len(tables), -1)
        logs.append(flat.ravel())
        # Zeros are left out of the minimum: they are -∞ in the log domain and exact in the linear domain, and do not
        # underflow.
        lowest.append(np.where(flat > -np.inf, flat, 0.0).min(axis=1))
    slots = np.concatenate([np.empty((0, 8), dtype=np.int64), *columns])
    order = np.concatenate([np.zeros(0, dtype=np.int64), *orders])
    slots[:, FACTOR] = np.repeat(np.arange(len(order)), order)
    flat = np.concatenate([np.zeros(0), *logs])
    low = np.concatenate([np.zeros(0), *lowest])
    degrees = np.bincount(slots[:, VARIABLE], minlength=len(graph.first))
    return Factors(
        slots=slots,
        factors=np.stack([starts_of(order), starts_of(np.concatenate([np.zeros(0, dtype=np.int64), *sizes]))], axis=1),
        scales=np.stack([low, np.ones(len(low))], axis=1).astype(real),
        logs=flat.astype(real),
        values=np.exp(flat).astype(real),
        variables=np.stack([np.append(graph.first, len(graph.theta)), starts_of(degrees)], axis=1),
        at=np.argsort(slots[:, VARIABLE], kind="stable"),
        theta=np.asarray(graph.theta).astype(real),
        limit=LOWEST[np.dtype(real).name],
        floor=float(graph.floor),
    )


def reweight(factors: Factors, weights: Array) -> Factors:
    """The factors of tree-reweighted message passing: log tables divided by ρ, messages counted ρ times.

    Args:
        factors: with weights of 1.
        weights: (F,) ρ.
    """
    real = factors.logs.dtype
    logs = factors.logs.astype(np.float64) / np.repeat(weights, np.diff(factors.factors[:, TABLE]))
    scales = np.stack([factors.scales[:, 0] / weights, weights], axis=1)
    return factors._replace(
        logs=logs.astype(real),
        values=np.exp(logs).astype(real),
        scales=scales.astype(real),
        # Tables are divided by ρ <= 1, so messages grow by up to 1 / ρ; the floor must stay below all of them.
        floor=factors.floor / float(weights.min(initial=1.0)),
    )


def work_space(factors: Factors) -> Work:
    """Large enough for any factor."""
    cards = factors.slots[:, CARD]
    states = np.bincount(factors.slots[:, FACTOR], cards).max(initial=1)
    order = np.diff(factors.factors[:, START]).max(initial=1)
    return Work(np.empty(int(states)), np.empty(order, dtype=np.int64), np.empty(2 * cards.max(initial=1)))


def _pieces(graph: Graph) -> Iterator[tuple[Array, Array, Array]]:
    """(members (n, d), message entries (n, d), log tables) of each group of factors, largest entries 0."""
    variable, start = graph.variable, 0
    for group in factors(graph):
        count, *sizes = group.log_tables.shape
        entries = []
        for size in sizes:
            entries.append(start + np.arange(count) * (size - 1))
            start += count * (size - 1)
        peaks = group.log_tables.max(axis=tuple(range(1, len(sizes) + 1)), keepdims=True)
        yield variable[group.rows.T], np.stack(entries, axis=1), group.log_tables - peaks
