"""Exact contraction of Forney models: nodes are merged, the edges between them summed.

The sum of non-negative terms is at least any one of them, so no variational bound that keeps some of the terms gets
worse when nodes merge, and most get tighter; tables grow as 2**degree.
"""

from __future__ import annotations

import heapq

import numpy as np

from spinbench.errors import ModelError, UnsupportedError
from spinbench.models.forney import MAX_DEGREE, ForneyModel
from spinbench.models.forney_build import Network, network_of


def contract(model: ForneyModel, degree_limit: int = 2, seed: int = 0, attempts: int = 16) -> ForneyModel:
    """The model with nodes of degree <= 2 absorbed, and others merged while degrees stay within the limit.

    Merging is greedy. In even attempts the pair of neighbours that shares the most edges goes first, and where several
    do, the one of the smallest degree when merged, and then one at random; in odd ones the pair whose degree grows the
    least, up to noise. The attempt that leaves the fewest edges is taken. log Z and the readouts of variables are
    kept; all edges between two merged nodes are summed at once.

    Args:
        model: the model.
        degree_limit: largest degree of a merged node; 2 and less only absorb. Nodes that are larger already stay.
        seed: of the ties.
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
    network = network_of(model)
    _absorb(network)
    if degree_limit > 2:
        slots = {a: tuple(s) for a, s in network.slots.items()}
        orders = [_order(slots, degree_limit, np.random.default_rng([seed, k]), k % 2 == 1) for k in range(attempts)]
        for a, b in min(orders, key=lambda order: order[0])[1]:
            network.merge(a, b)
    return network.model(model.num_variables)


def _absorb(network: Network) -> None:
    """Merges nodes of degree 1 and 2 into the smaller of their neighbours."""
    waiting = [a for a, slots in network.slots.items() if len(slots) <= 2]
    while waiting:
        a = waiting.pop()
        if a not in network.slots or not 0 < len(network.slots[a]) <= 2:
            continue
        b = min(network.neighbours(a), key=lambda node: (len(network.slots[node]), node))
        network.merge(b, a)
        waiting.append(b)


def _order(
    slots: dict[int, tuple[int, ...]], limit: int, rng: np.random.Generator, noisy: bool
) -> tuple[tuple[int, int], list[tuple[int, int]]]:
    """((edges left, entries of the tables left), pairs to merge one after the other), by the graph alone."""
    at = {a: set(edges) for a, edges in slots.items() if edges}
    ends: dict[int, set[int]] = {}
    for a, edges in at.items():
        for e in edges:
            ends.setdefault(e, set()).add(a)
    version = dict.fromkeys(at, 0)
    heap: list[tuple[float, float, int, int, int, int]] = []

    def push(a: int, b: int) -> None:
        shared = len(at[a] & at[b])
        degree = len(at[a]) + len(at[b]) - 2 * shared
        if degree <= limit:
            growth = degree - max(len(at[a]), len(at[b]))
            cost = growth + rng.random() if noisy else degree / 100 - shared
            heapq.heappush(heap, (cost, rng.random(), a, b, version[a], version[b]))

    for a, edges in at.items():
        for b in {end for e in edges for end in ends[e] if end > a}:
            push(a, b)
    merged = []
    while heap:
        _, _, a, b, seen_a, seen_b = heapq.heappop(heap)
        if version.get(a) != seen_a or version.get(b) != seen_b:
            continue
        merged.append((a, b))
        shared = at[a] & at[b]
        for e in shared:
            del ends[e]
        for e in at[b] - shared:
            ends[e] = (ends[e] - {b}) | {a}
        at[a] = (at[a] | at[b]) - shared
        del at[b], version[b]
        version[a] += 1
        for near in {end for e in at[a] for end in ends[e]} - {a}:
            push(a, near)
    return (len(ends), sum(2 ** len(edges) for edges in at.values())), merged
