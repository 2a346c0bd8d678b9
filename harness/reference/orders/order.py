"""Elimination orders: the search for one, and what elimination along it costs.

Orders come from goatd (min-fill with sampled ties; a clocked portfolio with nested dissection and FlowCutter), or,
where goatd has no wheel, from `min_fill`. Both minimise numbers of variables; candidates are compared by the entries of
all clique tables, with the numbers of states as they are. Row orders are candidates, too: on long lattices they beat
min-fill.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from spinbench.foundation import deadline
from spinbench.reference.network import IntArray, Scope
from spinbench.reference.orders import goatd
from spinbench.reference.orders.plan import depth_first, least_width, min_fill_order, row_orders, separators, strip
from spinbench.reference.progress import Progress, report_progress

# log2 of a number of entries beyond any machine's memory.
HOPELESS = 48
# Seconds per entry of compiled elimination for log Z, from which the search decides how long it goes on.
ENTRY_SECONDS = 2e-9
# The same with marginals.
MARGINAL_SECONDS = 8e-9
# Bytes per entry of all cliques for marginals: 4.2 to 6 along eight orders of linkage_15.
ENTRY_BYTES = 5.0
# Share of the elimination's predicted time for the search for its order.
SEARCH_SHARE = 0.4
# The same after a round without improvement.
VAIN_SEARCH_SHARE = 0.1
# log2 of the entries along a min-fill order above which no order is made: no zeros make up for that.
OUT_OF_REACH = 150
# log2 of the entries that are eliminated in some ten minutes.
AFFORDABLE = 40
# The same of orders from which a search gets to affordable ones: on linkage models of UAI-2014 MAR it saves some 20.
SEARCHABLE = 80
# Longest search in seconds; on linkage_15, the hardest of UAI-2014 MAR, 4 s find an order that 10 s hardly improve.
SEARCH_SECONDS = 10.0
# Longest search in seconds while the best order exceeds `AFFORDABLE`, and after a round without improvement: a model
# that is too wide is refused within 3 s of CPU time, of which the search of copies takes as much again.
HOPELESS_SECONDS, VAIN_SECONDS = 1.0, 0.5
# log2 of the factor by which a round that was not in vain lowers the entries.
LEAST_GAIN = 0.1
# Largest factor that a search gains after a round without improvement: 3.1 on linkage_15, 1 on lattices.
LATE_GAIN = 8.0
# Seconds of the first portfolio; each later one has twice as long.
FIRST_PORTFOLIO = 0.05
# Min-fill orders with random tie breaks: 0.1 ms each on a 10 x 10 grid, 2 ms on 30 x 30.
TRIES = 16
# Number of these orders that are compared by their exact cost, with the numbers of states.
KEEP = 3
# Predicted seconds of elimination below which the first order is used: on 60 variables the tries take as long.
WORTH_TRIES = 0.005
# Largest number of tries for the first order.
FIRST_TRIES = 4
# Seconds per variable of such a try.
TRY_SECONDS = 5e-7
# Number of variables above which goatd only gets the core, without variables that can be eliminated first at no loss.
MANY = 15_000
# Largest number of core variables for which orders are searched: 10^5 take 3 s.
MAX_SEARCHED = 100_000


@dataclass(frozen=True, eq=False)
class Order:
    """An elimination order.

    Attributes:
        order: int64 variables; none where elimination is out of reach along all orders or the best one found.
        width: size of the largest clique that it meets, less one.
        log2_largest: log2 of that clique's number of states.
        log2_total: log2 of the sum over all cliques.
        message_entries: the sum over what is left of each clique without its variable.
        complete: False if the figures are lower limits for all orders.
        unsearched: variables that are too many for a search; 0: they are not.
        lattice: whether it goes along rows; such an order is good for whole tables only, not for mini-buckets.
        separators: of each bucket, ascending positions; not all of them where the search was given up.
    """

    order: IntArray
    width: int
    log2_largest: float
    log2_total: float
    message_entries: float = 0.0
    complete: bool = True
    unsearched: int = 0
    lattice: bool = False
    separators: Sequence[tuple[int, ...]] = ()

    @property
    def entries(self) -> float:
        """The sum over all cliques, as far as a float holds it."""
        return float(2.0 ** min(self.log2_total, 1000.0))

    @property
    def least_entries(self) -> int:
        """Of an order that is out of reach: what it takes, or takes at least where the sum was given up."""
        return 1 << int(next(filter(math.isfinite, (self.log2_total, self.log2_largest, HOPELESS))))


def elimination_order(
    cardinalities: Sequence[int],
    pairs: IntArray,
    *,
    seconds: float = 0.0,
    seed: int = 0,
    hopeless: float = HOPELESS,
    max_bytes: float = math.inf,
) -> Order:
    """The cheapest order found.

    Args:
        cardinalities: of the variables.
        pairs: (E, 2) variables that share a table.
        seconds: that the clocked search may take beyond min-fill; 0: the same order on every machine.
        seed: of the ties.
        hopeless: log2 of a number of entries; of a graph so dense that all orders are beyond, none is made.
        max_bytes: memory beyond which elimination is sliced, so that a search is worth more.
    """
    refusal = hopeless_order(cardinalities, pairs, hopeless)
    if refusal is not None:
        return refusal
    if len(cardinalities) > MANY:
        return _strip_and_search(cardinalities, pairs, seconds, seed, hopeless, max_bytes)
    return _search(cardinalities, pairs, seconds, seed, max_bytes)


def _strip_and_search(
    cardinalities: Sequence[int], pairs: IntArray, seconds: float, seed: int, hopeless: float, max_bytes: float
) -> Order:
    """Many variables: what can go first at no loss does, and the rest is searched if it is not too many."""
    first = strip(cardinalities, pairs)
    size = first.core.size
    if size > MAX_SEARCHED:
        return Order(np.empty(0, dtype=np.int64), 0, math.inf, math.inf, complete=False, unsearched=size)
    if not size:
        return order_cost(first.order, cardinalities, pairs)
    cards = np.asarray(cardinalities)[first.core].tolist()
    rest = hopeless_order(cards, first.pairs, hopeless) or _search(cards, first.pairs, seconds, seed, max_bytes)
    if not rest.order.size:
        return rest
    order = np.concatenate([first.order, first.core[rest.order]])
    return order_cost(order, cardinalities, pairs, lattice=rest.lattice)


def _search(cardinalities: Sequence[int], pairs: IntArray, seconds: float, seed: int, max_bytes: float) -> Order:
    first = first_order(cardinalities, pairs, seed)
    if ENTRY_SECONDS * first.entries < WORTH_TRIES or first.log2_total > OUT_OF_REACH:
        return first
    if seconds:
        _report(first)
    best = candidate_orders(cardinalities, pairs, TRIES, seed)[0]
    spent, budget, better = 0.0, FIRST_PORTFOLIO, True
    while goatd.is_installed() and spent < _worth(best, seconds, max_bytes, better):
        _report(best)
        since, before = time.perf_counter(), best
        for order in goatd.portfolio_orders(cardinalities, pairs, seed, budget):
            candidate = order_cost(order, cardinalities, pairs, best.log2_total)
            best = min(best, candidate, key=lambda searched: searched.log2_total)
        better = best.log2_total < before.log2_total - LEAST_GAIN
        spent, budget, seed = spent + time.perf_counter() - since, 2 * budget, seed + 1
    if best.log2_total < HOPELESS:
        return order_cost(depth_first(best.order, cardinalities, pairs), cardinalities, pairs, lattice=best.lattice)
    return best


def _report(best: Order) -> None:
    """What marginals along the best order so far take."""
    report_progress(Progress(0, 0, MARGINAL_SECONDS * best.entries, int(ENTRY_BYTES * best.entries), best.width))


def first_order(cardinalities: Sequence[int], pairs: IntArray, seed: int = 0) -> Order:
    """The best of a few min-fill orders, of one where elimination along it takes less time than another or more than
    `WORTH_TRIES`; without its variables where it is out of reach, which takes a while for many of them."""
    if not goatd.is_installed():
        return order_cost(min_fill_order(cardinalities, pairs, seed), cardinalities, pairs, OUT_OF_REACH)
    graph = goatd.build_graph(cardinalities, pairs)
    tree = goatd.decompose_by_min_fill(graph, seed)
    for trial in range(1, FIRST_TRIES):
        entries_seconds = ENTRY_SECONDS * 2.0 ** min(tree.bag_mass, 1000.0)
        if not trial * TRY_SECONDS * len(cardinalities) < entries_seconds < WORTH_TRIES:
            break
        tree = min(tree, goatd.decompose_by_min_fill(graph, seed + trial), key=lambda tree: tree.bag_mass)
    if tree.bag_mass > OUT_OF_REACH:
        least = _least_states(cardinalities, tree.treewidth + 1)
        return Order(np.empty(0, dtype=np.int64), tree.treewidth, least, max(tree.bag_mass, least))
    return order_cost(goatd.order_of(tree.bags, tree.edges), cardinalities, pairs, OUT_OF_REACH)


def _worth(best: Order, seconds: float, max_bytes: float, better: bool) -> float:
    """Seconds that the clocked search may have taken so far, given whether its last round found a better order."""
    if best.log2_total > SEARCHABLE:
        return 0.0
    # measured: slices that fit half of the memory took 4 times as long as the whole, slices that fit an eighth 70 times
    excess = max(1.0, ENTRY_BYTES * best.entries / max_bytes)
    share, most_entries, hopeless_seconds = SEARCH_SHARE * excess**2, 2.0**AFFORDABLE, HOPELESS_SECONDS
    if not better:
        share, most_entries, hopeless_seconds = VAIN_SEARCH_SHARE, entries_within_reach(seconds), VAIN_SECONDS
    limit = min(seconds, SEARCH_SECONDS if best.entries < most_entries else hopeless_seconds)
    return min(limit, share * ENTRY_SECONDS * best.entries - FIRST_PORTFOLIO)


def entries_within_reach(seconds: float) -> float:
    """Entries of an order from which a search of so many seconds, a share of the budget, may still get to one that is
    affordable, though its last round was in vain."""
    return min(LATE_GAIN * seconds / SEARCH_SHARE / MARGINAL_SECONDS, 2.0**AFFORDABLE)


def candidate_orders(
    cardinalities: Sequence[int], pairs: IntArray, tries: int, seed: int, keep: int = KEEP
) -> list[Order]:
    """The cheapest min-fill orders, and row orders where these are cheaper, cheapest first.

    They repeat as long as a min-fill order takes less than `goatd.MIN_FILL_SECONDS`.

    Args:
        cardinalities: of the variables.
        pairs: (E, 2) variables that share a table.
        tries: min-fill orders that are made, ties broken at random.
        seed: of the ties.
        keep: min-fill orders that are returned, at most.
    """
    greedy = [
        order_cost(order, cardinalities, pairs) for order in _greedy_orders(cardinalities, pairs, tries, seed, keep)
    ]
    best = min(order.log2_total for order in greedy)
    rows = [
        order_cost(order, cardinalities, pairs, best, lattice=True) for order in row_orders(len(cardinalities), pairs)
    ]
    orders = [*greedy, *(row for row in rows if row.log2_total < best)]
    return sorted(orders, key=lambda candidate: candidate.log2_total)


def order_cost(
    order: Sequence[int] | IntArray,
    cardinalities: Sequence[int],
    pairs: IntArray,
    limit: float = math.inf,
    *,
    lattice: bool = False,
) -> Order:
    """What elimination along an order costs; infinite (log2_total) once it is beyond 2^limit entries."""
    order = np.asarray(order, dtype=np.int64)
    logs = np.log2(np.asarray(cardinalities, dtype=np.float64))[order]
    buckets: list[tuple[int, ...]] = []
    for separator in separators(order, pairs):
        buckets.append(tuple(sorted(separator)))
        # Already too expensive with binary variables, and later separators are no smaller.
        if len(separator) >= limit:
            break
    widths = np.fromiter(map(len, buckets), np.int64, len(buckets))
    bucket = np.repeat(np.arange(len(buckets)), widths)
    position = np.fromiter(itertools.chain.from_iterable(buckets), np.int64, bucket.size)
    sizes = logs[: len(buckets)] + np.bincount(bucket, logs[position], len(buckets))
    width, largest = int(widths.max(initial=0)), float(sizes.max(initial=0.0))
    total = float(np.exp2(np.minimum(sizes, 1000.0)).sum())
    if largest > limit or total > 2.0 ** min(limit, 1020.0):
        return Order(order, width, largest, math.inf, lattice=lattice)
    log2_total = max(math.log2(total or 1.0), largest)
    messages = float(np.exp2(np.minimum(sizes - logs[: len(buckets)], 1000.0)).sum())
    return Order(order, width, largest, log2_total, messages, lattice=lattice, separators=buckets)


def pairs_of(scopes: Iterable[Scope]) -> IntArray:
    """(E, 2) variables that share a scope."""
    unordered_pairs = {pair for scope in scopes for pair in itertools.combinations(sorted(scope), 2)}
    return np.array(sorted(unordered_pairs), dtype=np.int64).reshape(-1, 2)


def _greedy_orders(cardinalities: Sequence[int], pairs: IntArray, tries: int, seed: int, keep: int) -> list[list[int]]:
    """By min-fill, with ties at random but in the first."""
    if not goatd.is_installed():
        return [min_fill_order(cardinalities, pairs, tries * seed + trial) for trial in range(min(tries, keep))]
    graph, decompositions = goatd.build_graph(cardinalities, pairs), []
    for trial in range(tries):
        deadline.check()
        ties: dict[str, object] = {}
        if trial:
            ties = {"ties": "sample", "weights": [min(k, 2**31) for k in cardinalities]}
        decompositions.append(goatd.decompose_by_min_fill(graph, tries * seed + trial, **ties))
    decompositions.sort(key=lambda each: each.bag_mass)
    return [goatd.order_of(each.bags, each.edges) for each in decompositions[:keep]]


def hopeless_order(cardinalities: Sequence[int], pairs: IntArray, hopeless: float) -> Order | None:
    """What says why there is no order, where a part of the graph is so dense that no search can help."""
    size, enough = len(cardinalities), math.ceil(min(hopeless, 2.0**31))
    if size <= enough or not (width := least_width(size, pairs, enough)):
        return None
    least = _least_states(cardinalities, width + 1)
    return Order(np.empty(0, dtype=np.int64), width, least, least, complete=False)


def _least_states(cardinalities: Sequence[int], count: int) -> float:
    """log2 of the states of a clique of `count` variables, at least."""
    return float(np.sort(np.log2(np.asarray(cardinalities, dtype=np.float64)))[:count].sum())
