"""Where hard zeros leave little of the tables, nothing has to be split: elimination over what they leave possible."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import numpy as np

from spinbench.methods.buckets.draws import BINS
from spinbench.methods.buckets.layout import Array
from spinbench.reference.orders.order import Order
from spinbench.reference.problem import Problem
from spinbench.reference.sparse.tables import TooManyError
from spinbench.reference.sparse.tree import Drawer, Eliminated, Limits, eliminate, marginals_of

# Exact elimination over possible states is tried if log2 of the entries of whole tables exceeds log2 of the affordable
# rows by at most this. Real models with many zeros need 1.3 to 4; with a larger excess it rarely succeeds.
_THINNED = 4.0


class Whole:
    """What is drawn from: exact."""

    split: ClassVar[Literal[False]] = False

    def __init__(self, done: Eliminated) -> None:
        self._done, self._drawer = done, Drawer(done)
        marginals = marginals_of(done)
        self._beliefs = np.concatenate([np.zeros(0), *(vector[1:] for vector in marginals)])

    def advance(self, seed: int, index: int, steps: int, chains: int) -> dict[str, Array]:
        """As draws from mini-buckets: of these all have the same weight, and the last is handed out."""
        uniform = np.random.default_rng((seed, index + steps)).random((chains, len(self._done.cards)))
        counts = np.zeros((BINS, chains))
        counts[0] = steps
        bound_row = np.array([self._done.log_z, 0.0, math.ceil(math.log2(max(self._done.rows, 1))), 0.0, 0.0])
        log = np.full(chains, math.log(steps))
        with np.errstate(divide="ignore"):
            rows = np.log(self._beliefs)[:, None] + log
        return {
            "log_weight": log,
            "log_square": log,
            "rows": rows,
            "counts": counts,
            "sums": counts,
            "bound": np.repeat(bound_row[:, None], chains, axis=1),
            "states": self._drawer.draw(uniform.T),
            "drawn": np.zeros(chains),
            "beliefs": np.repeat(self._beliefs[:, None], chains, axis=1),
        }


def whole(problem: Problem, order: Order, limits: Limits) -> Whole | None:
    """Along an order; None where this is too much.

    Raises:
        ZeroWeightError: no state has positive weight.
    """
    network, listed = problem.network, order.order.tolist()
    try:
        done = eliminate(network.tables, network.constant, network.cardinalities, listed, limits)
    except TooManyError:
        return None
    return Whole(done)


def hopeful(order: Order, rows: float) -> bool:
    """Whether trying so many rows is worth its time."""
    return order.log2_total <= math.log2(max(rows, 1.0)) + _THINNED
