"""The search for elimination orders in compiled code: many quick trials, as many as the elimination is worth."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from spinbench.backends.numba.exact import order_kernels, strip_kernels
from spinbench.backends.numba.exact.order_kernels import FILL, FIXED, WEIGHT
from spinbench.reference.flat import FlatNetwork
from spinbench.reference.network import FloatArray, IntArray
from spinbench.reference.order import Order
from spinbench.reference.problem import HOPELESS

_BITSET_LIMIT = 30000  # nodes whose adjacency bits are still small
_FILL_LIMIT = 2 * 10**8  # degree times words: a pass over it takes a tenth of a second
_STRIP = 300  # nodes from which a breadth-first search is tried, which is good on strips
_TRIALS = 5  # at least
_MOST = 1e9  # nanoseconds of a search

Lists = tuple[IntArray, IntArray, IntArray]
"""first, degree and lists of `strip_kernels.neighbours`."""


def search_order(flat: FlatNetwork, hopeless: float = HOPELESS) -> Order:
    """The best order found: what costs nothing first, then the core, again and again, with ties broken at random.

    The search ends when it has taken 0.4 of the time that elimination along its best order will take, or 0.15 of it
    without a better one. Times are counted in operations, so that every machine finds the same order. It is given up
    at 2^`hopeless` entries.
    """
    around, stripped, core = strip(flat)
    first, width, largest, entries = stripped
    if not core.size:
        return Order(first, width, largest, math.log2(max(entries, 1.0)), True)
    if core.size > _BITSET_LIMIT:
        return Order(first, max(width, 3), math.inf, math.inf, False)
    return _order_core(core, around, flat.states, stripped, hopeless)


def strip(flat: FlatNetwork) -> tuple[Lists, Stripped, IntArray]:
    """What neighbours each has, what goes first, and the core that is left."""
    n = flat.states.size
    around: Lists = strip_kernels.neighbours(n, flat.start, flat.scope)
    order = np.empty(n, dtype=np.int64)
    count, gone, width, largest, entries = strip_kernels.strip(*around, flat.states, order)
    return around, Stripped(order[:count], width, largest, entries), np.flatnonzero(~gone)


class Stripped(NamedTuple):
    """What went first: its order, width, log2 of its largest clique, entries."""

    order: IntArray
    width: int
    largest: float
    entries: float


class Trial(NamedTuple):
    """A greedy order of the core, or as much of it as was made before it was given up.

    Attributes:
        rule: FIXED, WEIGHT or FILL.
        order: its nodes.
        complete: whether it is whole.
        width, largest, entries: of its tables.
        spent: nanoseconds so far, of all trials.
    """

    rule: int
    order: IntArray
    complete: bool
    width: int
    largest: float
    entries: float
    spent: float


def trials(core: IntArray, around: Lists, states: IntArray, limit: FloatArray, first: int = 1) -> Iterator[Trial]:
    """One after another, with seeds from `first`.

    Args:
        core, around, states, first: what is ordered.
        limit: (1,) the entries at which each is given up, which may change on the way.
    """
    bits = order_kernels.adjacency_bits(core, *around)
    weight = np.round(np.log2(states[core]) * 2**20).astype(np.int64)
    here, spent = np.empty(core.size, dtype=np.int64), 0.0
    for seed, (rule, slack, rank) in enumerate(_schedule(core, around, bits.shape[1]), start=first):
        done, met, top, total, work = order_kernels.greedy(bits, weight, rule, rank, slack, seed, limit[0], here)
        spent += 2e4 + 5.0 * work
        yield Trial(rule, core[here[:done]], done == core.size, met, top, total, spent)


def _order_core(core: IntArray, around: Lists, states: IntArray, stripped: Stripped, hopeless: float) -> Order:
    """Trial after trial; the best of them behind what was stripped."""
    first, width, largest, entries = stripped
    best, found = math.inf, Order(first, width, largest, math.inf, False)
    limit = np.full(1, 2.0**hopeless)
    improved = 0.0  # nanoseconds up to the last better order
    for count, trial in enumerate(trials(core, around, states, limit), start=1):
        if trial.complete and trial.entries < best:
            best, improved = trial.entries, trial.spent
            limit[0] = min(best, limit[0])
            whole = np.concatenate([first, trial.order])
            log_total = math.log2(best + entries)
            found = Order(whole, max(width, trial.width), max(largest, trial.largest), log_total, True)
        elif best == math.inf and math.log2(trial.entries) < found.log2_total:
            found = Order(first, max(width, trial.width), trial.largest, math.log2(trial.entries), False)
        elimination = 6.0 * (best + entries)
        enough = trial.spent > min(0.4 * elimination, _MOST) or trial.spent - improved > 0.15 * elimination
        if count >= _TRIALS and (best == math.inf or enough):
            break
    return found


def _schedule(core: IntArray, around: Lists, words: int) -> Iterator[tuple[int, int, IntArray]]:
    """(rule, slack, rank): along the numbering and breadth first, which are good on lattices; then greedily."""
    if core.size >= _STRIP:
        yield FIXED, 0, core
        yield FIXED, 0, _breadth_first(core, *around)
    if float(around[1][core].sum()) * words > _FILL_LIMIT:
        yield from ((WEIGHT, 0, core),) * 3
        return
    for _ in range(10**5):
        for rule, slack in ((FILL, 0), (WEIGHT, 0), (FILL, -1), (FILL, 1), (FILL, 1), (FILL, 2)):
            yield rule, slack, core


def _breadth_first(core: IntArray, first: IntArray, degree: IntArray, lists: IntArray) -> IntArray:
    """Ranks along a reverse Cuthill-McKee order, which keeps the frontier of a strip narrow."""
    from scipy import sparse
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    place = np.empty(degree.size, dtype=np.int64)
    place[core] = np.arange(core.size)
    columns = place[np.concatenate([lists[first[v] : first[v] + degree[v]] for v in core.tolist()])]
    starts = np.concatenate([[0], np.cumsum(degree[core])])
    graph = sparse.csr_matrix((np.ones(columns.size), columns, starts), shape=(core.size, core.size))
    rank = np.empty(core.size, dtype=np.int64)
    rank[reverse_cuthill_mckee(graph, symmetric_mode=True)] = np.arange(core.size)
    return rank
