"""What an elimination order costs, and when none can do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spinbench.reference.network import IntArray
from spinbench.reference.problem import HOPELESS, Problem

_ROUNDS = 100  # of taking off what is not dense


@dataclass(frozen=True, eq=False)
class Order:
    """An elimination order.

    Attributes:
        order: int64 variables; fewer than the model's if the search was given up.
        width: size of the largest clique that it meets, less one.
        log2_largest: log2 of that clique's number of states.
        log2_total: log2 of the sum over all cliques.
        complete: False if the search was given up (`Problem.hopeless`), or not begun; figures are then lower limits.
    """

    order: IntArray
    width: int
    log2_largest: float
    log2_total: float
    complete: bool

    @property
    def entries(self) -> float:
        """The sum over all cliques, as far as a float holds it."""
        return float(2.0 ** min(self.log2_total, 1000.0))

    @property
    def least_entries(self) -> int:
        """Of an order that is not complete: what it takes at least."""
        return 1 << max(int(min(HOPELESS, self.log2_total)), self.width + 1)


def hopeless_order(problem: Problem) -> Order | None:
    """The order that says why there is none, where a part of the graph is so dense that no search can help."""
    size = len(problem.cardinalities)
    width = least_width(size, problem.pairs, HOPELESS) if size > HOPELESS else 0
    if not width:
        return None
    return Order(np.empty(0, dtype=np.int64), width, width + 1.0, width + 1.0, complete=False)


def least_width(size: int, pairs: IntArray, enough: int) -> int:
    """A lower bound on the width of all elimination orders, or 0 where there is none of at least `enough`.

    It is the least degree in a subgraph, since the first variable of the subgraph that goes meets all its neighbours
    there (Koster, Wolle, Bodlaender, "Degree-based treewidth lower bounds", 2005). Linear in the edges a round.
    """
    for _ in range(_ROUNDS):
        if 2 * len(pairs) < enough * (enough + 1):
            return 0
        degree = np.bincount(pairs.ravel(), minlength=size)
        least = int(degree[degree > 0].min())
        if least >= enough:
            return least
        pairs = pairs[(degree[pairs] >= enough).all(axis=1)]
    return 0
