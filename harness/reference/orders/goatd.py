"""Elimination orders that goatd finds: of tree decompositions by min-fill, and by a clocked portfolio."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from spinbench.foundation.interruptions import run_interruptibly
from spinbench.reference.network import IntArray

if TYPE_CHECKING:
    import goatd

# Seconds after which goatd's min-fill stops with its best order; a 300 x 300 grid takes 8 s.
MIN_FILL_SECONDS = 0.5


def is_installed() -> bool:
    """Whether the package is there."""
    try:
        import goatd  # noqa: F401
    except ImportError:
        return False
    return True


def build_graph(cardinalities: Sequence[int], pairs: IntArray) -> goatd.Graph:
    """A vertex a variable."""
    import goatd

    return goatd.Graph(len(cardinalities), list(map(tuple, pairs.tolist())))


def decompose_by_min_fill(graph: goatd.Graph, seed: int, **ties: Any) -> goatd.TreeDecomposition:
    """The tree decomposition of a min-fill order."""
    import goatd

    return goatd.decompose(graph, order="minfill", seed=seed, budget_ms=int(1000 * MIN_FILL_SECONDS), **ties)


def widest_bag(cardinalities: Sequence[int], pairs: IntArray) -> Sequence[int]:
    """The variables of the widest part of a tree decomposition by min-fill."""
    bags: Sequence[Sequence[int]] = decompose_by_min_fill(build_graph(cardinalities, pairs), seed=0).bags
    return max(bags, key=len)


def portfolio_orders(cardinalities: Sequence[int], pairs: IntArray, seed: int, seconds: float) -> Iterator[list[int]]:
    """By the clocked search, which takes one core, over variables as they are and beside it over copies of them."""
    import goatd

    graphs = [_build_graph_of_copies(pairs, copies) for copies in _copies(cardinalities)]
    budget_ms = max(int(1000 * seconds), 1)
    trees: list[Any] = [None] * len(graphs)

    def decompose(k: int) -> None:
        trees[k] = goatd.decompose(graphs[k][0], seed=seed, budget_ms=budget_ms)

    def decompose_all() -> None:
        threads = [threading.Thread(target=decompose, args=(k,), daemon=True) for k in range(1, len(graphs))]
        for thread in threads:
            thread.start()
        decompose(0)
        for thread in threads:
            thread.join()

    run_interruptibly(decompose_all)
    for (_, variable), tree in zip(graphs, trees, strict=True):
        yield order_of([[variable[u] for u in bag if u in variable] for bag in tree.bags], tree.edges)


def _build_graph_of_copies(pairs: IntArray, copies: Sequence[int]) -> tuple[goatd.Graph, dict[int, int]]:
    """A graph in which a variable of several copies is a clique with the same neighbours, and the variable of each
    first copy, which is the one that bags keep."""
    import goatd

    first = np.concatenate([[0], np.cumsum(copies)])
    edges = [pair for v in range(len(copies)) for pair in itertools.combinations(range(first[v], first[v + 1]), 2)]
    for u, v in pairs.tolist():
        edges += itertools.product(range(first[u], first[u + 1]), range(first[v], first[v + 1]))
    return goatd.Graph(int(first[-1]), edges), {int(at): v for v, at in enumerate(first[:-1])}


def _copies(cardinalities: Sequence[int]) -> Iterator[list[int]]:
    """Vertices of each variable: one, and about log2 of its states, since goatd counts variables and not states."""
    yield [1] * len(cardinalities)
    if max(cardinalities, default=0) > 2:
        yield [max(1, round(math.log2(k))) for k in cardinalities]


def order_of(bags: Sequence[Sequence[int]], edges: Iterable[tuple[int, int]]) -> list[int]:
    """The order of a tree decomposition: from a root, first come the variables that only later bags hold."""
    near: list[list[int]] = [[] for _ in bags]
    for a, b in edges:
        near[a].append(b)
        near[b].append(a)
    visited = [False] * len(bags)
    downwards: list[Sequence[int]] = []
    for root in range(len(bags)):
        waiting = [] if visited[root] else [root]
        while waiting:
            bag = waiting.pop()
            visited[bag] = True
            downwards.append(bags[bag])
            waiting += [other for other in near[bag] if not visited[other]]
    return list(dict.fromkeys(itertools.chain.from_iterable(downwards)))[::-1]
