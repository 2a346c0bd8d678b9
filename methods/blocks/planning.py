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

# Fixed seed of the random tie breaks: a plan depends only on the model and the settings.
TIE_SEED = 0
# From this number of blocks on, new blocks contain only variables that are in no block yet, so that planning
# terminates.
MAX_BLOCKS = 64
# Each earlier exclusion of a variable counts as this many neighbours fewer, so that different blocks leave out
# different variables; scale of the noise that breaks ties between variables of equal degree.
_REPEAT_PENALTY = 3.0
_DEGREE_NOISE = 1.5
# Tolerance in bits: the logarithm of a product that equals the limit may round to above it.
_ROUNDING = 1e-9


def eliminate_greedily(
    adjacency: list[set[int]],
    candidates: set[int],
    cards: IntArray,
    max_entries: int,
    exclusions: IntArray,
    rng: np.random.Generator,
) -> list[int]:
    """The variables of a block in the order of their elimination.

    Args:
        adjacency: neighbours of all variables.
        candidates: the variables that the block is made of; those outside are given.
        cards: (N,) numbers of states.
        max_entries: entries of a bucket at most.
        exclusions: (N,) how often each variable was left out of a block so far.
        rng: of ties.
    """
    graph = {v: adjacency[v] & candidates for v in sorted(candidates)}
    # The noise is less than a hundredth of a bit, so that it only breaks ties.
    bits, noise = np.log2(cards), 0.01 * rng.random(len(cards))
    limit = math.log2(max_entries) + _ROUNDING

    def width(v: int) -> float:
        return float(bits[v] + sum(bits[u] for u in graph[v]))

    queue = [(width(v) + noise[v], v) for v in graph]
    current = {v: key for key, v in queue}
    heapq.heapify(queue)
    order: list[int] = []
    while graph:
        key, v = queue[0]
        # Outdated entry: keys are changed by pushing new entries onto the heap.
        if current.get(v) != key:
            heapq.heappop(queue)
            continue
        if width(v) <= limit:
            order.append(v)
            changed = _eliminate(graph, v)
        else:
            v = _pick_cutset_variable(graph, exclusions, rng)
            changed = graph.pop(v)
            for u in changed:
                graph[u].discard(v)
        del current[v]
        for u in changed:
            current[u] = width(u) + noise[u]
            heapq.heappush(queue, (current[u], u))
    return order


def _eliminate(graph: dict[int, set[int]], v: int) -> set[int]:
    """Its neighbours, which are now each other's."""
    adjacent = graph.pop(v)
    for u in adjacent:
        graph[u] |= adjacent
        graph[u] -= {u, v}
    return adjacent


def _pick_cutset_variable(graph: dict[int, set[int]], exclusions: IntArray, rng: np.random.Generator) -> int:
    """The variable to leave out: of many neighbours, and seldom left out before."""
    variables = np.fromiter(graph, dtype=np.int64, count=len(graph))
    degrees = np.array([len(graph[v]) for v in variables.tolist()])
    return int(
        variables[np.argmax(degrees - _REPEAT_PENALTY * exclusions[variables] + _DEGREE_NOISE * rng.random(len(graph)))]
    )


def plan_covering_blocks(cards: IntArray, pairs: IntArray, max_entries: int, min_blocks: int) -> list[list[int]]:
    """Blocks, `min_blocks` or more, until each variable is in one; a single one where it holds all variables.

    Args:
        cards: (N,) numbers of states, none above `max_entries`.
        pairs: (E, 2) variables that share a factor.
        max_entries: entries of a bucket at most.
        min_blocks: blocks where more than one is needed.
    """
    adjacency, n = neighbours(len(cards), pairs), len(cards)
    rng, everything = np.random.default_rng(TIE_SEED), set(range(n))
    exclusions, missing = np.zeros(n, dtype=np.int64), set(everything)
    blocks: list[list[int]] = []
    while missing or len(blocks) < min_blocks:
        candidates = everything if len(blocks) < MAX_BLOCKS else missing
        order = eliminate_greedily(adjacency, candidates, cards, max_entries, exclusions, rng)
        blocks.append(order)
        missing.difference_update(order)
        exclusions[sorted(everything.difference(order))] += 1
        if len(order) == n:
            return [order]
    return blocks


def plan_disjoint_blocks(cards: IntArray, pairs: IntArray, max_entries: int, first_block: list[int]) -> list[list[int]]:
    """Blocks of which each variable is in one: `first_block`, then what can be eliminated of the rest, and so on."""
    adjacency, rng = neighbours(len(cards), pairs), np.random.default_rng(TIE_SEED)
    rest = set(range(len(cards))).difference(first_block)
    no_exclusions, blocks = np.zeros_like(cards), [first_block]
    while rest:
        blocks.append(eliminate_greedily(adjacency, rest, cards, max_entries, no_exclusions, rng))
        rest.difference_update(blocks[-1])
    return blocks
