"""Spanning forests of a graph, and the exact log Z of models on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spinbench.mathematics.graphs.message_layouts import FloatArray, IntArray


class Forest(NamedTuple):
    """A spanning forest, each of its trees with a root.

    Attributes:
        edges: (n - trees,) int64, indices of the graph's edges, ascending.
        order: (n,) int64, variables, every one after its parent.
        parent: (n,) int64, of each variable, -1 at roots.
        edge: (n,) int64, the edge to the parent, -1 at roots.
        depth: (n,) int64, 0 at roots.
    """

    edges: IntArray
    order: IntArray
    parent: IntArray
    edge: IntArray
    depth: IntArray


def maximum_forest(n: int, edges: IntArray, weights: FloatArray) -> Forest:
    """The spanning forest of largest weight; `edges` (E, 2) without parallel ones."""
    from scipy.sparse import csgraph, csr_array

    # Kruskal's algorithm of SciPy takes explicit zeros for absent edges.
    cost = 1.0 + (weights.max(initial=0.0) - weights)
    tree = csgraph.minimum_spanning_tree(csr_array((cost, (edges[:, 0], edges[:, 1])), shape=(n, n))).tocoo()
    codes = edges[:, 0] * n + edges[:, 1]
    order = np.argsort(codes)
    chosen = tree.row.astype(np.int64) * n + tree.col
    return root_forest(n, edges, np.sort(order[np.searchsorted(codes, chosen, sorter=order)]))


def root_forest(n: int, edges: IntArray, chosen: IntArray) -> Forest:
    """A forest of the chosen edges, searched breadth first from the lowest variable of each tree."""
    from scipy.sparse import csgraph, csr_array

    i, j = edges[chosen].T
    square = csr_array((np.ones(len(chosen)), (i, j)), shape=(n, n))
    count, label = csgraph.connected_components(square, directed=False)
    roots = np.zeros(count, dtype=np.int64)
    roots[label[::-1]] = np.arange(n - 1, -1, -1)
    # An extra vertex is joined to all roots, so that one search reaches every tree.
    rows, columns = np.concatenate([i, np.full(count, n)]), np.concatenate([j, roots])
    adjacency = csr_array((np.ones(len(rows)), (rows, columns)), shape=(n + 1, n + 1))
    order, parents = csgraph.breadth_first_order(adjacency, n, directed=False, return_predecessors=True)
    parent = np.asarray(parents[:n], dtype=np.int64)
    parent[parent == n] = -1
    edge = np.full(n, -1, dtype=np.int64)
    # Edges whose parent is j: i is their child.
    swapped = parent[i] == j
    edge[np.where(swapped, i, j)] = chosen
    return Forest(chosen, np.asarray(order[1:], dtype=np.int64), parent, edge, _depths(parent))


def _depths(parent: IntArray) -> IntArray:
    """Distance to the root by pointer jumping."""
    n = len(parent)
    jump = np.append(np.where(parent < 0, n, parent), n)
    depth = np.append(np.where(parent < 0, 0, 1), 0)
    while (jump != n).any():
        depth = depth + depth[jump]
        jump = jump[jump]
    return depth[:n]


def covering_forests(n: int, edges: IntArray) -> list[Forest]:
    """Spanning forests that together hold every edge: each has as many new ones as a forest can hold."""
    uncovered = np.ones(len(edges))
    forests: list[Forest] = []
    while not forests or uncovered.any():
        forests.append(maximum_forest(n, edges, uncovered))
        uncovered[forests[-1].edges] = 0.0
    return forests


def forest_log_z(edges: IntArray, forests: Sequence[Forest], nodes: FloatArray, tables: FloatArray) -> FloatArray:
    """(T,) log Z of exp(Σ_v nodes_v(x_v) + Σ_e tables_e(x_i, x_j)), edges those of each forest.

    Args:
        edges: (E, 2).
        forests: T of them.
        nodes: (n, K) log weights, -inf where a variable has fewer states.
        tables: (E, K, K) log weights, finite or -inf.
    """
    count, n = len(forests), len(nodes)
    total = np.repeat(nodes[None], count, axis=0)
    depth = np.stack([forest.depth for forest in forests])
    tree, child = np.nonzero(depth > 0)
    # From the deepest level up, for all trees at once: nodes of one level do not depend on each other.
    order = np.argsort(-depth[tree, child], kind="stable")
    tree, child = tree[order], child[order]
    levels = np.flatnonzero(np.diff(depth[tree, child])) + 1
    edge = np.stack([forest.edge for forest in forests])[tree, child]
    parent = np.stack([forest.parent for forest in forests])[tree, child]
    for t, c, e, p in zip(*(np.split(part, levels) for part in (tree, child, edge, parent)), strict=True):
        table = tables[e]
        table = np.where((edges[e, 0] == c)[:, None, None], table, table.transpose(0, 2, 1))
        np.add.at(total, (t, p), _log_sum(table + total[t, c][:, :, None], 1))
    roots = np.where(depth == 0, _log_sum(total, 2), 0.0) if n else np.zeros((count, 0))
    return np.asarray(roots.sum(axis=1))


def _log_sum(values: FloatArray, axis: int) -> FloatArray:
    peak = values.max(axis=axis, keepdims=True)
    peak = np.where(peak > -np.inf, peak, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.squeeze(np.log(np.exp(values - peak).sum(axis=axis, keepdims=True)) + peak, axis))
