"""Gauge transformations of Forney models, and their exact contraction.

Gauges (Ahn, Chertkov and Shin, "Gauging Variational Inference", NIPS 2017): every edge ab carries two 2 × 2 matrices
with G_abᵀ G_ba = I. The tables

    f_{a,G}(x) = Σ_x' f_a(x') Π_b G_ab(x_ab, x'_ab)

have Σ_x Π_a f_{a,G}(x_a) = Z for every G; entries may be negative. The matrices come from two angles an edge, one
for each end; with u the end's own angle, v that of the opposite end and c = cos(u - v) > 0,

    G = c^(-1/2) [[cos u, sin u], [-sin v, cos v]],   det G = 1,

the identity at u = v = 0. This reaches all gauges of positive determinant, up to diagonal factors that cancel
between the two ends; `ForneyModel.relabel` reaches the others.

Angles are stored as (E, 2), one column a side, and indexed flat, 2·edge + side, by `DegreeGroup.own` and `.other`.
Tables are flat, (..., 2**d) with the first edge slowest, and d is the last length of the angles (..., d) given with
them. Derivatives: `spinbench.methods.gauge.ascent.derivatives`. These functions take the array namespace as `xp` and
broadcast over leading axes; they neither branch on values nor write in place, so that they can be compiled.

Contraction merges nodes and sums the edges between them. The sum of non-negative terms is at least any one of them, so
no variational bound that keeps some of the terms gets worse when nodes merge, and most get tighter; tables grow as
2**degree.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.errors import ModelError, UnsupportedError
from spinbench.models.forney.build import network_from_model
from spinbench.models.forney.model import MAX_DEGREE, FloatArray, ForneyModel

if TYPE_CHECKING:
    from spinbench.api import Array, Namespace


def matrices(near: Array, other: Array, xp: Namespace = np) -> Array:
    """G[new state, old state], (..., 2, 2), from the angles (...) of the two ends, |own - other| < π/2."""
    scale = 1.0 / xp.sqrt(xp.cos(near - other))
    entries = [xp.cos(near) * scale, xp.sin(near) * scale, -xp.sin(other) * scale, xp.cos(other) * scale]
    return xp.stack(entries, axis=-1).reshape(*near.shape, 2, 2)


def apply_all(tables: Array, matrix: Array, xp: Namespace = np) -> Array:
    """Tables (..., 2**d) with the axis of every slot multiplied by its matrix, (..., d, 2, 2)."""
    degree = matrix.shape[-3]
    entries = _entries(degree)
    same, crossed = _by_entry(matrix, entries.ones, xp)
    for k in range(degree):
        tables = same[..., k, :] * tables + crossed[..., k, :] * xp.take(tables, entries.partner[k], axis=-1)
    return tables


def transform(tables: Array, near: Array, other: Array, xp: Namespace = np) -> Array:
    """f_{a,G}, (..., 2**d), of tables (..., 2**d) under angles (..., d)."""
    if near.shape[-1]:
        return apply_all(tables, matrices(near, other, xp), xp)
    return tables


class _Entries(NamedTuple):
    """Of tables of d slots.

    Attributes:
        ones: (d, 2**d) float64, x_k of each entry.
        partner: (d, 2**d) the entry with x_k flipped.
    """

    ones: FloatArray
    partner: npt.NDArray[np.int64]


@lru_cache(maxsize=32)
def _entries(degree: int) -> _Entries:
    places = 1 << np.arange(degree - 1, -1, -1)[:, None]
    index = np.arange(2**degree)
    return _Entries(((index & places) > 0).astype(np.float64), index ^ places)


def _by_entry(matrix: Array, ones: FloatArray, xp: Namespace) -> tuple[Array, Array]:
    """(..., d, 2**d) coefficients of f(x) and of f(x with x_k flipped), for matrices (..., d, 2, 2)."""
    high = ones > 0
    same = xp.where(high, matrix[..., 1, 1][..., None], matrix[..., 0, 0][..., None])
    crossed = xp.where(high, matrix[..., 1, 0][..., None], matrix[..., 0, 1][..., None])
    return same, crossed


def contract(model: ForneyModel, degree_limit: int = 2, seed: int = 0, attempts: int = 16) -> ForneyModel:
    """The model with nodes of degree <= 2 absorbed, and others merged while degrees stay within the limit.

    Merging is greedy: the pair of neighbours whose degree grows the least, up to noise, goes first. The attempt that
    leaves the fewest edges is taken. log Z and the readouts of variables are kept; all edges between two merged nodes
    are summed at once.

    Args:
        model: the model.
        degree_limit: largest degree of a merged node; 2 and less only absorb. Nodes that are larger already stay.
        seed: of the noise.
        attempts: how many orders are tried.

    Raises:
        UnsupportedError: a limit above `forney.MAX_DEGREE`.
        ModelError: a negative limit, no attempts, or Z = 0.
    """
    if degree_limit > MAX_DEGREE:
        raise UnsupportedError(
            f"{model.name}: nodes were to be merged up to degree {degree_limit}; tables have 2**degree entries and at "
            f"most {MAX_DEGREE} is allowed"
        )
    if degree_limit < 0 or attempts < 1:
        raise ModelError(
            f"{model.name}: degree_limit = {degree_limit} and attempts = {attempts}; at least 0 and 1 are needed"
        )
    network = network_from_model(model)
    # Merging a node of degree 1 or 2 makes no table larger, so that these are merged whatever the limit.
    for a, b in absorption(network.slots)[0]:
        network.merge_nodes(a, b)
    if degree_limit > 2:
        slots = {a: tuple(s) for a, s in network.slots.items()}
        orders = [_order(slots, degree_limit, np.random.default_rng([seed, k])) for k in range(attempts)]
        for a, b in min(orders, key=lambda order: order[0])[1]:
            network.merge_nodes(a, b)
    return network.model(model.num_variables)


class _Graph:
    """Nodes that merge, without their tables.

    Attributes:
        at: {node: its edges}; nodes without edges are left out at first.
        ends: {edge: its two nodes}.
    """

    def __init__(self, slots: Mapping[int, Iterable[int]]) -> None:
        self.at = {a: members for a, edges in slots.items() if (members := set(edges))}
        self.ends: dict[int, set[int]] = {}
        for a, edges in self.at.items():
            for e in edges:
                self.ends.setdefault(e, set()).add(a)

    def neighbours(self, node: int) -> set[int]:
        """The nodes next to one."""
        return {end for e in self.at[node] for end in self.ends[e]} - {node}

    def merge(self, a: int, b: int) -> None:
        """Nodes a and b become one, named a, without the edges between them."""
        shared = self.at[a] & self.at[b]
        for e in shared:
            del self.ends[e]
        for e in self.at[b] - shared:
            self.ends[e] = (self.ends[e] - {b}) | {a}
        self.at[a] = (self.at[a] | self.at[b]) - shared
        del self.at[b]


def absorption(slots: Mapping[int, Iterable[int]]) -> tuple[list[tuple[int, int]], int]:
    """How nodes of degree 1 and 2 merge into the smaller of their neighbours.

    Args:
        slots: {node: its edges}, no self loops.

    Returns:
        Pairs (kept, absorbed), to merge one after the other, and the number of edges that are left.
    """
    graph = _Graph(slots)
    waiting = [a for a, edges in graph.at.items() if len(edges) <= 2]
    merged = []
    while waiting:
        a = waiting.pop()
        if a not in graph.at or not 0 < len(graph.at[a]) <= 2:
            continue
        b = min(graph.neighbours(a), key=lambda node: (len(graph.at[node]), node))
        graph.merge(b, a)
        merged.append((b, a))
        waiting.append(b)
    return merged, len(graph.ends)


def _order(
    slots: dict[int, tuple[int, ...]], limit: int, rng: np.random.Generator
) -> tuple[tuple[int, int], list[tuple[int, int]]]:
    """((edges left, entries of the tables left), pairs to merge one after the other), by the graph alone."""
    graph = _Graph(slots)
    at, ends = graph.at, graph.ends
    version = dict.fromkeys(at, 0)
    heap: list[tuple[float, int, int, int, int]] = []

    def push(a: int, b: int) -> None:
        shared = len(at[a] & at[b])
        degree = len(at[a]) + len(at[b]) - 2 * shared
        if degree <= limit:
            # Growth of the larger node, with noise, so that each attempt breaks ties differently.
            cost = degree - max(len(at[a]), len(at[b])) + rng.random()
            heapq.heappush(heap, (cost, a, b, version[a], version[b]))

    for a, edges in at.items():
        for b in {end for e in edges for end in ends[e] if end > a}:
            push(a, b)
    merged = []
    while heap:
        _, a, b, seen_a, seen_b = heapq.heappop(heap)
        # Outdated entry of the heap: one of the two nodes has been merged since.
        if version.get(a) != seen_a or version.get(b) != seen_b:
            continue
        merged.append((a, b))
        graph.merge(a, b)
        del version[b]
        version[a] += 1
        for near in graph.neighbours(a):
            push(a, near)
    return (len(ends), sum(2 ** len(edges) for edges in at.values())), merged
