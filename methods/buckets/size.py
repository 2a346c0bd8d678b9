"""How large mini-buckets may be: as large as time and memory allow, but not so large that none is left for passes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from spinbench.methods.buckets.partition import Partition, Scope, partition

# Bytes per entry (factors, conditionals and their logarithms, messages), and per position of an entry in a message or a
# shift.
BYTES, LOOK_BYTES = 32, 4
# Number of passes that the choice of table size leaves time for. Larger tables with fewer passes give a worse bound: on
# DBN_11, 2^17 entries and 30 passes were no better than 2^13 entries with more passes.
PASSES = 40
# log2 of the largest number of entries of a mini-bucket: positions are int32.
LARGEST = 30
# log2 of the smallest limit on the entries of a mini-bucket.
SMALLEST = 2
# Tolerance for rounding of log2 sizes at the limit.
_ROUNDING = 1e-6


class Costs(NamedTuple):
    """Seconds of this kind of code: of a pass, for each entry, each place that an entry looks up, and each mini-bucket;
    to make the table of such places, and others, for each of them; a draw's step in a mini-bucket; and a row of
    possible states."""

    entry: float
    look: float
    clique: float
    made: float
    step: float
    row: float

    def pass_seconds(self, minibuckets: Partition) -> float:
        """Of a forward and a backward pass."""
        return self.entry * minibuckets.entries + self.look * minibuckets.looks + self.clique * len(minibuckets.scopes)

    def table_seconds(self, minibuckets: Partition) -> float:
        """Before any pass."""
        return self.made * (minibuckets.entries + minibuckets.looks)

    def passes_seconds(self, minibuckets: Partition, count: int) -> float:
        """Of so many, and of the tables."""
        return self.table_seconds(minibuckets) + count * self.pass_seconds(minibuckets)

    def draw_seconds(self, cliques: int, chains: int) -> float:
        """Of one draw of all chains."""
        return self.step * cliques * chains


def choose(
    logs: Sequence[float],
    scopes: Sequence[Scope],
    total: float,
    costs: Costs,
    seconds: float,
    max_bytes: float,
    smallest: Callable[[], Partition],
) -> tuple[int, Partition]:
    """The largest limit whose passes end in time, and its partition.

    Args:
        logs, scopes: as of `partition`.
        total: log2 of the entries of all tables where nothing is split.
        costs: of the code that will run.
        seconds: for all passes; a partition that splits nothing needs one.
        max_bytes: of all tables.
        smallest: gives the partition of the least limit, `SMALLEST`, which the caller remembers.
    """
    max_entries = min(seconds / costs.entry, max_bytes / BYTES)

    def fits(minibuckets: Partition, passes: int) -> bool:
        return (
            minibuckets.entries <= max_entries
            and bytes_of(minibuckets) <= max_bytes
            and costs.passes_seconds(minibuckets, passes) <= seconds
        )

    if total <= math.log2(max(max_entries, 1.0)) + _ROUNDING:
        whole = partition(logs, scopes, math.inf, max_entries)
        if fits(whole, 1):
            return math.ceil(max((sum(logs[v] for v in scope) for scope in whole.scopes), default=0.0)), whole
    # Even the smallest mini-buckets take too long; they are used all the same, since every variable needs one.
    if PASSES * costs.clique * len(logs) > seconds:
        return SMALLEST, smallest()

    def at(limit: int) -> Partition | None:
        minibuckets = smallest() if limit == SMALLEST else partition(logs, scopes, limit, max_entries)
        return minibuckets if fits(minibuckets, PASSES) else None

    limit = min(max(SMALLEST, int(math.log2(max(max_entries / (PASSES * max(len(logs), 1)), 1.0)))), LARGEST)
    minibuckets = at(limit)
    while minibuckets is None and limit > SMALLEST:
        limit -= 1
        minibuckets = at(limit)
    while minibuckets is not None and limit < LARGEST and (larger := at(limit + 1)) is not None:
        limit, minibuckets = limit + 1, larger
    return limit, smallest() if minibuckets is None else minibuckets


def bytes_of(minibuckets: Partition) -> float:
    """Of all tables."""
    return BYTES * minibuckets.entries + LOOK_BYTES * minibuckets.looks


def logs_of(cards: Sequence[int]) -> list[float]:
    """log2 of numbers of states."""
    return [math.log2(card) for card in cards]
