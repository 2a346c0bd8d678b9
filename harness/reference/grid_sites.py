"""Which variable stands where, in models whose edges form a grid."""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from spinbench.reference.network import IntArray, Pairwise
from spinbench.reference.orders.plan import neighbours


def grid_sites(pairwise: Pairwise) -> IntArray | None:
    """(R, C) int64, C <= R: the variables at the sites of the grid that a model's edges form, or None.

    They may be numbered row by row, edges missing or not, or in any order if all edges are there.
    """
    columns = _row_length(pairwise)
    site = np.arange(pairwise.size).reshape(-1, columns) if columns else _complete_grid(pairwise)
    return site if site is None or site.shape[1] <= site.shape[0] else np.ascontiguousarray(site.T)


def _row_length(pairwise: Pairwise) -> int:
    """The number of columns of a grid numbered row by row, 0 if it is none."""
    if not len(pairwise.edges):
        return 0
    first, second = pairwise.edges.T
    steps = second - first
    columns = int(steps.max())
    right = second[steps == 1]
    down = np.count_nonzero(steps == columns)
    if columns == 1 or pairwise.size % columns or not right.size or right.size + down < steps.size:
        return 0
    return columns if np.count_nonzero(right % columns) == right.size else 0


def _complete_grid(pairwise: Pairwise) -> IntArray | None:
    """Sites from the distances to two corners on one side."""
    n, count = pairwise.size, len(pairwise.edges)
    half = 2 * n - count  # R + C, while R C = n
    root = half * half - 4 * n
    if n < 4 or half <= 0 or root < 0 or math.isqrt(root) ** 2 != root:
        return None
    columns = (half - math.isqrt(root)) // 2
    rows = half - columns
    if columns < 2 or rows * columns != n or pairwise.degrees.max() > 4:
        return None
    corners = np.flatnonzero(pairwise.degrees == 2)
    if len(corners) != 4 or pairwise.degrees.min() < 2:
        return None
    adjacency = neighbours(n, pairwise.edges)
    near = _distances(adjacency, int(corners[0]))
    beside = [int(v) for v in corners[1:] if near[v] == columns - 1]
    if not beside:
        return None
    far = _distances(adjacency, beside[0])
    column, odd = np.divmod(near - far + columns - 1, 2)
    row = near - column
    site = np.full((rows, columns), -1, dtype=np.int64)
    if odd.any() or min(row.min(), column.min()) < 0 or row.max() >= rows or column.max() >= columns:
        return None
    site[row, column] = np.arange(n)
    i, j = pairwise.edges.T
    adjacent = np.abs(row[i] - row[j]) + np.abs(column[i] - column[j]) == 1
    return site if adjacent.all() and (site >= 0).all() else None


def _distances(adjacency: list[set[int]], start: int) -> IntArray:
    distance = np.full(len(adjacency), 10 * len(adjacency), dtype=np.int64)
    distance[start] = 0
    queue = deque([start])
    while queue:
        v = queue.popleft()
        for u in adjacency[v]:
            if distance[u] > distance[v] + 1:
                distance[u] = distance[v] + 1
                queue.append(u)
    return distance
