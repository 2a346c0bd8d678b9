"""Which variables make a block, and in which order they are summed out: greedy elimination of bounded buckets.

A *bucket* is the table of a variable and of its neighbours at the time when it is eliminated; the variables that no
bucket of the allowed size can hold are left out of the block (the *cutset*), which is drawn given their states.
Jensen, Kong and Kjærulff, "Blocking Gibbs sampling in very large probabilistic expert systems", Int. J.
Human-Computer Studies 1995; Bidyuk and Dechter, "Cutset sampling for Bayesian networks", JAIR 2007.
"""

from __future__ import annotations

import heapq
import math

import numpy as np

from spinbench.mathematics.graphs.factor_tables import IntArray
from spinbench.reference.orders.plan import neighbours

SEED = 0
"""Of what breaks ties: a plan is a function of the model and the settings."""
MOST = 64
"""Blocks of a sweep; by then, every variable has been in one."""
_AGAIN = 3.0
"""Neighbours that a variable must have more to be left out of a block once again."""
_NOISE = 1.5
_ROUNDING = 1e-9


def choose(
    near: list[set[int]], inside: set[int], cards: IntArray, size: int, left_out: IntArray, rng: np.random.Generator
) -> list[int]:
    """The variables of a block in the order of their elimination.

    Args:
        near: neighbours of all variables.
        inside: the variables that the block is made of; those outside are given.
        cards: (N,) numbers of states.
        size: entries of a bucket at most.
        left_out: (N,) how often each variable was left out of a block so far.
        rng: of ties.
    """
    live = {v: near[v] & inside for v in sorted(inside)}
    bits, noise = np.log2(cards), 0.01 * rng.random(len(cards))
    limit = math.log2(size) + _ROUNDING

    def width(v: int) -> float:
        return float(bits[v] + sum(bits[u] for u in live[v]))

    queue = [(width(v) + noise[v], v) for v in live]
    current = {v: key for key, v in queue}
    heapq.heapify(queue)
    order: list[int] = []
    while live:
        key, v = queue[0]
        if current.get(v) != key:
            heapq.heappop(queue)
            continue
        if width(v) <= limit:
            order.append(v)
            touched = _eliminated(live, v)
        else:
            v = _worst(live, left_out, rng)
            touched = live.pop(v)
            for u in touched:
                live[u].discard(v)
        del current[v]
        for u in touched:
            current[u] = width(u) + noise[u]
            heapq.heappush(queue, (current[u], u))
    return order


def _eliminated(live: dict[int, set[int]], v: int) -> set[int]:
    """Its neighbours, which are now each other's."""
    touched = live.pop(v)
    for u in touched:
        live[u] |= touched
        live[u] -= {u, v}
    return touched


def _worst(live: dict[int, set[int]], left_out: IntArray, rng: np.random.Generator) -> int:
    """The variable to leave out: of many neighbours, and seldom left out before."""
    variables = np.fromiter(live, dtype=np.int64, count=len(live))
    degrees = np.array([len(live[v]) for v in variables.tolist()])
    return int(variables[np.argmax(degrees - _AGAIN * left_out[variables] + _NOISE * rng.random(len(live)))])


def cover(cards: IntArray, pairs: IntArray, size: int, least: int) -> list[list[int]]:
    """Blocks, `least` or more, until each variable is in one; a single one where it holds all variables.

    Args:
        cards: (N,) numbers of states, none above `size`.
        pairs: (E, 2) variables that share a factor.
        size: entries of a bucket at most.
        least: blocks where more than one is needed.
    """
    near, n = neighbours(len(cards), pairs), len(cards)
    rng, everything = np.random.default_rng(SEED), set(range(n))
    left_out, missing = np.zeros(n, dtype=np.int64), set(everything)
    blocks: list[list[int]] = []
    while missing or len(blocks) < least:
        inside = everything if len(blocks) < MOST else missing
        order = choose(near, inside, cards, size, left_out, rng)
        blocks.append(order)
        missing.difference_update(order)
        left_out[sorted(everything.difference(order))] += 1
        if len(order) == n:
            return [order]
    return blocks


def partition(cards: IntArray, pairs: IntArray, size: int, first: list[int]) -> list[list[int]]:
    """Blocks of which each variable is in one: `first`, then what can be eliminated of the rest, and so on."""
    near, rng = neighbours(len(cards), pairs), np.random.default_rng(SEED)
    rest = set(range(len(cards))).difference(first)
    none, blocks = np.zeros_like(cards), [first]
    while rest:
        blocks.append(choose(near, rest, cards, size, none, rng))
        rest.difference_update(blocks[-1])
    return blocks
