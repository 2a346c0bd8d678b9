"""The graph of a message, and its model."""

from __future__ import annotations

import heapq

import numpy as np
import numpy.typing as npt

from spinbench.papers.relaxation.crf.corpus import Message

IntArray = npt.NDArray[np.int64]

# Of edges: neighbouring tokens on one line or on two, and equal capitalised tokens.
KINDS = ("same line", "across lines", "skip")


def build_edges(message: Message) -> tuple[IntArray, IntArray]:
    """Chain and skip edges.

    Returns:
        edges: (E, 2) int64, i < j, no pair twice; equal capitalised tokens that are neighbours are a chain edge.
        kinds: (E,) int64, indices of `KINDS`.
    """
    n = len(message.tokens)
    chain = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1) if n else np.zeros((0, 2), dtype=np.int64)
    places: dict[str, list[int]] = {}
    for k, token in enumerate(message.tokens):
        if token[0].isupper():
            places.setdefault(token, []).append(k)
    skips = [(i, j) for same in places.values() for k, i in enumerate(same) for j in same[k + 1 :] if j > i + 1]
    across = np.diff(message.lines) != 0 if n else np.zeros(0, dtype=np.bool_)
    edges = np.concatenate([chain, np.array(skips, dtype=np.int64).reshape(-1, 2)])
    return edges, np.concatenate([across.astype(np.int64), np.full(len(skips), 2)])


def min_degree_width(n: int, edges: IntArray, limit: int) -> int:
    """Induced width of the greedy order that eliminates a node of least degree; `limit` + 1 as soon as it is passed."""
    neighbours: list[set[int]] = [set() for _ in range(n)]
    for i, j in edges.tolist():
        neighbours[i].add(j)
        neighbours[j].add(i)
    queue = [(len(near), v) for v, near in enumerate(neighbours)]
    heapq.heapify(queue)
    gone = [False] * n
    width = 0
    while queue:
        degree, v = heapq.heappop(queue)
        near = neighbours[v]
        if gone[v] or degree != len(near):
            continue
        if degree > limit:
            return limit + 1
        width, gone[v] = max(width, degree), True
        for u in near:
            neighbours[u] |= near
            neighbours[u] -= {u, v}
            heapq.heappush(queue, (len(neighbours[u]), u))
    return width
