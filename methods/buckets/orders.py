"""Orders of elimination for mini-buckets: many quick searches, of which the best are kept."""

from __future__ import annotations

from collections.abc import Iterable

from spinbench.reference.orders.order import Order, candidate_orders
from spinbench.reference.problem import Problem

# Number of greedy orders that are kept: with split buckets, which order gives the best bound shows only after some
# passes.
KEPT = 4
# Predicted seconds of one min-fill order per variable and pair. The prediction replaces the clock, so that every
# machine makes the same number of tries and finds the same orders.
_TRY_SECONDS = 2e-6
_MAX_TRIES = 200


def best_orders(orders: Iterable[Order]) -> list[Order]:
    """The best of each kind, best first."""
    ranked = sorted(orders, key=lambda order: order.log2_total)
    greedy = [order for order in ranked if not order.lattice][:KEPT]
    rows = [order for order in ranked if order.lattice and order.log2_total < greedy[0].log2_total][:1]
    return rows + greedy


def search_orders(problem: Problem, seconds: float, seed: int) -> list[Order]:
    """At least one order, and as many more as these seconds have room for, by a fixed account of time."""
    cost = _TRY_SECONDS * max(len(problem.cardinalities) + len(problem.pairs), 1)
    tries = max(1, min(int(seconds / cost), _MAX_TRIES))
    return best_orders(candidate_orders(problem.cardinalities, problem.pairs, tries, seed, KEPT))
