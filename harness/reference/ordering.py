"""Elimination orders and what they cost, found before any table is made.

Nodes of degree 0, 1 and (in series) 2 go first: that never raises the width of the best order (Bodlaender,
Koster, van den Eijkhof, "Preprocessing rules for triangulation of probabilistic networks", 2005). The rest is
ordered along its numbering, along a breadth-first search, and greedily several times with random tie-breaking; the
order of least total table size is kept. The first two are good on lattices, where the greedy rules are not.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import numpy as np

from spinbench.foundation import deadline
from spinbench.foundation.bitsets import members_of
from spinbench.reference.network import Scope
from spinbench.reference.order import Order
from spinbench.reference.problem import HOPELESS

Rule = Literal["degree", "index", "breadth", "fill", "weight"]

_FILL_LIMIT = 3000  # nodes above which only the cheap rules are tried
_BITSET_LIMIT = 30000  # nodes whose adjacency bits are still small
_PATIENCE = 6  # searches without a better order
_SECOND_THOUGHTS = 600  # nodes up to which the better rule is tried even where the first found no hope


def elimination_order(
    cardinalities: Sequence[int],
    scopes: Iterable[Scope],
    *,
    seed: int = 0,
    hopeless: float = HOPELESS,
    rules: Sequence[Rule] = (),
) -> Order:
    """The best order found for a model whose tables have these scopes.

    Args:
        cardinalities: of the variables.
        scopes: of the tables.
        seed: of random tie-breaking.
        hopeless: log2 of a number of entries at which a search is given up; infinite for what never makes them all.
        rules: that are tried, one after the other; none: those that suit the size.
    """
    neighbours: list[set[int]] = [set() for _ in cardinalities]
    for scope in scopes:
        for v in scope:
            neighbours[v].update(scope)
    for v, nearby in enumerate(neighbours):
        nearby.discard(v)
    logs = [math.log2(k) for k in cardinalities]
    tally = _Tally(logs)
    core = _strip(neighbours, cardinalities, tally)
    if not core:
        return tally.order()
    if len(core) > _BITSET_LIMIT:
        return Order(np.array(tally.eliminated, dtype=np.int64), max(tally.width, 3), math.inf, math.inf, False)
    place = {v: k for k, v in enumerate(core)}
    bits = [sum(1 << place[u] for u in neighbours[v]) for v in core]
    best: Order | None = None
    stale = 0
    rng = np.random.default_rng(seed)
    for rule in rules or _schedule(len(core)):
        trial = tally.copy()
        _greedy(bits, core, rule, rng, trial, hopeless if best is None else min(best.log2_total, hopeless))
        if best is None or (trial.complete and (not best.complete or trial.log2_total < best.log2_total)):
            best, stale = trial.order(), 0
        else:
            stale += 1
        if best.complete and best.log2_total < math.log2(2500 * len(core)):
            break  # eliminating costs less than another search
        beyond = not best.complete and (rule == "fill" or len(core) > _SECOND_THOUGHTS)
        if stale == _PATIENCE or (beyond and rule not in ("degree", "index")):
            break
    assert best is not None
    return best


class _Tally:
    """The cliques met so far."""

    def __init__(self, logs: list[float]) -> None:
        self.logs = logs
        self.eliminated: list[int] = []
        self.width = 0
        self.largest = 0.0
        self.total = 0.0
        self.complete = True

    def copy(self) -> _Tally:
        other = _Tally(self.logs)
        other.eliminated = list(self.eliminated)
        other.width, other.largest, other.total = self.width, self.largest, self.total
        return other

    def add(self, v: int, nearby: Iterable[int]) -> None:
        logs = [self.logs[u] for u in nearby]
        size = self.logs[v] + sum(logs)
        self.eliminated.append(v)
        self.width = max(self.width, len(logs))
        self.largest = max(self.largest, size)
        self.total += 2.0 ** min(size, 1000.0)

    @property
    def log2_total(self) -> float:
        return max(math.log2(self.total) if self.total else 0.0, self.largest)

    def order(self) -> Order:
        order = np.array(self.eliminated, dtype=np.int64)
        return Order(order, self.width, self.largest, self.log2_total, self.complete)


def _strip(neighbours: list[set[int]], cards: Sequence[int], tally: _Tally) -> list[int]:
    """Eliminates what the rules allow; `neighbours` is left as the core's adjacency. Returns the core."""
    leaves = [v for v, nearby in enumerate(neighbours) if len(nearby) <= 1]
    pairs = [v for v, nearby in enumerate(neighbours) if len(nearby) == 2]
    gone = [False] * len(neighbours)
    while leaves or pairs:
        v = leaves.pop() if leaves else pairs.pop()  # leaves first, or a tree would not get width 1
        nearby = neighbours[v]
        if gone[v] or len(nearby) > 2:
            continue
        if len(nearby) == 2:
            a, b = nearby
            if b not in neighbours[a] and cards[v] < min(cards[a], cards[b]):
                continue
            if b not in neighbours[a]:
                neighbours[a].add(b)
                neighbours[b].add(a)
        gone[v] = True
        tally.add(v, nearby)
        for u in nearby:
            neighbours[u].discard(v)
            if len(neighbours[u]) <= 2:
                (pairs if len(neighbours[u]) == 2 else leaves).append(u)
        neighbours[v] = set()
    return [v for v, is_gone in enumerate(gone) if not is_gone]


def _schedule(size: int) -> Iterator[Rule]:
    yield from ("degree", "index", "breadth")
    if size > _FILL_LIMIT:
        return
    for _ in range(max(1, min(12, 6000 // size))):
        yield "fill"
        yield "weight"


def _breadth_first(adjacent: list[int]) -> list[int]:
    """Ranks along a reverse Cuthill-McKee order, which keeps the frontier of a strip narrow."""
    from scipy import sparse
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    ends = np.array([(v, u) for v, nearby in enumerate(adjacent) for u in members_of(nearby)])
    shape = (len(adjacent), len(adjacent))
    graph = sparse.csr_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=shape)
    rank = np.empty(len(adjacent), dtype=np.int64)
    rank[reverse_cuthill_mckee(sparse.csr_matrix(graph), symmetric_mode=True)] = np.arange(len(adjacent))
    return [int(r) for r in rank]


def _uniforms(rng: np.random.Generator) -> Iterator[float]:
    while True:
        yield from rng.random(4096).tolist()


def _greedy(
    start: list[int], core: list[int], rule: Rule, rng: np.random.Generator, tally: _Tally, limit: float
) -> None:
    """Eliminates the core by one rule. Gives up (complete = False) beyond 2^limit entries in all."""
    adjacent = list(start)
    weight = [tally.logs[v] for v in core]
    alive = (1 << len(core)) - 1
    fixed = _breadth_first(start) if rule == "breadth" else range(len(core)) if rule == "index" else None

    def score(v: int) -> float:
        nearby = adjacent[v]
        if fixed is not None:
            return fixed[v]
        if rule == "degree":
            return float(nearby.bit_count())
        members = members_of(nearby)
        if rule == "weight":
            return sum((weight[u] for u in members), weight[v])
        missing = sum((nearby & ~adjacent[u]).bit_count() for u in members) - len(members)
        return float(missing)

    tie = _uniforms(rng).__next__
    scores = [score(v) for v in range(len(core))]
    heap = [(scores[v], tie(), v) for v in range(len(core))]
    heapq.heapify(heap)
    while alive:
        deadline.check()
        value, _, v = heapq.heappop(heap)
        if not alive >> v & 1 or value != scores[v]:
            continue
        nearby = adjacent[v]
        members = members_of(nearby)
        tally.add(core[v], (core[u] for u in members))
        if tally.log2_total > limit:
            tally.complete = False
            return
        if nearby | 1 << v == alive:  # what is left becomes a clique
            for k, u in enumerate(members):
                tally.add(core[u], (core[w] for w in members[k + 1 :]))
            return
        alive ^= 1 << v
        touched, filled = nearby, False
        for u in members:
            before = adjacent[u]
            after = (before | nearby) & ~(1 << u | 1 << v)
            adjacent[u] = after
            filled = filled or bool(after & ~before)
        if rule == "fill" and filled:
            for u in members:
                touched |= adjacent[u]
        for u in members_of(touched) if fixed is None else ():
            fresh = score(u)
            if fresh != scores[u]:
                scores[u] = fresh
                heapq.heappush(heap, (fresh, tie(), u))
