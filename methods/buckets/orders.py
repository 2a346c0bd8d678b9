"""Orders of elimination for mini-buckets: many quick searches, of which the best are kept."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import NamedTuple

from spinbench.reference.network import IntArray
from spinbench.reference.ordering import Rule, elimination_order
from spinbench.reference.problem import Problem

KEPT = 4
"""Greedy orders. Where tables are cut, which of several is best shows only once bounds are seen."""
_LARGE = 1500
"""Variables from which counting edges takes too long in Python."""
_SEARCH = 1e-7
"""Seconds of one search, for each pair of variables."""


class Found(NamedTuple):
    """An order.

    Attributes:
        total: log2 of the entries of all tables, were they made.
        order: (n,) variables.
        greedy: whether it may be cut: orders along lattices are good for whole tables alone.
    """

    total: float
    order: IntArray
    greedy: bool


def kept(orders: Iterable[Found]) -> list[Found]:
    """The best of each kind, best first."""
    best = sorted(orders, key=lambda found: found.total)
    greedy = [found for found in best if found.greedy][:KEPT]
    fixed = [found for found in best if not found.greedy and (not greedy or found.total < greedy[0].total)][:1]
    return fixed + greedy


def search(problem: Problem, seconds: float, seed: int) -> list[Found]:
    """In Python; at least one order, and as many more as these seconds have room for, by a fixed account of time."""
    cards, scopes = problem.cardinalities, list(problem.scopes)
    rules: list[Rule] = ["index", "breadth"] if not seed else []
    rules += ["fill", "weight"] if len(cards) <= _LARGE else ["degree"]
    cost = _SEARCH * max(len(cards), 1) ** 2
    greedy = itertools.cycle(rules[-2:] if len(cards) <= _LARGE else rules[-1:])
    rules += itertools.islice(greedy, max(0, min(int(seconds / cost), 200) - len(rules)))
    found = []
    for k, rule in enumerate(rules, start=1000 * seed):
        made = elimination_order(cards, scopes, seed=k, hopeless=math.inf, rules=(rule,))
        found.append(Found(made.log2_total, made.order, rule not in ("index", "breadth")))
    return kept(found)
