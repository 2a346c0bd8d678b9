"""The search for elimination orders in compiled code: many quick trials, as many as the elimination is worth."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from spinbench.backends.numba.exact import order_kernels, strip_kernels
from spinbench.reference.flat import FlatNetwork
from spinbench.reference.network import IntArray
from spinbench.reference.order import HOPELESS, Order

_BITSET_LIMIT = 30000  # nodes whose adjacency bits are still small
_FILL_LIMIT = 2 * 10**8  # degree times words: a pass over it takes a tenth of a second
_STRIP = 300  # nodes from which a breadth-first search is tried, which is good on strips
_TRIALS = 5  # at least
_MOST = 1e9  # nanoseconds of a search


def search_order(flat: FlatNetwork) -> Order:
    """The best order found: what costs nothing first, then the core, again and again, with ties broken at random.

    The search ends when it has taken 0.4 of the time that elimination along its best order will take, or 0.15 of it
    without a better one. Times are counted in operations, so that every machine finds the same order.
    """
    exact_order, stripping = order_kernels, strip_kernels
    n = flat.states.size
    first, degree, lists = stripping.neighbours(n, flat.start, flat.scope)
    order = np.empty(n, dtype=np.int64)
    count, gone, width, largest, entries = stripping.strip(first, degree, lists, flat.states, order)
    core = np.flatnonzero(~gone)
    if not core.size:
        return Order(order, width, largest, math.log2(max(entries, 1.0)), True)
    if core.size > _BITSET_LIMIT:
        return Order(order[:count], max(width, 3), math.inf, math.inf, False)
    bits = exact_order.adjacency_bits(core, first, degree, lists)
    weight = np.round(np.log2(flat.states[core]) * 2**20).astype(np.int64)
    strip = core.size >= _STRIP
    best, found = math.inf, Order(order[:count], width, largest, math.inf, False)
    spent = improved = 0.0  # nanoseconds, in all and up to the last better order
    here = np.empty(core.size, dtype=np.int64)
    wide = float(degree[core].sum()) * bits.shape[1] > _FILL_LIMIT
    for seed, (rule, slack) in enumerate(_schedule(wide=wide, strip=strip), start=1):
        rank = _breadth_first(core, first, degree, lists) if rule == exact_order.FIXED and seed == 2 else core
        limit = min(best, 2.0**HOPELESS)
        done, met, top, total, work = exact_order.greedy(bits, weight, rule, rank, slack, seed, limit, here)
        spent += 2e4 + 5.0 * work
        if done == core.size and total < best:
            best, improved = total, spent
            whole = np.concatenate([order[:count], core[here]])
            found = Order(whole, max(width, met), max(largest, top), math.log2(best + entries), True)
        elif best == math.inf and math.log2(total) < found.log2_total:
            found = Order(order[:count], max(width, met), top, math.log2(total), False)
        elimination = 6.0 * (best + entries)
        if seed < _TRIALS:
            continue
        if best == math.inf or spent > min(0.4 * elimination, _MOST) or spent - improved > 0.15 * elimination:
            break
    return found


def _schedule(*, wide: bool, strip: bool) -> Iterator[tuple[int, int]]:
    """(rule, slack): along the numbering and breadth first, which are good on lattices; then the greedy rules."""
    fixed, weight, fill = (getattr(order_kernels, rule) for rule in ("FIXED", "WEIGHT", "FILL"))
    if strip:
        yield from ((fixed, 0), (fixed, 0))
    if wide:
        yield from ((weight, 0),) * 3
        return
    for _ in range(10**5):
        yield from ((fill, 0), (weight, 0), (fill, -1), (fill, 1), (fill, 1), (fill, 2))


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
