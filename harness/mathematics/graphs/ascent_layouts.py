"""Host tables for coordinate ascent over factor graphs: which variables are updated together, and from what.

Variables of one chunk share no factor (a colouring), so updating them together is updating them one after another.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from spinbench.mathematics.graphs.colouring import colouring
from spinbench.mathematics.graphs.message_layouts import FloatArray, Graph, IntArray, scopes
from spinbench.mathematics.graphs.sweep_layouts import cut_classes

# Largest number of entries that a chunk gathers, 8 MB, unless a single variable has more.
MAX_GATHER = 2**20


class Neighbours(NamedTuple):
    """The pairs of each binary variable; those of v are entries start[v] … start[v] + degree[v] - 1.

    Attributes:
        weights: (2E + 1,) float64, the last 0.
        others: (2E + 1,) int64.
        start, degree: (n,) int64.
        window: (D,) int64, 0 … D - 1 with D the largest degree.
    """

    weights: FloatArray
    others: IntArray
    start: IntArray
    degree: IntArray
    window: IntArray


class Entries(NamedTuple):
    """Factors of one shape as the variable on their first axis sees them; counted as in `Neighbours`.

    Attributes:
        tables: (m + 1, K, K_1, …, K_d) float64 log tables, 0 at hard zeros; the last all 0.
        zeros: (m + 1, K, K_1, …, K_d) float64, 1 at hard zeros; () where no factor of the shape has any.
        others: (d, m + 1) int64, the variables on the other axes.
        start, degree: (n,) int64.
        window: (D,) int64.
    """

    tables: FloatArray
    zeros: FloatArray | tuple[()]
    others: IntArray
    start: IntArray
    degree: IntArray
    window: IntArray


class Ascent(NamedTuple):
    """Everything that a sweep of updates needs.

    Attributes:
        fields: (n, K) float64, θ of each state, -inf beyond a variable's own states; K the largest number of them.
        chunks: (B, w) int64, variables that are updated together; the first repeated where there are fewer.
        neighbours: the pairs, or () without any.
        entries: all other factors.
        states: (S,) int64, place of each state of each variable in an array (n · K,).
        rows: (n, K) int64, the row of each state, R for the first states and beyond a variable's own.
    """

    fields: FloatArray
    chunks: IntArray
    neighbours: Neighbours | tuple[()]
    entries: tuple[Entries, ...]
    states: IntArray
    rows: IntArray


def ascent(graph: Graph) -> Ascent:
    """The tables of a lowered model."""
    n, cards = len(graph.first), graph.cardinalities
    width = int(cards.max(initial=1))
    fields = np.where(np.arange(width) < cards[:, None], 0.0, -np.inf)
    variable = graph.variable
    within = np.arange(len(graph.theta)) - graph.first[variable] + 1
    fields[variable, within] = graph.theta
    rows = np.full((n, width), len(graph.theta))
    rows[variable, within] = np.arange(len(graph.theta))
    neighbours = _neighbours(graph) if len(graph.pairs.weights) else ()
    entries = _entries(graph)
    degree = max((len(part.window) for part in (*entries, neighbours) if part), default=1)
    return Ascent(
        fields=fields,
        chunks=_chunks(graph, max(1, MAX_GATHER // max(degree, 1))),
        neighbours=neighbours,
        entries=entries,
        states=np.flatnonzero(np.arange(width) < cards[:, None]),
        rows=rows,
    )


def _neighbours(graph: Graph) -> Neighbours:
    n = len(graph.first)
    ends = graph.variable[graph.pairs.rows]
    of, other = ends.ravel(), ends[::-1].ravel()
    order = np.argsort(of, kind="stable")
    weights = np.tile(graph.pairs.weights, 2)[order]
    return Neighbours(np.append(weights, 0.0), np.append(other[order], 0), *_spans(of, n))


def _entries(graph: Graph) -> tuple[Entries, ...]:
    """Each factor once for every one of its variables."""
    collected: dict[tuple[int, ...], list[tuple[IntArray, FloatArray]]] = {}
    for group in graph.groups:
        members = graph.variable[group.rows.T]
        for axis in range(members.shape[1]):
            tables = np.moveaxis(group.log_tables, axis + 1, 1)
            rotated = np.concatenate([members[:, axis : axis + 1], np.delete(members, axis, axis=1)], axis=1)
            collected.setdefault(tables.shape[1:], []).append((rotated, tables))
    entries = []
    for parts in collected.values():
        members = np.concatenate([part[0] for part in parts])
        tables = np.concatenate([part[1] for part in parts])
        order = np.argsort(members[:, 0], kind="stable")
        members, tables = members[order], np.concatenate([tables[order], np.zeros_like(tables[:1])])
        hard = np.isneginf(tables)
        others = np.concatenate([members[:, 1:], np.zeros_like(members[:1, 1:])]).T
        entries.append(
            Entries(
                np.where(hard, 0.0, tables),
                hard.astype(np.float64) if hard.any() else (),
                np.ascontiguousarray(others),
                *_spans(members[:, 0], len(graph.first)),
            )
        )
    return tuple(entries)


def _spans(of: IntArray, n: int) -> tuple[IntArray, IntArray, IntArray]:
    """start, degree and window of entries that are sorted by their variables."""
    degree = np.bincount(of, minlength=n)
    return np.cumsum(degree) - degree, degree, np.arange(int(degree.max(initial=0)))


def _chunks(graph: Graph, max_width: int) -> IntArray:
    """(B, w) colour classes, cut into pieces of equal width that repeat at most as many variables as there are."""
    n = len(graph.first)
    if not n:
        return np.zeros((0, 1), dtype=np.int64)
    ends = [np.zeros((0, 2), dtype=np.int64)]
    for members, _ in scopes(graph).values():
        ends += [members[:, pair] for pair in itertools.combinations(range(members.shape[1]), 2)]
    edges = np.sort(np.concatenate(ends), axis=1)
    codes = np.unique(edges[:, 0] * n + edges[:, 1])
    colours = colouring(n, np.stack([codes // n, codes % n], axis=1))
    return np.asarray(np.argsort(colours, kind="stable")[cut_classes(np.bincount(colours), max_width)])
